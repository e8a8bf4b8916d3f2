//! `ppt import`: what it writes is read by every other command, and what it refuses leaves nothing.

use std::fs;
use std::io::Write;
use std::os::unix::process::ExitStatusExt;
use std::path::Path;
use std::process::{Command, Output, Stdio};

use serde_json::Value;

const FRAMES: &str = "option time ns realtime;
enum State { OFF, ON }
frame reading { time at @at; State state; f64 volts; interval time run; }
";

/// A folder with a table of `lines` lines and its frame file; ON is every third.
fn folder(lines: u64) -> tempfile::TempDir {
    let folder = tempfile::tempdir().unwrap();
    fs::write(folder.path().join("r.frame"), FRAMES).unwrap();
    let mut table = "at,state,volts,run_start,run_end,tid\n".to_owned();
    for line in 0..lines {
        let (at, state) = (1_700_000_000 + line, if line % 3 == 0 { "ON" } else { "OFF" });
        table += &format!("{at},{state},{}.5,{at},{at}.000001,{}\n", line % 10, 1 + line % 2);
    }
    fs::write(folder.path().join("r.csv"), table).unwrap();
    folder
}

fn ppt(folder: &Path, args: &[&str]) -> Output {
    let mut command = Command::new(env!("CARGO_BIN_EXE_ppt-analysis"));
    command.args(args).current_dir(folder).stdin(Stdio::null()).output().unwrap()
}

fn done(folder: &Path, args: &[&str]) -> String {
    let output = ppt(folder, args);
    assert!(output.status.success(), "{args:?}: {}", String::from_utf8_lossy(&output.stderr));
    String::from_utf8(output.stdout).unwrap()
}

fn fails(folder: &Path, args: &[&str]) -> (String, i32) {
    let output = ppt(folder, args);
    (String::from_utf8(output.stderr).unwrap(), output.status.code().unwrap())
}

fn names(folder: &Path) -> Vec<String> {
    let files = fs::read_dir(folder).unwrap();
    let mut names: Vec<_> =
        files.map(|it| it.unwrap().file_name().into_string().unwrap()).collect();
    names.sort();
    names
}

const UNITS: [&str; 6] = ["--unit", "at=s", "--unit", "run_start=s", "--unit", "run_end=s"];

fn import<'a>(more: &[&'a str]) -> Vec<&'a str> {
    [&["import", "r.csv", "--schema", "r.frame"], &UNITS[..], more].concat()
}

#[test]
fn every_command_reads_what_was_imported() {
    let folder = folder(300);
    let folder = folder.path();
    let said = ppt(folder, &import(&["-o", "r.bin", "--host", "probe", "--tag", "site=roof"]));
    let said = String::from_utf8(said.stderr).unwrap();
    assert!(said.contains("300 frames from r.csv in r.bin"), "{said}");
    let query = "SELECT state, count(*) AS n, sum(volts) AS v, max(CAST(run AS BIGINT)) AS run, \
                 min(CAST(ts AS BIGINT)) AS first, count(DISTINCT tid) AS threads, min(host) AS h \
                 FROM reading GROUP BY state ORDER BY state";
    let text = done(folder, &["sql", "r.bin", query, "--format", "jsonl"]);
    let rows: Vec<Value> = text.lines().map(|it| serde_json::from_str(it).unwrap()).collect();
    let whole = |row: &Value| (row["state"].clone(), row["n"].clone(), row["threads"].clone());
    assert_eq!(whole(&rows[0]), ("OFF".into(), 200.into(), 2.into()));
    assert_eq!(whole(&rows[1]), ("ON".into(), 100.into(), 2.into()));
    // 0.5 to 9.5, each thirty times.
    let volts: f64 = rows.iter().map(|row| row["v"].as_f64().unwrap()).sum();
    assert_eq!(volts, 30.0 * 50.0);
    assert_eq!((&rows[0]["run"], &rows[0]["h"]), (&1000.into(), &"probe".into()));
    assert_eq!(rows[1]["first"], 1_700_000_000_000_000_000i64);
    assert!(done(folder, &["stat", "r.bin"]).contains("volts"));
    assert!(done(folder, &["report", "r.bin"]).contains("reading"));
    let trace = done(folder, &["export", "r.bin", "--format", "chrome"]);
    let trace: Value = serde_json::from_str(&trace).unwrap();
    let slices = trace["traceEvents"].as_array().unwrap().iter().filter(|it| it["ph"] == "X");
    assert_eq!(slices.count(), 300);
    let sources = done(folder, &["sql", "r.bin", "SELECT tag_site FROM sources"]);
    assert!(sources.contains("roof"), "{sources}");
}

#[test]
fn what_is_refused_leaves_nothing_behind() {
    let folder = folder(3);
    let folder = folder.path();
    let before = ["r.csv", "r.frame"];
    for (args, text, code) in [
        (import(&["-o", "r.csv", "--force"]), "r.csv", 1),
        (import(&["-o", "no/r.bin"]), "no", 1),
        (import(&["-o", "r.bin", "--skip", "x"]), "no column has the heading x", 1),
        (import(&["-o", "r.bin", "--column", "vlts=at"]), "did you mean volts?", 1),
        (import(&["-o", "r.bin", "--frame", "redding"]), "did you mean reading?", 1),
        (import(&["-o", "r.bin", "--epoch", "500"]), "--epoch is a time in UTC", 2),
        (import(&["-o", "r.bin", "--unit", "volts=h"]), "s, ms, us or ns", 2),
        (import(&["-o", "r.bin", "--delimiter", ";"]), "no column", 1),
        (vec!["import", "r.csv", "--schema", "r.frame", "-o", "r.bin"], "--unit FIELD=s", 1),
        (vec!["import", "r.csv", "--schema", "r.csv", "-o", "r.bin"], "r.csv:1:1", 1),
        (vec!["import", "no.csv", "--schema", "r.frame", "-o", "r.bin"], "no.csv", 1),
        (vec!["import", ".", "--schema", "r.frame", "-o", "r.bin"], "cannot read .", 1),
        (vec!["import", "r.frame", "--schema", "r.frame", "-o", "r.bin"], "no column at", 1),
    ] {
        let (said, found) = fails(folder, &args);
        assert!(said.contains(text), "{args:?}: {said}");
        assert_eq!(found, code, "{args:?}: {said}");
        assert_eq!(names(folder), before, "{args:?}");
    }
    done(folder, &import(&["-o", "r.bin"]));
    let whole = fs::read(folder.join("r.bin")).unwrap();
    assert!(fails(folder, &import(&["-o", "r.bin"])).0.contains("r.bin exists"));
    fs::write(folder.join("r.csv"), "at,state,volts,run_start,run_end\n1,ON,x,1,2\n").unwrap();
    let (said, _) = fails(folder, &import(&["-o", "r.bin", "--force"]));
    assert!(said.contains("line 2, column volts: \"x\" is not a number"), "{said}");
    assert_eq!(fs::read(folder.join("r.bin")).unwrap(), whole, "a failure shortens nothing");
    assert_eq!(names(folder), ["r.bin", "r.csv", "r.frame"]);
}

#[test]
fn a_pcap_file_that_is_cut_off_is_told() {
    let folder = tempfile::tempdir().unwrap();
    let folder = folder.path();
    fs::write(folder.join("p.frame"), "option time ns realtime; frame p { time at; u32 len; }\n")
        .unwrap();
    let words: [u32; 6] = [0xa1b2_c3d4, 4 << 16 | 2, 0, 0, 65535, 1];
    let mut bytes: Vec<u8> = words.into_iter().flat_map(u32::to_le_bytes).collect();
    for second in [3u32, 4] {
        bytes.extend([second, 7, 60, 60].into_iter().flat_map(u32::to_le_bytes));
        bytes.extend([0; 60]);
    }
    bytes.truncate(bytes.len() - 1);
    fs::write(folder.join("p.pcap"), bytes).unwrap();
    let output = ppt(folder, &["import", "p.pcap", "--schema", "p.frame", "-o", "p.bin"]);
    let said = String::from_utf8(output.stderr).unwrap();
    assert!(output.status.success() && said.contains("cut off at byte 100"), "{said}");
    let rows = done(folder, &["sql", "p.bin", "SELECT CAST(at AS BIGINT) AS at, len FROM p"]);
    assert_eq!(rows, "at\tlen\n3000007000\t60\n");
}

#[test]
fn ctrl_c_leaves_nothing_behind() {
    let folder = folder(0);
    let folder = folder.path();
    let mut child = Command::new(env!("CARGO_BIN_EXE_ppt-analysis"))
        .args(["import", "-", "--schema", "r.frame", "-o", "r.bin"])
        .current_dir(folder)
        .stdin(Stdio::piped())
        .stderr(Stdio::null())
        .spawn()
        .unwrap();
    let mut input = child.stdin.take().unwrap();
    input.write_all(b"at,state,volts,run_start,run_end\n").unwrap();
    // More than pipes and buffers hold: it has read, and reads on.
    for _ in 0..100_000 {
        input.write_all(b"1,ON,2.5,1,2\n").unwrap();
    }
    let pid = child.id().to_string();
    assert!(Command::new("kill").args(["-INT", &pid]).status().unwrap().success());
    // It waits for more, or does not: it ends by the signal either way.
    while child.try_wait().unwrap().is_none() && input.write_all(b"1,ON,2.5,1,2\n").is_ok() {}
    drop(input);
    assert_eq!(child.wait().unwrap().signal(), Some(2));
    assert_eq!(names(folder), ["r.csv", "r.frame"]);
}
