//! Every type, from one thread and from eight, in C, C++ and Python (Rust's targets are built in
//! `rust.rs`): each captured frame equals what was written, cell by cell, and none is missing.
//!
//! What must be in a cell follows from its thread and round, here and not in the targets.

use std::collections::HashMap;

use crate::python::modules;
use crate::support::{Account, Bench, Table, Target};

/// The cells that round `i` of a thread must have in a frame `every`.
fn every(thread: i64, i: i64) -> HashMap<&'static str, String> {
    let name = format!("t{thread}-{i}");
    let small = match i % 3 {
        0 => "NONE".into(),
        1 => "SOME".into(),
        _ => "9".to_string(),
    };
    let text = if i % 2 == 0 { "tab\\there, back\\\\slash, \\x1b[31m" } else { "" };
    let stamp = if i == 0 { ("0", "5") } else { ("", "5") };
    HashMap::from([
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
        ("pair_1", "-0.5".into()),
        ("stamps_0.tv_sec", if i == 0 { stamp.0.into() } else { i.to_string() }),
        ("stamps_0.tv_usec", stamp.1.into()),
        ("stamps_1.tv_sec", String::new()),
        ("stamps_1.tv_usec", String::new()),
        ("text", text.into()),
    ])
}

fn check_every(table: &Table, threads: i64, rounds: i64) {
    let (thread, i) = (table.numbers("thread"), table.numbers("i"));
    let mut next = vec![0; threads as usize];
    let columns: HashMap<_, _> = every(0, 0).into_keys().map(|it| (it, table.column(it))).collect();
    let (x, y) = (table.column("x"), table.column("y"));
    for (row, cells) in table.rows.iter().enumerate() {
        let (thread, i) = (thread[row], i[row]);
        assert_eq!(next[thread as usize], i, "thread {thread} in order and whole");
        next[thread as usize] += 1;
        for (name, value) in every(thread, i) {
            assert_eq!(cells[columns[name]], value, "{name} of thread {thread}, round {i}");
        }
        assert_eq!(cells[x].parse::<f32>().unwrap(), i as f32 * 0.25);
        assert_eq!(cells[y].parse::<f64>().unwrap(), i as f64 / 3.0);
    }
    assert!(next.iter().all(|&n| n == rounds), "{next:?}");
}

/// A frame `odd`: floats by their bits, everything else as its text.
fn check_odd(table: &Table, rows: i64) {
    const SINGLES: [u32; 7] =
        [0x7f80_0000, 0xff80_0000, 1 << 31, 1, 0x7f7f_ffff, 0x3dcc_cccd, 0x4b80_0000];
    const DOUBLES: [u64; 7] = [
        0x7ff0_0000_0000_0000,
        0xfff0_0000_0000_0000,
        1 << 63,
        1,
        0x7fef_ffff_ffff_ffff,
        0x3fb9_9999_9999_999a,
        0x4340_0000_0000_0000,
    ];
    let texts = "cut control list_0 list_1 list_2 most least spans_0 spans_1 at_start.tv_sec \
                 at_start.tv_usec at_end.tv_sec at_end.tv_usec";
    let texts: Vec<_> = texts.split_whitespace().map(|it| table.column(it)).collect();
    let flags: Vec<_> = (0..9).map(|bit| table.column(&format!("flags_{bit}"))).collect();
    let (thread, i) = (table.numbers("thread"), table.numbers("i"));
    let (f, d) = (table.cells("f"), table.cells("d"));
    assert_eq!(table.rows.len() as i64, rows);
    for (row, cells) in table.rows.iter().enumerate() {
        let (thread, i) = (thread[row], i[row]);
        let (single, double): (f32, f64) = (f[row].parse().unwrap(), d[row].parse().unwrap());
        match i as usize % 8 {
            0 => assert!(single.is_nan() && double.is_nan(), "{} {}", f[row], d[row]),
            n => assert_eq!((single.to_bits(), double.to_bits()), (SINGLES[n - 1], DOUBLES[n - 1])),
        }
        let last = match i % 256 {
            0 => "NONE".into(),
            7 => "SOME".into(),
            200 => "MANY".into(),
            number => number.to_string(),
        };
        let expected = [
            "é€".into(),
            "a\\tb\\n\\\\\\x01".into(),
            "NONE".into(),
            "MANY".into(),
            last,
            (u64::MAX - thread as u64).to_string(),
            (i64::MIN + i).to_string(),
            (-i).to_string(),
            "9223372036854775807".into(),
            (i + 1).to_string(),
            "1".into(),
            (i + 2).to_string(),
            "999999".to_string(),
        ];
        let found: Vec<_> = texts.iter().map(|&at| cells[at].clone()).collect();
        assert_eq!(found, expected, "thread {thread}, round {i}");
        for (bit, &at) in flags.iter().enumerate() {
            assert_eq!(cells[at], (i >> bit & 1).to_string(), "flag {bit} of round {i}");
        }
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

    check_every(&bench.table("out.bin", &["-b", "values", "--frame", "every"]), threads, rounds);
    let little = bench.table("out.bin", &["--frame", "little"]);
    for (i, n) in little.numbers("i").into_iter().zip(little.numbers("n")) {
        assert_eq!(n, (i * 7) & 0xffff);
    }
    let tick = bench.table("out.bin", &["--frame", "tick"]);
    for (i, cell) in tick.numbers("i").into_iter().zip(tick.cells("real")) {
        let ns = i * 1_000_000_000 + i % 1_000_000_000;
        assert_eq!(cell, if i == 0 { String::new() } else { ns.to_string() });
    }
    let odd = bench.table("out.bin", &["-b", "values", "--frame", "odd"]);
    check_odd(&odd, threads * rounds);
    // Every ring counts from 1, whatever is written into it.
    let all = bench.table("out.bin", &["-b", "values"]);
    let mut next: HashMap<i64, i64> = HashMap::new();
    for (ring, seqno) in all.numbers("ring").into_iter().zip(all.numbers("seqno")) {
        let next = next.entry(ring).or_insert(1);
        assert_eq!(seqno, *next, "ring {ring}");
        *next += 1;
    }
    // One ring a thread, each with its own thread id.
    let mut owners: HashMap<&str, &str> = HashMap::new();
    let table = bench.table("out.bin", &["--frame", "every"]);
    for ((ring, tid), thread) in
        table.cells("ring").into_iter().zip(table.cells("tid")).zip(table.cells("thread"))
    {
        assert!(!tid.is_empty(), "ring {ring} has no tid");
        let first = owners.entry(tid).or_insert(thread);
        assert_eq!(*first, thread, "one thread, one tid");
    }
    assert_eq!(owners.len() as i64, threads);
}

#[test]
fn c_from_one_thread() {
    c(1, 15_000);
}

#[test]
fn c_from_eight_threads() {
    c(8, 5_000);
}

#[test]
fn cpp_from_one_thread() {
    cpp(1, 15_000);
}

#[test]
fn cpp_from_eight_threads() {
    cpp(8, 5_000);
}

#[test]
fn python_from_one_thread() {
    python(1, 5_000);
}

#[test]
fn python_from_eight_threads() {
    python(8, 1_000);
}
