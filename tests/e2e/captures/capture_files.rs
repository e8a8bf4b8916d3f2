//! Captures as files: complete, truncated, damaged, foreign, still being written.

use std::fs;
use std::io::{BufRead, BufReader, Read};
use std::process::Stdio;
use std::time::{Duration, Instant};

use serde_json::Value;

use crate::fixtures::explained::explained;
use crate::fixtures::steady::{assert_message, build, check_frames, start};
use crate::fixtures::support::{Account, Bench, PATIENCE, Ran, Table, ppt, text};

/// A folder with the capture `out.bin` of the target's frames after the command `say`.
fn captured(say: &str, args: &[&str]) -> Bench {
    let bench = build(&[]);
    let mut target = start(&bench);
    let attach = bench.attach(&target, args);
    target.say(say);
    let written = target.written();
    attach.stop();
    target.finish();
    Account::of(&bench.info("out.bin")).check(written);
    bench
}

/// The same with 320 frames in 8 chunks.
fn captured_in_parts() -> Bench {
    let bench = build(&[]);
    let mut target = start(&bench);
    let attach = bench.attach(&target, &[]);
    for _ in 0..8 {
        target.say("burst 40");
        let written = target.written();
        when_in_the_file(&bench, written);
    }
    attach.stop();
    target.finish();
    bench
}

/// The table of a capture that is being written, once it has this many rows: a frame is in the file
/// about 250 ms after it was found.
fn when_in_the_file(bench: &Bench, rows: u64) -> Ran {
    let start = Instant::now();
    loop {
        let ran = bench.ppt(&["dump", "out.bin"]);
        if ran.stdout.lines().count() as u64 > rows {
            return ran;
        }
        assert!(start.elapsed() < *PATIENCE, "{ran:?}");
        std::thread::sleep(Duration::from_millis(5));
    }
}

#[test]
fn a_fifo_is_read_as_a_pipe() {
    let bench = captured("burst 10", &[]);
    let made = std::process::Command::new("mkfifo").arg(bench.path("fifo")).status().unwrap();
    assert!(made.success());
    let (from, to) = (bench.path("out.bin"), bench.path("fifo"));
    let writer = std::thread::spawn(move || fs::copy(from, to));
    let ran = bench.ppt(&["dump", "fifo"]);
    assert_eq!(ran.stdout, bench.ppt(&["dump", "out.bin"]).stdout);
    assert_eq!((ran.code(), ran.stderr.as_str()), (0, ""));
    writer.join().unwrap().unwrap();
}

#[test]
fn cut_anywhere_the_rows_before_are_there() {
    let bench = captured_in_parts();
    let whole = fs::read(bench.path("out.bin")).unwrap();
    let all = bench.ppt(&["dump", "out.bin"]).stdout;
    let mut most = 0;
    for length in (1..whole.len()).step_by(97).chain([whole.len() - 1]) {
        fs::write(bench.path("cut.bin"), &whole[..length]).unwrap();
        let ran = bench.ppt(&["dump", "cut.bin"]);
        let rows = ran.stdout.lines().count().saturating_sub(1);
        assert!(rows >= most, "more of a capture has more rows");
        most = rows;
        if rows > 0 {
            assert!(all.starts_with(&ran.stdout), "{length}");
        }
        if ran.code() == 1 {
            assert_eq!(rows, 0);
            assert!(length < 1024, "{length}: {}", ran.stderr);
            continue;
        }
        let count = |rows: usize| format!("all {rows} rows before that are in the table\n");
        let cut = "ppt: cut.bin: the capture was cut off at byte {};";
        assert_message(&ran.stderr, &format!("{cut} {}", count(rows)));
        let info = bench.ppt(&["info", "cut.bin"]);
        assert_eq!(info.code(), 0);
        assert!(info.stdout.contains("end       none: cut off at byte"), "{}", info.stdout);
    }
    assert_eq!(most, 320, "only the end was cut off");
}

#[test]
fn flipped_bits_never_give_other_rows() {
    let bench = captured_in_parts();
    let whole = fs::read(bench.path("out.bin")).unwrap();
    let all = bench.ppt(&["dump", "out.bin"]).stdout;
    let mut damaged = 0;
    for at in (0..whole.len()).step_by(149) {
        let mut bytes = whole.clone();
        bytes[at] ^= 1 << (at % 8);
        fs::write(bench.path("flipped.bin"), bytes).unwrap();
        let ran = bench.ppt(&["dump", "flipped.bin"]);
        if ran.code() == 0 {
            assert_eq!(ran.stdout, all, "byte {at}");
            continue;
        }
        damaged += 1;
        assert_eq!(ran.code(), 1, "byte {at}");
        assert!(ran.stderr.starts_with("ppt: flipped.bin: "), "byte {at}: {}", ran.stderr);
        let mut rows = all.lines();
        for row in ran.stdout.lines().skip_while(|_| ran.stdout.lines().count() == 1) {
            assert!(rows.any(|it| it == row), "byte {at}: {row:?} is not of this capture");
        }
        // At most one damaged chunk is missing, and a source has a copy.
        assert!(ran.stdout.lines().count() > 320 - 40, "byte {at}");
    }
    assert!(damaged > 50, "{damaged}");
}

#[test]
fn a_capture_can_be_read_while_it_is_being_written() {
    let bench = build(&[]);
    let mut target = start(&bench);
    let attach = bench.attach(&target, &[]);
    let mut so_far = String::new();
    for total in [100, 200, 300] {
        target.say("burst 100");
        assert_eq!(target.written(), total);
        let ran = when_in_the_file(&bench, total);
        assert!(ran.stdout.starts_with(&so_far));
        so_far = ran.stdout;
        let cut =
            "ppt: out.bin: the capture was cut off at byte {}; all {} rows before that are in";
        assert_message(
            &ran.stderr,
            &format!("{cut} the table\n").replacen("{} rows", &format!("{total} rows"), 1),
        );
        assert_eq!(ran.status.code(), Some(0));
    }
    attach.stop();
    target.finish();
    let ran = bench.ppt(&["dump", "out.bin"]);
    assert_eq!((ran.stdout, ran.stderr), (so_far, String::new()));
}

#[test]
fn a_reader_that_has_enough_is_no_error() {
    let bench = captured("burst 4000", &[]);
    for args in [&["dump", "out.bin"][..], &["dump", "--format", "jsonl", "out.bin"]] {
        let mut command = bench.command(ppt());
        command.args(args).stdout(Stdio::piped()).stderr(Stdio::piped());
        let mut child = command.spawn().unwrap();
        let mut line = String::new();
        BufReader::with_capacity(64, child.stdout.take().unwrap()).read_line(&mut line).unwrap();
        assert!(!line.is_empty());
        let mut said = String::new();
        child.stderr.take().unwrap().read_to_string(&mut said).unwrap();
        assert_eq!((child.wait().unwrap().code(), said.as_str()), (Some(0), ""));
    }
}

#[test]
fn gaps_are_a_table_of_their_own() {
    let bench = captured("burst 100000", &["--slots", "64"]);
    let info = bench.info("out.bin");
    let account = Account::of(&info);
    assert!(account.lost > 0);
    check_frames(&bench.table("out.bin", &[]), &info);
    let gaps = bench.table("out.bin", &["--gaps"]);
    assert_eq!(gaps.columns, ["buffer", "segment", "ring", "first_seq", "count", "cause"]);
    assert_eq!(gaps.numbers("count").iter().sum::<i64>() as u64, account.lost);
    assert!(gaps.cells("cause").iter().all(|&cause| cause == "overrun"));
    // The missing frames are exactly those in the gaps.
    let mut there: Vec<i64> = bench.table("out.bin", &[]).numbers("seqno");
    for (first, count) in gaps.numbers("first_seq").into_iter().zip(gaps.numbers("count")) {
        there.extend(first..first + count);
    }
    there.sort_unstable();
    assert_eq!(there, (1..=100_000).collect::<Vec<_>>());
}

#[test]
fn a_part_is_cut_out_of_the_table() {
    let bench = captured_in_parts();
    let whole = bench.ppt(&["dump", "out.bin"]).stdout;
    let part = |args: &[&str]| {
        let ran = bench.ppt(&[&["dump", "out.bin"], args].concat());
        assert_eq!((ran.code(), ran.stderr.as_str()), (0, ""), "{args:?}");
        ran.stdout
    };
    let lines: Vec<&str> = whole.lines().collect();
    let numbered = part(&["--from", "39", "--to", "81"]);
    assert!(numbered.lines().eq([lines[0]].iter().chain(&lines[39..=81]).copied()), "{numbered}");
    // These frames have no time of their own: the time of their drain counts.
    assert_eq!(part(&["--from", "0s", "--to", "1h"]), whole);
    assert_eq!(part(&["--from", "2020-01-01T00:00:00Z"]), whole);
    assert_eq!(part(&["--from", "1h"]).lines().count(), 1);
    assert_eq!(part(&["--to", "@1577836800"]).lines().count(), 1);
}

#[test]
fn frames_and_buffers_that_are_not_there_are_mistakes_of_usage() {
    let bench = captured("burst 10", &[]);
    let said = |args: &[&str], expected: &str| {
        let ran = bench.ppt(&[&["dump", "out.bin"], args].concat());
        assert_eq!(explained(&ran.stderr), format!("ppt: out.bin: {expected}\n"));
        assert_eq!((ran.code(), ran.stdout.as_str()), (2, ""));
    };
    said(&["--frame", "nosuch"], "no frame is called `nosuch`; the chosen buffers have: steady");
    said(&["-b", "nosuch"], "no buffer is called `nosuch`; the capture has: steady");
    said(
        &["--gaps", "--frame", "nosuch"],
        "no frame is called `nosuch`; the chosen buffers have: steady",
    );
}

#[test]
fn every_format_says_the_same() {
    let bench = captured("threads 3 100", &[]);
    let table = bench.table("out.bin", &[]);
    assert_eq!(table.columns, ["seqno", "ring", "tid", "n", "twice", "inverse"]);
    let dump = |format: &str| {
        let ran = bench.ppt(&["dump", "--format", format, "out.bin"]);
        assert_eq!((ran.code(), ran.stderr.as_str()), (0, ""));
        ran.stdout
    };
    // No cell needs quotes here.
    let csv = dump("csv").replace("\r\n", "\n").replace(',', "\t");
    assert_eq!(csv, dump("tsv"));
    let rows: Vec<Vec<String>> = dump("jsonl").lines().map(|line| cells(line, &table)).collect();
    assert_eq!(rows, table.rows);
    let path = bench.path("table.tsv");
    let ran = bench.ppt(&["dump", "out.bin", "-o", "table.tsv"]);
    assert_eq!((ran.code(), ran.stdout.as_str(), ran.stderr.as_str()), (0, "", ""));
    assert_eq!(fs::read_to_string(path).unwrap(), dump("tsv"));
}

fn cells(line: &str, table: &Table) -> Vec<String> {
    let object: Value = serde_json::from_str(line).unwrap();
    assert_eq!(object.as_object().unwrap().len(), table.columns.len());
    table.columns.iter().map(|name| object[name].to_string()).collect()
}

#[test]
fn a_capture_may_come_through_a_pipe() {
    let bench = captured("threads 3 100", &[]);
    for command in ["dump", "info"] {
        let mut piped = bench.command(ppt());
        piped.args([command, "-"]);
        piped.stdin(fs::File::open(bench.path("out.bin")).unwrap());
        let from_file = piped.output().unwrap();
        let mut shell = bench.command("sh");
        shell.args(["-c", "cat out.bin | \"$0\" \"$1\" -", ppt(), command]);
        let from_pipe = shell.output().unwrap();
        let ran: Ran = bench.ppt(&[command, "out.bin"]);
        for output in [from_file, from_pipe] {
            assert_eq!(text(&output.stdout), ran.stdout);
            assert_eq!((output.status.code(), text(&output.stderr)), (Some(0), String::new()));
        }
    }
}
