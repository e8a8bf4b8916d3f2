//! The path of requests between processes, derived at both ends without adding anything to
//! messages.

use std::collections::HashSet;

use serde_json::Value;

use crate::fixtures::preloaded::{preload, python};
use crate::fixtures::support::{Bench, Target, wait_until};

/// The identities in a column of a capture.
fn identities(bench: &Bench, capture: &str, frame: &str, column: &str) -> Vec<String> {
    let table = bench.table(capture, &["-b", "hops", "--frame", frame]);
    table.cells(column).iter().map(ToString::to_string).collect()
}

/// ppt attaches to both ends of a connection that has carried requests for a while.
#[test]
fn on_a_connection_that_is_older_than_the_captures() {
    let Some(python) = python() else { return };
    let bench = Bench::new();
    bench.copy("with/echo.py");
    let start = |args: &[&str]| {
        let mut command = bench.command(python);
        command.env("LD_PRELOAD", preload(&bench)).arg("echo.py").args(args);
        Target::spawn(command)
    };
    let mut server = start(&["serve"]);
    let port = server.stdout.wait_for("ready ");
    let mut client = start(&["ask", &port]);
    client.stdout.wait_for("asked 200");
    let of_server = bench.attach(&server, &["-o", "server.bin", "-q"]);
    let of_client = bench.attach(&client, &["-o", "client.bin", "-q"]);
    // The client's counts may include requests before the captures.
    let asked = || identities(&bench, "client.bin", "asked", "question").len();
    wait_until("300 requests are captured", || asked() >= 300);
    of_client.stop();
    of_server.stop();
    client.close();
    assert!(client.wait().success());
    assert!(server.wait().success());
    for (from, to, column) in [
        (("client.bin", "asked"), ("server.bin", "taken"), "question"),
        (("client.bin", "got"), ("server.bin", "answered"), "question"),
        (("client.bin", "got"), ("server.bin", "answered"), "answer"),
    ] {
        let all = identities(&bench, from.0, from.1, column);
        let there: HashSet<_> = identities(&bench, to.0, to.1, column).into_iter().collect();
        let missing = all.iter().filter(|text| !there.contains(*text)).count();
        assert!(all.len() >= 300, "{} of {from:?}", all.len());
        assert_eq!(missing, 0, "{from:?} {to:?} {column}");
        assert_eq!(all.iter().collect::<HashSet<_>>().len(), all.len(), "each is another one");
    }
}

#[test]
fn lead_from_the_question_to_the_answer() {
    let Some(python) = python() else { return };
    let bench = Bench::new();
    bench.copy("with/server.py");
    let ran = bench.ppt(&["run", "--with", "net", "-q", "--", python, "server.py", "100"]);
    assert_eq!(ran.code(), 0, "{ran:?}");
    let graph = |args: &[&str]| -> Value {
        let ran = bench.ppt(&[&["graph", "out.bin", "--format", "json"], args].concat());
        assert_eq!(ran.code(), 0, "{ran:?}");
        serde_json::from_str(&ran.stdout).unwrap()
    };
    let points = graph(&[]);
    let frames: Vec<_> =
        points["points"].as_array().unwrap().iter().map(|value| &value["frames"]).collect();
    assert_eq!(frames, [100; 4]);
    assert_eq!(points["unmatched"], Value::Array(Vec::new()));
    let ways = graph(&["--from", "asked", "--to", "got"]);
    assert_eq!((&ways["reached"], &ways["ambiguous"]), (&100.into(), &0.into()));
    let stages = ways["stages"].as_array().unwrap();
    let mut stages: Vec<_> = stages.iter().map(|stage| stage["stage"].as_str().unwrap()).collect();
    stages.sort_unstable();
    // The path within the server is in one thread, or between two: each is a stage.
    stages.dedup();
    assert_eq!(stages, ["answered -> got", "asked -> taken", "taken -> answered"]);
}
