//! Every type, from one thread and from eight: each captured frame equals what was written, field
//! by field, and none is missing.

use std::collections::HashMap;

use crate::support::{Account, Bench, Table, Target};

fn build(bench: &Bench) {
    bench.copy_all(&["values_main.c", "values.frame", "clocks.frame"]);
    bench.pptc(&["values.frame", "clocks.frame"]);
    bench.cc(&["values_main.c", "values.c", "clocks.c", "-o", "values", "-lpthread"]);
}

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

fn run(threads: i64, rounds: i64) {
    let bench = Bench::new();
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
    assert_eq!(account.captured as i64, 3 * threads * rounds, "{account:?}");

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
fn one_thread() {
    run(1, 20_000);
}

#[test]
fn eight_threads() {
    run(8, 5_000);
}
