//! Interrupted commands leave nothing behind: after Ctrl-C, the command ends soon and by the signal;
//! after a full disk, with an error.

use std::fs;
use std::os::unix::process::ExitStatusExt;
use std::process::{Child, Command};
use std::thread;
use std::time::Duration;

use ppt_capture::FileHeader;
use rustix::process::{Pid, Signal, kill_process};

use crate::support::{self, Bench, head, schema};

/// Frames of a chunk.
const EACH: u32 = 5000;

const SCHEMA: &str = r#"{"v":1,"buffer":"b","slots":16,"stride":16,"frames":[{"name":"it",
    "kind":"plain","size":16,"fields":[{"name":"n","type":"u64","offset":8}]}]}"#;

/// A folder with a capture of `chunks` chunks.
pub fn bench(chunks: u32) -> Bench {
    let run = |chunk: u32| {
        let first_seq = u64::from(chunk * EACH) + 1;
        let numbers = (first_seq..).take(EACH as usize);
        let frames =
            numbers.flat_map(|number| [number, number].map(u64::to_le_bytes)).flatten().collect();
        (head(first_seq, u64::from(chunk) + 1), frames)
    };
    let runs: Vec<_> = (0..chunks).map(run).collect();
    let bench = Bench::empty();
    bench.write("out.bin", support::capture(&FileHeader::default(), &schema(SCHEMA), &runs));
    bench
}

/// Waits until a process has written a part of its answer.
fn wait_for_rows(child: &mut Child) {
    let wrote = |pid: u32| {
        let text = fs::read_to_string(format!("/proc/{pid}/io")).unwrap_or_default();
        let line = text.lines().find_map(|line| line.strip_prefix("wchar: "));
        line.and_then(|line| line.parse::<u64>().ok()).unwrap_or_default()
    };
    let wrote = |pid: u32| support::question_of(pid).map_or(0, wrote);
    while wrote(child.id()) < 1 << 16 && child.try_wait().unwrap().is_none() {
        thread::sleep(Duration::from_millis(5));
    }
}

#[test]
fn ctrl_c_leaves_nothing_behind() {
    // Much work is left when the first rows are written.
    let bench = bench(100);
    let numbers = "SELECT value FROM generate_series(1, 1000000000000)";
    let copy = format!("COPY ({numbers}) TO 'all.csv'");
    for args in [
        vec!["sql", "out.bin", numbers, "-o", "all.parquet"],
        vec!["sql", "out.bin", numbers, "-o", "all.csv"],
        vec!["sql", "out.bin", &copy],
        vec!["sql", "out.bin", "SELECT * FROM it", "-o", "all.csv"],
        vec!["export", "out.bin", "--format", "csv", "-o", "all.csv"],
        vec!["export", "out.bin", "--format", "perfetto", "-o", "all.pftrace"],
        vec!["export", "out.bin", "--format", "chrome", "-o", "all.json"],
        vec!["export", "out.bin", "--format", "ctf", "-o", "all"],
        vec!["export", "out.bin", "--format", "otlp", "-o", "all"],
        vec!["export", "out.bin", "--format", "otlp-json", "-o", "all.jsonl"],
        vec!["export", "out.bin", "--format", "jsonl", "--partition-by", "frame", "-o", "all"],
    ] {
        let mut child = bench.command(&args).spawn().unwrap();
        wait_for_rows(&mut child);
        kill_process(Pid::from_child(&child), Signal::INT).unwrap();
        assert_eq!(child.wait().unwrap().signal(), Some(2), "{args:?}");
        assert_eq!(bench.names(), ["out.bin"], "{args:?}");
    }
}

#[test]
fn a_full_disk_is_said_and_leaves_nothing_behind() {
    let bench = bench(20);
    let mut outputs = vec![
        vec!["sql", "out.bin", "SELECT * FROM it", "-o", "all.csv"],
        vec!["sql", "out.bin", "COPY (SELECT * FROM it) TO 'all.csv'"],
        vec!["export", "out.bin", "--format", "csv", "--partition-by", "frame", "-o", "all"],
        vec!["report", "out.bin", "-o", "all.html"],
        vec!["plot", "out.bin", "SELECT seqno, n FROM it", "-o", "all.svg"],
    ];
    let tables = ["parquet", "arrow", "csv", "jsonl"];
    for format in tables.into_iter().chain(["perfetto", "ctf", "chrome", "otlp", "otlp-json"]) {
        outputs.push(vec!["export", "out.bin", "--format", format, "-o", "all"]);
    }
    for args in outputs {
        // Room for one block.
        let output = Command::new("sh")
            .args(["-c", "ulimit -f 1 && exec \"$0\" \"$@\"", env!("CARGO_BIN_EXE_ppt")])
            .args(&args)
            .current_dir(bench.folder())
            .output()
            .unwrap();
        let said = String::from_utf8_lossy(&output.stderr);
        assert_eq!(output.status.code(), Some(1), "{args:?}: {said}");
        assert!(said.contains("all") && said.contains("File too large"), "{args:?}: {said}");
        assert_eq!(bench.names(), ["out.bin"], "{args:?}");
    }
}
