//! A target whose frames show when they are torn, and the check that none is.

use std::collections::HashMap;
use std::fs;
use std::process::Command;

use serde_json::Value;

use crate::support::{Bench, Target};

/// Builds `tests/targets/flood_main.c` as `flood`.
pub fn build() -> Bench {
    let bench = build_with("flood_main.c");
    fs::rename(bench.path("flood_main"), bench.path("flood")).unwrap();
    bench
}

/// Builds a program around the frames of `flood.frame`. What it defines as WRAP_END comes before
/// the end of the writer, REAL_END.
pub fn build_with(main: &str) -> Bench {
    build_with_slots(main, 16384)
}

/// The same with rings of so many slots.
pub fn build_with_slots(main: &str, slots: u32) -> Bench {
    let bench = Bench::new();
    bench.copy_all(&["flood.frame", "flood_main.c", main, "pattern.h"]);
    let schema = fs::read_to_string(bench.path("flood.frame")).unwrap();
    let sized = schema.replace("buffer flood 16384;", &format!("buffer flood {slots};"));
    bench.write("flood.frame", &sized);
    bench.pptc(&["flood.frame"]);
    let program = main.strip_suffix(".c").unwrap();
    let files = [main, "flood.c", "-o", program, "-lpthread"];
    if !fs::read_to_string(bench.path(main)).unwrap().contains("WRAP_END") {
        bench.cc(&files);
        return bench;
    }
    let end = symbol(&bench, "end");
    let real = format!("-DREAL_END=__real_{end}");
    let wrap = format!("-DWRAP_END=__wrap_{end}");
    let link = format!("-Wl,--wrap={end}");
    bench.cc(&[&[&*real, &wrap, &link], &files[..]].concat());
    bench
}

/// A program of the folder that gets what processors the others leave: for those that never rest.
pub fn leisurely(bench: &Bench, program: &str) -> Command {
    let mut command = bench.command("nice");
    command.args(["-n", "19"]).arg(bench.path(program));
    command
}

/// Starts `flood` with an endless loop in each of `threads` threads.
pub fn start_endless(bench: &Bench, threads: &str) -> Target {
    let mut command = leisurely(bench, "flood");
    command.args([threads, "0"]);
    let mut target = Target::start(command);
    target.say("start");
    target
}

/// The generated symbol that ends in `suffix`: it carries the schema's hash.
fn symbol(bench: &Bench, suffix: &str) -> String {
    let header = fs::read_to_string(bench.path("flood.h")).unwrap();
    let hash = &header.split("ppt1_flood_").nth(1).expect("a symbol with a hash")[..8];
    format!("ppt1_flood_{hash}_{suffix}")
}

/// Frames that got a sequence number, as the target counted them in its last round.
pub fn published(target: &Target) -> u64 {
    target.stdout.wait_for("published ").parse().unwrap()
}

/// One row of a capture.
#[derive(Debug, Clone, Copy)]
pub struct Beat {
    pub segment: u64,
    pub seqno: u64,
    pub ring: u64,
    pub tid: u64,
    pub thread: u64,
    pub n: u64,
}

/// The frames of a capture, each whole, and each (ring, seqno) there once.
pub fn frames(bench: &Bench, capture: &str) -> Vec<Beat> {
    let mut last = HashMap::new();
    let beats = beats(bench, capture);
    for beat in &beats {
        let before = last.insert((beat.segment, beat.ring), beat.seqno).unwrap_or(0);
        assert!(beat.seqno > before, "after {before}: {beat:?}");
    }
    beats
}

/// The frames of a capture, each whole.
fn beats(bench: &Bench, capture: &str) -> Vec<Beat> {
    let ran = bench.ppt(&["dump", capture]);
    assert!(ran.status.success(), "{}", ran.stderr);
    let mut lines = ran.stdout.lines();
    // Where rings grew, their numbers begin anew in another segment.
    let grew = match lines.next().unwrap() {
        "seqno\tring\ttid\tthread\tn\ta\tb\tc\td" => false,
        "seqno\tring\ttid\tsegment\tthread\tn\ta\tb\tc\td" => true,
        other => panic!("{other}"),
    };
    lines
        .map(|line| {
            let mut words = [0u64; 9];
            let mut cells: Vec<&str> = line.split('\t').collect();
            let segment = if grew { u64::from_str_radix(cells.remove(3), 16).unwrap() } else { 0 };
            // A thread that is not known leaves its cell empty.
            let cells = cells.into_iter().map(|cell| match cell {
                "" => 0,
                number => number.parse().unwrap(),
            });
            words.iter_mut().zip(cells).for_each(|(to, word)| *to = word);
            let [seqno, ring, tid, thread, n, a, b, c, d] = words;
            let word = (n * 256 + thread + 1).wrapping_mul(0x9e37_79b9_7f4a_7c15);
            assert_eq!([a, b, c, d], [word, !word, word.rotate_left(32), word ^ n], "torn: {line}");
            Beat { segment, seqno, ring, tid, thread, n }
        })
        .collect()
}

/// What a capture lacks: (ring, first sequence number, count, cause).
pub fn gaps(bench: &Bench, capture: &str) -> Vec<(u64, u64, u64, String)> {
    let ran = bench.ppt(&["dump", "--gaps", capture]);
    assert!(ran.status.success(), "{}", ran.stderr);
    let mut lines = ran.stdout.lines();
    assert_eq!(lines.next(), Some("buffer\tsegment\tring\tfirst_seq\tcount\tcause"));
    let gap = |line: &str| {
        let cells: Vec<&str> = line.split('\t').collect();
        let number = |at: usize| cells[at].parse().unwrap();
        (number(2), number(3), number(4), cells[5].to_owned())
    };
    lines.map(gap).collect()
}

/// A number that a group of causes of the only buffer states.
pub fn count(info: &Value, group: &str, cause: &str) -> u64 {
    info["buffers"][0][group][cause].as_u64().unwrap()
}
