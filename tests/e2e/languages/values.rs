//! Every type, from one thread and from eight, in C, C++ and Python (Rust's targets are built in
//! `rust.rs`): the table of each kind of frame is what was written, byte for byte.
//!
//! What must be in a row follows from its thread and round, here and not in the targets.

use std::collections::HashMap;

use crate::fixtures::support::{Account, Bench, Target};
use crate::languages::python::modules;

/// Rounds of eight threads that one ring holds, should they all come by it in turn while nobody reads.
pub const MANY: i64 = 2_700;

/// The columns of a kind of frame in order, and the text in them.
type Cells = Vec<(&'static str, String)>;

/// The cells that a round (the second number) of a thread must have.
type Oracle = fn(i64, i64) -> Cells;

/// The cells that round `i` of a thread must have in a frame `every`.
fn every(thread: i64, i: i64) -> Cells {
    let name = format!("t{thread}-{i}");
    let small = match i % 3 {
        0 => "NONE".into(),
        1 => "SOME".into(),
        _ => "9".to_string(),
    };
    let text = if i % 2 == 0 { "tab\\there, back\\\\slash, \\x1b[31m" } else { "" };
    vec![
        ("thread", thread.to_string()),
        ("i", i.to_string()),
        ("a", (i as i8).wrapping_mul(3).to_string()),
        ("b", (i as u8).wrapping_mul(5).to_string()),
        ("c", (i as i16).wrapping_mul(257).to_string()),
        ("d", (i as u16).wrapping_mul(263).to_string()),
        ("e", (-i).to_string()),
        ("f", (4_000_000_000u32 + i as u32).to_string()),
        ("g", (-5_000_000_000 * i).to_string()),
        ("h", (u64::MAX - i as u64).to_string()),
        ("x", format!("{:?}", i as f32 * 0.25)),
        ("y", format!("{:?}", i as f64 / 3.0)),
        ("even", i64::from(i % 2 == 0).to_string()),
        ("took", (1_000_000_007 * i).to_string()),
        ("when.tv_sec", (1_000_000_000 + i).to_string()),
        ("when.tv_usec", (i % 1_000_000).to_string()),
        ("small", small),
        ("wide", if i % 2 == 0 { "LOW" } else { "HIGH" }.into()),
        ("name", name.chars().take(11).collect()),
        ("raw", format!("{:02x}0102ff00", i as u8)),
        ("three_0", (i as i16).to_string()),
        ("three_1", (i as i16).wrapping_neg().to_string()),
        ("three_2", "7".into()),
        ("pair_0", format!("{i}.0")),
        ("pair_1", "-0.5".into()),
        ("stamps_0.tv_sec", i.to_string()),
        ("stamps_0.tv_usec", "5".into()),
        ("stamps_1.tv_sec", String::new()),
        ("stamps_1.tv_usec", String::new()),
        ("text", text.into()),
    ]
}

fn little(thread: i64, i: i64) -> Cells {
    vec![
        ("thread", thread.to_string()),
        ("i", i.to_string()),
        ("n", ((i * 7) & 0xffff).to_string()),
    ]
}

/// What is rare in a field.
fn odd(thread: i64, i: i64) -> Cells {
    const SINGLES: [&str; 8] =
        ["NaN", "inf", "-inf", "-0.0", "1e-45", "3.4028235e+38", "0.1", "16777216.0"];
    const DOUBLES: [&str; 8] = [
        "NaN",
        "inf",
        "-inf",
        "-0.0",
        "5e-324",
        "1.7976931348623157e+308",
        "0.1",
        "9007199254740992.0",
    ];
    const FLAGS: [&str; 9] = [
        "flags_0", "flags_1", "flags_2", "flags_3", "flags_4", "flags_5", "flags_6", "flags_7",
        "flags_8",
    ];
    let last = match i % 256 {
        0 => "NONE".into(),
        7 => "SOME".into(),
        200 => "MANY".into(),
        number => number.to_string(),
    };
    let mut cells = vec![
        ("thread", thread.to_string()),
        ("i", i.to_string()),
        ("f", SINGLES[i as usize % 8].into()),
        ("d", DOUBLES[i as usize % 8].into()),
        ("cut", "é€".into()),
        ("control", "a\\tb\\n\\\\\\x01".into()),
        ("list_0", "NONE".into()),
        ("list_1", "MANY".into()),
        ("list_2", last),
    ];
    cells.extend(FLAGS.iter().enumerate().map(|(bit, &name)| (name, (i >> bit & 1).to_string())));
    cells.extend([
        ("most", (u64::MAX - thread as u64).to_string()),
        ("least", (i64::MIN + i).to_string()),
        ("spans_0", (-i).to_string()),
        ("spans_1", "9223372036854775807".into()),
        ("at_start.tv_sec", (i + 1).to_string()),
        ("at_start.tv_usec", "1".into()),
        ("at_end.tv_sec", (i + 2).to_string()),
        ("at_end.tv_usec", "999999".into()),
    ]);
    cells
}

fn tick(thread: i64, i: i64) -> Cells {
    let ns = i * 1_000_000_000 + i % 1_000_000_000;
    let real = if i == 0 { String::new() } else { ns.to_string() };
    vec![("thread", thread.to_string()), ("i", i.to_string()), ("real", real)]
}

/// Compares the whole table of a kind of frame, rows by thread and round. Where a frame was written
/// (seqno, ring, tid) is not known beforehand.
fn check_table(tsv: &str, threads: i64, rounds: i64, cells: Oracle) {
    fn line(cells: impl Iterator<Item = String>) -> String {
        cells.collect::<Vec<_>>().join("\t") + "\n"
    }
    let mut lines = tsv.split_inclusive('\n');
    let names = ["seqno", "ring", "tid"].into_iter().chain(cells(0, 0).into_iter().map(|it| it.0));
    assert_eq!(lines.next().unwrap(), line(names.map(String::from)));
    let mut rows: Vec<_> = lines.map(|line| line.splitn(4, '\t').last().unwrap()).collect();
    // Rounds of a thread stay as they are found: in order.
    rows.sort_by_key(|row| row.split('\t').next().unwrap().parse::<i64>().unwrap());
    assert_eq!(rows.len() as i64, threads * rounds);
    let all = (0..threads).flat_map(|thread| (0..rounds).map(move |i| (thread, i)));
    for (row, (thread, i)) in rows.into_iter().zip(all) {
        let expected = line(cells(thread, i).into_iter().map(|it| it.1));
        assert_eq!(row, expected, "thread {thread}, round {i}");
    }
}

fn c(threads: i64, rounds: i64) {
    run(threads, rounds, &["values_main.c"], |bench| {
        bench.pptc(&["values.frame", "clocks.frame"]);
        bench.cc(&["values_main.c", "values.c", "clocks.c", "-o", "values", "-lpthread"]);
    });
}

fn cpp(threads: i64, rounds: i64) {
    run(threads, rounds, &["values_main.cpp"], |bench| {
        bench.pptc(&["--emit", "cpp", "values.frame", "clocks.frame"]);
        let sources = ["values_main.cpp", "values.cpp", "clocks.cpp"];
        let args = ["-std=c++17", "-o", "values", "-lpthread"];
        bench.compile("g++", &[&args[..], &sources].concat());
    });
}

fn python(threads: i64, rounds: i64) {
    let bench = Bench::new();
    bench.copy_all(&["values.py", "values.frame", "clocks.frame"]);
    if !modules(&bench, &["values", "clocks"]) {
        return;
    }
    let mut command = bench.command("python3");
    command.args(["values.py", &threads.to_string(), &rounds.to_string()]);
    check(&bench, Target::start(command), threads, rounds);
}

fn run(threads: i64, rounds: i64, sources: &[&str], build: impl FnOnce(&Bench)) {
    let bench = Bench::new();
    bench.copy_all(&["values.frame", "clocks.frame"]);
    bench.copy_all(sources);
    build(&bench);
    let target = bench.start("values", &[&threads.to_string(), &rounds.to_string()]);
    check(&bench, target, threads, rounds);
}

/// Captures a started `values` program of any language, and compares.
pub fn check(bench: &Bench, mut target: Target, threads: i64, rounds: i64) {
    let attach = bench.attach(&target, &["--memory", "2G"]);
    let written = target.run();
    attach.stop();
    target.finish();
    let account = Account::of(&bench.info("out.bin"));
    account.check(written);
    assert_eq!(account.captured as i64, 4 * threads * rounds, "{account:?}");

    let kinds: [(&str, Oracle); 4] =
        [("every", every), ("little", little), ("odd", odd), ("tick", tick)];
    for (name, cells) in kinds {
        let dump = bench.ppt(&["dump", "out.bin", "--frame", name]);
        assert!(dump.status.success(), "{}", dump.stderr);
        check_table(&dump.stdout, threads, rounds, cells);
    }
    // Every ring counts from 1, whatever is written into it.
    let all = bench.table("out.bin", &["-b", "values"]);
    let mut next: HashMap<i64, i64> = HashMap::new();
    for (ring, seqno) in all.numbers("ring").into_iter().zip(all.numbers("seqno")) {
        let next = next.entry(ring).or_insert(1);
        assert_eq!(seqno, *next, "ring {ring}");
        *next += 1;
    }
    // A thread id belongs to one thread; it is not known where many took turns between two looks.
    let mut owners: HashMap<&str, &str> = HashMap::new();
    let table = bench.table("out.bin", &["--frame", "every"]);
    for ((ring, tid), thread) in
        table.cells("ring").into_iter().zip(table.cells("tid")).zip(table.cells("thread"))
    {
        assert!(!tid.is_empty() || threads > 4, "ring {ring} has no tid");
        if tid.is_empty() {
            continue;
        }
        let first = owners.entry(tid).or_insert(thread);
        assert_eq!(*first, thread, "one thread, one tid");
    }
    assert!(owners.len() as i64 <= threads);
    assert!(threads > 4 || owners.len() as i64 == threads);
}

#[test]
fn c_from_one_thread() {
    c(1, 15_000);
}

#[test]
fn c_from_eight_threads() {
    c(8, MANY);
}

#[test]
fn cpp_from_one_thread() {
    cpp(1, 15_000);
}

#[test]
fn cpp_from_eight_threads() {
    cpp(8, MANY);
}

#[test]
fn python_from_one_thread() {
    python(1, 5_000);
}

#[test]
fn python_from_eight_threads() {
    python(8, 1_000);
}
