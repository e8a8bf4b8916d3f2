//! `ppt graph`: two loops that share a queue, as in the example.

use std::process::{Command, Stdio};

use serde_json::Value;

use crate::fixtures::support::{Bench, available, ppt, root};

const PPTC: &str = env!("CARGO_BIN_EXE_pptc");

/// A capture of the example, and the number of messages that it reports as shown. `None`: it cannot be built.
fn captured(mode: &str) -> Option<(Bench, u64)> {
    if !available("make") {
        return None;
    }
    let bench = Bench::new();
    for name in ["Makefile", "main.c", "loops.frame"] {
        std::fs::copy(root().join("examples/queue").join(name), bench.path(name)).unwrap();
    }
    let make = bench.command("make").arg(format!("PPTC={PPTC}")).output().unwrap();
    assert!(make.status.success(), "{make:?}");
    let mut command: Command = bench.command(ppt());
    command.args(["run", "-o", "out.bin", "--", "./loops", mode]);
    // It checks for the end of its input after some passes, so messages have been shown.
    let ran = command.stdin(Stdio::null()).output().unwrap();
    let stdout = String::from_utf8_lossy(&ran.stdout).into_owned();
    let shown = stdout.lines().find_map(|line| line.strip_prefix("shown ")?.parse().ok());
    let shown = shown.unwrap_or_else(|| panic!("{ran:?}"));
    Some((bench, shown))
}

fn graph(bench: &Bench, args: &[&str]) -> Value {
    let ran = bench.ppt(&[&["graph", "out.bin", "--format", "json"], args].concat());
    assert_eq!(ran.code(), 0, "{}", ran.stderr);
    serde_json::from_str(&ran.stdout).unwrap()
}

#[test]
fn what_waits_in_a_queue_is_found_there() {
    let Some((bench, shown)) = captured("one") else { return };
    let points = graph(&bench, &[]);
    for point in points["points"].as_array().unwrap() {
        assert_eq!(point["frames"], shown, "{point}");
    }
    assert_eq!(points["unmatched"], Value::Array(Vec::new()));
    let ways = graph(&bench, &["--from", "queued", "--to", "shown", "--slowest", "3"]);
    for what in ["beginnings", "ends", "reached"] {
        assert_eq!(ways[what], shown, "{what}");
    }
    assert_eq!((&ways["ambiguous"], &ways["no_route"]), (&0.into(), &Value::Null));
    let all = ways["latency"]["mean"].as_f64().unwrap() * shown as f64;
    let sum = |of: &str| -> f64 {
        ways[of].as_array().unwrap().iter().map(|value| value["time"].as_f64().unwrap()).sum()
    };
    for of in ["parts", "stages"] {
        assert!((sum(of) - all).abs() < 1e-6 * all, "{of}: {} of {all}", sum(of));
    }
    let stages = ways["stages"].as_array().unwrap();
    let of = |name: &str| stages.iter().find(|stage| stage["stage"] == name).unwrap();
    assert_eq!(of("queued -> taken")["place"], "queue");
    assert_eq!(of("taken -> shown")["place"], "thread");
    let slowest = ways["slowest"].as_array().unwrap();
    for way in slowest {
        let hops = way["hops"].as_array().unwrap();
        let sum: i64 = hops.iter().map(|hop| hop["ns"].as_i64().unwrap()).sum();
        assert_eq!(sum, way["latency"].as_i64().unwrap());
    }
}

#[test]
fn edge_lines_of_a_file_count_instead() {
    let Some((bench, shown)) = captured("all") else { return };
    std::fs::write(bench.path("x.edges"), "edge queued -> shown nearest; // not by taken\n")
        .unwrap();
    let points = graph(&bench, &["--edges", "x.edges"]);
    let edges = points["edges"].as_array().unwrap();
    assert_eq!(edges.len(), 1, "{edges:?}");
    assert_eq!((&edges[0]["policy"], &edges[0]["count"]), (&"nearest".into(), &shown.into()));
    std::fs::write(
        bench.path("y.edges"),
        "edge queued -> nobody;\nedge queued -> shown within 5;\n",
    )
    .unwrap();
    let ran = bench.ppt(&["graph", "out.bin", "--edges", "y.edges"]);
    assert!(ran.code() != 0 && ran.stderr.contains("y.edges:2"), "{}", ran.stderr);
    let ran =
        bench.ppt(&["graph", "out.bin", "--from", "shown", "--to", "queued", "--format", "text"]);
    assert!(ran.stdout.contains(&format!("no route to {shown} queued")), "{}", ran.stdout);
    let ran = bench.ppt(&["graph", "out.bin", "--from", "shwn", "--to", "queued"]);
    assert_eq!(ran.code(), 2);
    assert!(
        ran.stderr.contains("no point is called `shwn` (did you mean `shown`?)"),
        "{}",
        ran.stderr
    );
}
