//! Spans and chains of a program that is captured: each is in one file, as an export of the whole captures
//! has it, whichever file it began in and however often the exporter was killed.

use std::process::{Command, Stdio};
use std::thread;
use std::time::Duration;

use rustix::process::Signal;
use serde_json::{Value, json};

use crate::ask::ask;
use crate::follow::delivered::{check, manifest, pattern, rows};
use crate::follow::group::ProcessGroup;
use crate::follow::killed::{self, Numbers, kills};
use crate::support::Bench;

/// Captures the program for some seconds.
fn capture(bench: &Bench, seconds: &str) -> Option<ProcessGroup> {
    killed::capture(bench, ("follow", "spans"), &[seconds, "2000"], "1M")
}

fn export(bench: &Bench) -> Command {
    let args = ["export", "out.bin", "--follow", "--format", "parquet", "-o", "ex"];
    let mut command = bench.with_tmp(&args);
    command.args(["--every", "300ms", "--bytes", "200K", "--threads", "1"]);
    command.stderr(Stdio::piped());
    command
}

/// The tables, and the columns that identify a row.
const TABLES: [(&str, &str); 3] = [
    (
        "request_spans",
        "segment, ring, seqno, id, dur IS NULL, end_segment, end_ring, end_seqno, end_tid, \
                       begin_code, end_code, state",
    ),
    (
        "nested_spans",
        "segment, ring, seqno, id, dur IS NULL, end_segment, end_ring, end_seqno, state",
    ),
    ("hop_chains", "segment, ring, seqno, id, total IS NULL, state"),
];

/// The files of an export that followed have the rows of an export of all captures, and no other.
fn equals_an_export_of_all(bench: &Bench) {
    let folder = bench.path("ex");
    check(&folder);
    let said = manifest(&folder);
    assert_eq!((&said["state"], &said["missing"]), (&json!("complete"), &json!([])));
    let open = &said["open"][0];
    assert_eq!((&open["file"], &open["let_go"]), (&Value::Null, &json!(0)), "{open}");
    assert_eq!(open["late"], 0, "a thread lost its CPU for a second: {open}");
    bench.done(&["export", "out.bin", "--format", "parquet", "-o", "all"]);
    let delivered = rows(&folder);
    for (table, columns) in TABLES {
        let counted = bench.rows(&format!("SELECT count(*) AS n FROM {table}"));
        let count = delivered.get(&format!("spans.{table}")).copied().unwrap_or_default();
        assert_eq!(json!(count), counted[0]["n"], "{table}");
        let all = bench.path("all").join(format!("{table}.parquet"));
        let all = format!("read_parquet('{}')", all.display());
        let rows = |from: &str| format!("SELECT {columns} FROM {from}");
        let (own, all_rows) = (rows("t"), rows(&all));
        let names = "segment, ring, seqno";
        let is_near = "abs(a.ts_ns - b.ts_ns) < 20000 OR a.ts_ns IS NULL AND b.ts_ns IS NULL";
        let questions = json!([
            format!("SELECT count(*) FROM ({own} EXCEPT ALL {all_rows})"),
            format!("SELECT count(*) FROM ({all_rows} EXCEPT ALL {own})"),
            format!("SELECT count(*) FROM t a JOIN {all} b USING ({names}) WHERE NOT ({is_near})"),
            format!("SELECT count(*) FROM t"),
        ]);
        if let Some(answers) =
            ask("duckdb", &pattern(&folder, &format!("spans.{table}")), &questions)
        {
            let answer = |at: usize| answers[at][0][0].clone();
            assert_eq!(
                (answer(0), answer(1), answer(2)),
                (json!(0), json!(0), json!(0)),
                "{table}"
            );
            assert_eq!(answer(3), counted[0]["n"], "{table}");
        }
    }
    let states = bench.rows("SELECT state, count(*) AS n FROM request_spans GROUP BY state");
    eprintln!("{states:?}");
    let longest = bench.rows("SELECT max(dur) AS dur FROM request_spans WHERE state = 'closed'");
    assert!(longest[0]["dur"].as_u64() > Some(500_000_000), "{longest:?}");
}

#[test]
fn an_export_that_follows_has_the_spans_and_chains_of_one_of_all() {
    let bench = Bench::empty();
    let Some(capturing) = capture(&bench, "8") else { return };
    let output = export(&bench).output().unwrap();
    let said = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{said}");
    capturing.wait();
    assert!(bench.path("out.000003.bin").exists(), "it did not rotate");
    equals_an_export_of_all(&bench);
    // Some had gone out before the end.
    let files = manifest(&bench.path("ex"))["files"].as_array().unwrap().clone();
    let of_spans =
        files.iter().filter(|file| file["name"].as_str().unwrap().contains("request_spans"));
    assert!(of_spans.count() > 2, "{files:?}");
}

#[test]
fn each_span_is_in_one_file_however_often_the_exporter_is_killed() {
    let bench = Bench::empty();
    let Some(mut capturing) = capture(&bench, "1000") else { return };
    let mut numbers = Numbers(11);
    let mut open = 0;
    for _ in 0..kills() {
        let mut exporter = ProcessGroup::spawn(&mut export(&bench));
        thread::sleep(Duration::from_millis(numbers.below(1500)));
        exporter.runs();
        drop(exporter);
        let folder = bench.path("ex");
        if !folder.exists() {
            continue;
        }
        check(&folder);
        let is_there = folder.join(crate::follow::delivered::MANIFEST).exists();
        open += usize::from(is_there && !manifest(&folder)["open"].is_null());
    }
    assert!(open > kills() / 2, "hardly anything was open between kills");
    capturing.signal(Signal::TERM);
    capturing.wait();
    let output = export(&bench).output().unwrap();
    let said = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success() && said.contains(": complete\n"), "{said}");
    equals_an_export_of_all(&bench);
}
