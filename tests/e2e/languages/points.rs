//! Points in every language: the same program with the same frames.

use std::path::Path;

use ppt_codegen::Schema;
use serde::Deserialize as _;
use xxhash_rust::xxh3::{xxh3_64, xxh3_128};

use crate::fixtures::go;
use crate::fixtures::java;
use crate::fixtures::node;
use crate::fixtures::python::modules;
use crate::fixtures::released;
use crate::fixtures::rust::programs;
use crate::fixtures::support::{
    Account, Attach, Bench, Kind, Table, Target, available, of_both_kinds, ppt,
};

const ROUNDS: u64 = 1000;

/// The frames of every program: in each round three points of one message.
fn check(bench: &Bench, mut target: Target) {
    let attach = bench.attach(&target, &["--memory", "1G"]);
    let written = target.run();
    attach.stop();
    target.finish();
    let account = Account::of(&bench.info("out.bin"));
    account.check(written);
    assert_eq!(account.captured, 3 * ROUNDS, "{account:?}");
    // A program may have other buffers with frames of these names.
    check_tables(|frame| bench.table("out.bin", &["-b", "relay", "--frame", frame]));
    check_roles(&std::fs::read(bench.path("out.bin")).unwrap());
}

/// Checks that the frames match the programs, with any dump.
fn check_tables(table: impl Fn(&str) -> Table) {
    let [sent, received, passed] = ["sent", "received", "passed"].map(table);
    assert_eq!(sent.columns[3..], ["id", "when"], "stamped by the program");
    assert_eq!(received.columns[3..], ["id", "body", "number", "at"]);
    assert_eq!(passed.columns[3..], ["ticket", "body", "at"]);
    let at = |table: &Table, row: u64| -> i64 {
        table.rows[row as usize].last().unwrap().parse().expect("a time")
    };
    let mut latest = 1;
    for i in 0..ROUNDS {
        let id = xxh3_64(&i.to_le_bytes()).to_string();
        let body = format!("{:032x}", xxh3_128(format!("message {i}").as_bytes()));
        let said = |table: &Table| table.rows[i as usize][3..].to_vec();
        assert_eq!(said(&sent), [id.clone(), (1000 + i).to_string()]);
        assert_eq!(said(&received)[..3], [id, body.clone(), i.to_string()]);
        assert_eq!(said(&passed)[..2], [i.to_string(), body]);
        // One thread stamps them one after the other.
        for now in [at(&received, i), at(&passed, i)] {
            assert!(latest <= now, "{now} after {latest}");
            latest = now;
        }
    }
    assert_eq!([&sent, &received, &passed].map(|it| it.rows.len() as u64), [ROUNDS; 3]);
}

/// The schema in the capture states the incoming and outgoing identities, and the edges.
fn check_roles(capture: &[u8]) {
    let head = br#"{"v":1,"buffer":"relay""#;
    let at = capture.windows(head.len()).position(|window| window == head).expect("a schema");
    let mut rest = serde_json::Deserializer::from_slice(&capture[at..]);
    let text = serde_json::Value::deserialize(&mut rest).unwrap();
    let schema = Schema::from_json(text.to_string().as_bytes()).unwrap();
    let sides: Vec<_> = schema.frames.iter().map(|frame| frame.point().expect("a point")).collect();
    let types =
        |side: &[(&str, _)]| side.iter().map(|entry| entry.0.to_owned()).collect::<Vec<_>>();
    let sides: Vec<_> = sides.iter().map(|side| (types(&side.ins), types(&side.outs))).collect();
    let side = |types: &[&str]| types.iter().map(|text| (*text).to_owned()).collect::<Vec<_>>();
    let expected = [
        (side(&[]), side(&["messageid"])),
        (side(&["messageid"]), side(&["payload"])),
        (side(&["ticket", "payload"]), side(&[])),
    ];
    assert_eq!(sides, expected);
    let edges = schema.edges();
    let edges: Vec<_> = edges
        .iter()
        .map(|edge| (&*edge.from, &*edge.to, edge.within, edge.policy.word()))
        .collect();
    let expected = [
        ("sent", "received", None, "all"),
        ("received", "relay.passed", Some(500_000_000), "nearest"),
        ("passed", "client.received", None, "fifo"),
    ];
    assert_eq!(edges, expected);
}

/// The program in C.
fn build_c(bench: &Bench) {
    bench.copy_all(&["relay.frame", "relay_main.c"]);
    bench.pptc(&["relay.frame"]);
    bench.cc(&["relay_main.c", "relay.c", "-o", "relay"]);
}

of_both_kinds! {
    c
}

fn c(kind: Kind) {
    let bench = Bench::new().of(kind);
    build_c(&bench);
    let target = bench.start("relay", &[&ROUNDS.to_string()]);
    check(&bench, target);
}

#[test]
fn cpp() {
    if !available("g++") {
        return;
    }
    let bench = Bench::new();
    bench.copy_all(&["relay.frame", "relay_main.cpp"]);
    bench.pptc(&["--emit", "cpp", "relay.frame"]);
    bench.compile("g++", &["-std=c++17", "-o", "relay", "relay_main.cpp", "relay.cpp"]);
    let target = bench.start("relay", &[&ROUNDS.to_string()]);
    check(&bench, target);
}

#[test]
fn rust() {
    let bench = Bench::new();
    let mut command = bench.command(programs().join("relay"));
    command.arg(ROUNDS.to_string());
    check(&bench, Target::start(command));
}

#[test]
fn python() {
    let bench = Bench::new();
    bench.copy_all(&["relay_main.py", "relay.frame"]);
    if !modules(&bench, &["relay"]) {
        return;
    }
    let mut command = bench.command("python3");
    command.args(["relay_main.py", &ROUNDS.to_string()]);
    check(&bench, Target::start(command));
}

#[test]
fn java() {
    let bench = Bench::new();
    bench.copy_all(&["relay_main.java", "relay.frame"]);
    if java::program(&bench, &["relay"], &["relay_main.java"]) {
        check(&bench, Target::start(java::java(&bench, "Relay", &[&ROUNDS.to_string()])));
    }
}

#[test]
fn node() {
    let bench = Bench::new();
    bench.copy_all(&["relay_main.mjs", "relay.frame"]);
    if node::packages(&bench, &["relay"]) {
        let command = node::node(&bench, "relay_main.mjs", &[&ROUNDS.to_string()]);
        check(&bench, Target::start(command));
    }
}

#[test]
fn go() {
    let bench = Bench::new();
    bench.copy_all(&["relay_main.go", "relay.frame"]);
    if go::program(&bench, &["relay"], "relay_main.go") {
        check(&bench, Target::start(go::built(&bench, &[&ROUNDS.to_string()])));
    }
}

/// A `ppt` of an earlier version without points attaches, captures and dumps: it shows plain
/// frames. Each version reads the captures of the other.
#[test]
fn the_released_ppt_shows_the_frames() {
    let bench = Bench::new();
    let Some(released) = released::ppt(&bench) else { return };
    build_c(&bench);
    let by = |ppt: &Path, capture: &str| {
        check_tables(|frame| bench.table_of(ppt, capture, &["--frame", frame]));
        check_roles(&std::fs::read(bench.path(capture)).unwrap());
    };
    for (recorder, capture) in [(&*released, "old.bin"), (ppt().as_ref(), "new.bin")] {
        let mut target = bench.start("relay", &[&ROUNDS.to_string()]);
        let mut command = bench.command(recorder);
        command.args(["attach", &target.pid().to_string(), "--memory", "1G", "-o", capture]);
        let attach = Attach::start(command);
        let written = target.run();
        attach.stop();
        target.finish();
        Account::of(&bench.info(capture)).check(written);
        by(&released, capture);
        by(ppt().as_ref(), capture);
    }
}
