//! `ppt import`: other commands read its output, and refused input leaves nothing.

use std::fs;
use std::io::Write;
use std::os::unix::process::ExitStatusExt;
use std::process::Stdio;

use rustix::process::{Pid, Signal, kill_process};
use serde_json::Value;

use crate::support::Bench;

const FRAMES: &str = "option time ns realtime;
enum State { OFF, ON }
frame reading { time at @at; State state; f64 volts; interval time run; }
";

/// A folder with a table of `lines` lines and its frame file; every third line is ON.
fn bench(lines: u64) -> Bench {
    let bench = Bench::empty();
    bench.write("r.frame", FRAMES);
    let mut table = "at,state,volts,run_start,run_end,tid\n".to_owned();
    for line in 0..lines {
        let (at, state) = (1_700_000_000 + line, if line % 3 == 0 { "ON" } else { "OFF" });
        table += &format!("{at},{state},{}.5,{at},{at}.000001,{}\n", line % 10, 1 + line % 2);
    }
    bench.write("r.csv", table);
    bench
}

const UNITS: [&str; 6] = ["--unit", "at=s", "--unit", "run_start=s", "--unit", "run_end=s"];

fn import<'a>(more: &[&'a str]) -> Vec<&'a str> {
    [&["import", "r.csv", "--schema", "r.frame"], &UNITS[..], more].concat()
}

#[test]
fn every_command_reads_what_was_imported() {
    let bench = bench(300);
    let said = bench.run(&import(&["-o", "r.bin", "--host", "probe", "--tag", "site=roof"]));
    let said = String::from_utf8(said.stderr).unwrap();
    assert!(said.contains("300 frames from r.csv in r.bin"), "{said}");
    let query = "SELECT state, count(*) AS n, sum(volts) AS v, max(CAST(run AS BIGINT)) AS run, \
                 min(CAST(ts AS BIGINT)) AS first, count(DISTINCT tid) AS threads, min(host) AS h \
                 FROM reading GROUP BY state ORDER BY state";
    let text = bench.done(&["sql", "r.bin", query, "--format", "jsonl"]);
    let rows: Vec<Value> = text.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    let whole = |row: &Value| (row["state"].clone(), row["n"].clone(), row["threads"].clone());
    assert_eq!(whole(&rows[0]), ("OFF".into(), 200.into(), 2.into()));
    assert_eq!(whole(&rows[1]), ("ON".into(), 100.into(), 2.into()));
    // 0.5 to 9.5, each thirty times.
    let volts: f64 = rows.iter().map(|row| row["v"].as_f64().unwrap()).sum();
    assert_eq!(volts, 30.0 * 50.0);
    assert_eq!((&rows[0]["run"], &rows[0]["h"]), (&1000.into(), &"probe".into()));
    assert_eq!(rows[1]["first"], 1_700_000_000_000_000_000i64);
    assert!(bench.done(&["stat", "r.bin"]).contains("volts"));
    assert!(bench.done(&["report", "r.bin"]).contains("reading"));
    let trace = bench.done(&["export", "r.bin", "--format", "chrome"]);
    let trace: Value = serde_json::from_str(&trace).unwrap();
    let slices = trace["traceEvents"].as_array().unwrap().iter().filter(|value| value["ph"] == "X");
    assert_eq!(slices.count(), 300);
    let sources = bench.done(&["sql", "r.bin", "SELECT tag_site FROM sources"]);
    assert!(sources.contains("roof"), "{sources}");
}

#[test]
fn what_is_refused_leaves_nothing_behind() {
    let bench = bench(3);
    let before = ["r.csv", "r.frame"];
    for (args, text, code) in [
        (import(&["-o", "r.csv", "--force"]), "r.csv", 1),
        (import(&["-o", "no/r.bin"]), "no", 1),
        (import(&["-o", "r.bin", "--skip", "x"]), "no column has the heading x", 1),
        (import(&["-o", "r.bin", "--column", "vlts=at"]), "did you mean `volts`?", 1),
        (import(&["-o", "r.bin", "--frame", "redding"]), "did you mean `reading`?", 1),
        (import(&["-o", "r.bin", "--epoch", "500"]), "--epoch is a time in UTC", 2),
        (import(&["-o", "r.bin", "--unit", "volts=h"]), "s, ms, us or ns", 2),
        (import(&["-o", "r.bin", "--delimiter", ";"]), "no column", 1),
        (vec!["import", "r.csv", "--schema", "r.frame", "-o", "r.bin"], "--unit FIELD=s", 1),
        (vec!["import", "r.csv", "--schema", "r.csv", "-o", "r.bin"], "r.csv:1:1", 1),
        (vec!["import", "no.csv", "--schema", "r.frame", "-o", "r.bin"], "no.csv", 1),
        (vec!["import", ".", "--schema", "r.frame", "-o", "r.bin"], "cannot read .", 1),
        (vec!["import", "r.frame", "--schema", "r.frame", "-o", "r.bin"], "no column at", 1),
    ] {
        let (said, found) = bench.fails(&args);
        assert!(said.contains(text), "{args:?}: {said}");
        assert_eq!(found, code, "{args:?}: {said}");
        assert_eq!(bench.names(), before, "{args:?}");
    }
    bench.done(&import(&["-o", "r.bin"]));
    let whole = fs::read(bench.path("r.bin")).unwrap();
    assert!(bench.fails(&import(&["-o", "r.bin"])).0.contains("r.bin exists"));
    bench.write("r.csv", "at,state,volts,run_start,run_end\n1,ON,x,1,2\n");
    let (said, _) = bench.fails(&import(&["-o", "r.bin", "--force"]));
    assert!(said.contains("line 2, column volts: \"x\" is not a number"), "{said}");
    assert_eq!(fs::read(bench.path("r.bin")).unwrap(), whole, "a failure shortens nothing");
    assert_eq!(bench.names(), ["r.bin", "r.csv", "r.frame"]);
}

#[test]
fn a_pcap_file_that_is_cut_off_is_told() {
    let bench = Bench::empty();
    bench.write("p.frame", "option time ns realtime; frame p { time at; u32 len; }\n");
    let words: [u32; 6] = [0xa1b2_c3d4, 4 << 16 | 2, 0, 0, 65535, 1];
    let mut bytes: Vec<u8> = words.into_iter().flat_map(u32::to_le_bytes).collect();
    for second in [3u32, 4] {
        bytes.extend([second, 7, 60, 60].into_iter().flat_map(u32::to_le_bytes));
        bytes.extend([0; 60]);
    }
    bytes.truncate(bytes.len() - 1);
    bench.write("p.pcap", bytes);
    let output = bench.run(&["import", "p.pcap", "--schema", "p.frame", "-o", "p.bin"]);
    let said = String::from_utf8(output.stderr).unwrap();
    assert!(output.status.success() && said.contains("cut off at byte 100"), "{said}");
    let rows = bench.done(&["sql", "p.bin", "SELECT CAST(at AS BIGINT) AS at, len FROM p"]);
    assert_eq!(rows, "at\tlen\n3000007000\t60\n");
}

#[test]
fn ctrl_c_leaves_nothing_behind() {
    let bench = bench(0);
    let mut child = bench
        .command(&["import", "-", "--schema", "r.frame", "-o", "r.bin"])
        .stdin(Stdio::piped())
        .stderr(Stdio::null())
        .spawn()
        .unwrap();
    let mut input = child.stdin.take().unwrap();
    input.write_all(b"at,state,volts,run_start,run_end\n").unwrap();
    // More data than pipes and buffers hold, so the command has begun to read.
    for _ in 0..100_000 {
        input.write_all(b"1,ON,2.5,1,2\n").unwrap();
    }
    kill_process(Pid::from_child(&child), Signal::INT).unwrap();
    // The signal ends it while it waits and while it reads.
    while child.try_wait().unwrap().is_none() && input.write_all(b"1,ON,2.5,1,2\n").is_ok() {}
    drop(input);
    assert_eq!(child.wait().unwrap().signal(), Some(2));
    assert_eq!(bench.names(), ["r.csv", "r.frame"]);
}
