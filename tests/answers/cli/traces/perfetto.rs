//! Perfetto's format, which its own library reads.

use std::collections::{BTreeMap, BTreeSet};
use std::process::Command;

use ppt_capture::{FileHeader, FramesHead, Lost};
use serde_json::{Value, json};

use super::{
    BEGAN, Captures, all, check_nesting, check_slices, check_values, expected_missing, missing,
    of_points,
};
use crate::support::{Bench, capture, head, root, schema};

#[test]
fn perfetto_finds_what_the_captures_hold() {
    for captures in all() {
        let Some((events, _)) = captures.by_others("perfetto") else { return };
        check_slices(&captures, &events);
        check_nesting(&events);
        check_values(&captures, &events, true);
        assert_eq!(missing(&events), expected_missing(&captures));
    }
}

#[test]
fn points_of_one_identity_are_a_flow() {
    let captures = Captures::of(&[of_points()]);
    assert_eq!(captures.number("SELECT count(*) FROM edges"), 2);
    let Some((events, ..)) = captures.by_others("perfetto") else { return };
    let mut flows: BTreeMap<&str, BTreeSet<String>> = BTreeMap::new();
    for event in &events {
        assert_eq!(event.flows.len(), 1, "{event:?}");
        flows.entry(&event.flows[0]).or_default().insert(event.args["id"].to_string());
    }
    assert_eq!(flows.len(), 4, "{flows:?}");
    assert!(flows.values().all(|ids| ids.len() == 1), "{flows:?}");
}

/// Processes of two hosts may have the same pid: names include the host.
#[test]
fn processes_of_several_hosts_are_called_by_their_hosts() {
    let bench = Bench::empty();
    let schema = schema(
        r#"{"v":1,"buffer":"b","slots":16,"stride":24,"enums":[{"name":"E","type":"u8","values":[["ONE",1]]}],
        "frames":[{"name":"it","kind":"plain","size":24,"fields":[
        {"name":"at","type":"ns","clock":"monotonic","offset":8,"at":true,"stamp":true},
        {"name":"name","type":"enum","enum":"E","offset":16}]}]}"#,
    );
    for (id, host) in [(1, "left"), (2, "right")] {
        // The right host lost two frames.
        let first_seq = if host == "left" { 1u64 } else { 3 };
        let frame = [first_seq, 5_000, 1].map(u64::to_le_bytes).concat();
        let lost_before = Lost { overrun: first_seq - 1, ..Lost::default() };
        let head = FramesHead { first_seq, lost_before, ..head(1, 9_000) };
        let header = FileHeader {
            capture_id: [id; 16],
            host: host.to_owned(),
            boot_id: host.to_owned(),
            created_realtime_ns: BEGAN as u64,
            created_mono_ns: 1_000,
            ..FileHeader::default()
        };
        bench.write(&format!("{host}.bin"), capture(&header, &schema, &[(head, frame)]));
    }
    let json = bench.json(&["export", "left.bin", "right.bin", "--format", "chrome"]);
    let events = json.as_array().or_else(|| json["traceEvents"].as_array()).unwrap();
    let names = events.iter().filter(|event| event["name"] == "process_name");
    let names: BTreeSet<&str> = names.filter_map(|name| name["args"]["name"].as_str()).collect();
    assert!(names.iter().any(|name| name.ends_with("on left")), "{names:?}");
    assert!(names.iter().any(|name| name.ends_with("on right")), "{names:?}");

    // In Perfetto, each host is a machine: both processes keep their pids.
    let Some(events) = by_perfetto(&bench, &["left.bin", "right.bin"]) else { return };
    let found: BTreeSet<(i64, i64, &str)> = events
        .iter()
        .map(|event| {
            let long = |key: &str| event[key].as_i64().unwrap();
            (long("machine"), long("pid"), event["process"].as_str().unwrap())
        })
        .collect();
    assert_eq!(found, [(0, 0, "process on left"), (1, 0, "process on right")].into());
    let (lost, frames): (Vec<_>, Vec<_>) =
        events.iter().partition(|event| event["args"]["cause"] == "overrun");
    assert_eq!(frames.len(), 2);
    for event in frames {
        // Interned names belong to a machine.
        assert_eq!((&event["name"], &event["cat"]), (&json!("it"), &json!("b")));
        assert_eq!(event["args"]["name"], "ONE");
    }
    // Missing frames belong to a machine, too.
    assert_eq!(lost.len(), 1);
    assert_eq!((&lost[0]["machine"], &lost[0]["process"]), (&json!(1), &json!("process on right")));
    // Traces of one host mention no machines.
    let alone = by_perfetto(&bench, &["left.bin"]).unwrap();
    assert!(alone.iter().all(|event| event["machine"] == 0), "{alone:?}");
}

/// The events of a trace of captures, read by the perfetto wheel; None if it is not installed.
fn by_perfetto(bench: &Bench, captures: &[&str]) -> Option<Vec<Value>> {
    let python = root().join("target/oracles/bin/python");
    let there = Command::new(&python).args(["-c", "import perfetto"]).output();
    if !there.is_ok_and(|output| output.status.success()) {
        eprintln!("skipped: perfetto is not installed (analysis/oracles/install says how)");
        return None;
    }
    let to = ["--format", "perfetto", "-o", "hosts.pftrace", "--force"];
    bench.done(&[&["export"], captures, &to].concat());
    let script = root().join("analysis/oracles/trace.py");
    let trace = bench.path("hosts.pftrace");
    let output = Command::new(python).arg(script).arg("perfetto").arg(trace).output().unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    let lines = String::from_utf8(output.stdout).unwrap();
    Some(lines.lines().map(|line| serde_json::from_str(line).unwrap()).collect())
}
