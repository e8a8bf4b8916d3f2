//! Buffers in programs, libraries and plugins, alone and together: which of them merge, which stay
//! separate, and the effect of unloading one.

mod large;
mod linked;
mod loaded;
mod unloaded;

use std::collections::{HashMap, HashSet};
use std::fs;

use crate::fixtures::support::{self, Account, Bench, Table, Target};

/// Number of threads that one `go` of host.c starts.
const CREW: u64 = 4;

/// A folder with `host.c`, `plugin.c`, and both frame files compiled: `left/` and `right/`.
fn bench() -> Bench {
    let bench = Bench::new();
    bench.copy_all(&["host.c", "plugin.c"]);
    for side in ["left", "right"] {
        fs::create_dir(bench.path(side)).unwrap();
        let frames = format!("{side}/example.frame");
        let from = support::root().join("tests/targets").join(&frames);
        fs::copy(from, bench.path(&frames)).unwrap();
        bench.pptc(&[&frames]);
    }
    bench
}

/// Compiles `plugin.c` with the frames of `side` into library `name`, whose function is `function`.
fn library(bench: &Bench, side: &str, name: &str, function: &str, args: &[&str]) {
    let (include, source) = (format!("-I{side}"), format!("{side}/example.c"));
    let function = format!("-DWRITE={function}");
    let mut all = vec!["-shared", "-fPIC", &include, &function, "plugin.c", &source, "-o", name];
    if side == "right" {
        all.push("-DRIGHT");
    }
    bench.cc(&[&all, args].concat());
}

const LINK: [&str; 3] = ["-lpthread", "-ldl", "-Wl,-rpath,$ORIGIN"];

fn host(bench: &Bench, args: &[&str]) {
    bench.cc(&[&["-o", "host", "host.c"], args, &LINK].concat());
}

fn path(bench: &Bench, name: &str) -> String {
    bench.path(name).to_str().unwrap().into()
}

/// Sends it a command and waits for the answer.
fn tell(target: &mut Target, line: &str, answer: &str) {
    target.say(line);
    target.stdout.wait_for(answer);
}

fn load(bench: &Bench, target: &mut Target, name: &str, mode: &str) {
    tell(target, &format!("load {} {mode}", path(bench, name)), "loaded");
}

fn go(target: &mut Target, frames: u32) -> u64 {
    target.say(&format!("go {frames}"));
    target.written()
}

/// Text with each run of spaces reduced to one, and pids and the folder as placeholders.
fn plain(bench: &Bench, text: &str, pids: &[(u32, &str)]) -> String {
    let folder = bench.path("").to_str().unwrap().to_string();
    let mut text = text.replace(folder.trim_end_matches('/'), "DIR");
    for (pid, name) in pids {
        text = text.replace(&pid.to_string(), name);
    }
    let line = |line: &str| line.split_whitespace().collect::<Vec<_>>().join(" ") + "\n";
    text.lines().map(line).collect()
}

/// The output of `ppt list` for a target, in that form.
fn list(bench: &Bench, target: &Target, pids: &[(u32, &str)]) -> String {
    let ran = bench.ppt(&["list", &target.pid().to_string()]);
    assert_eq!((ran.code(), ran.stderr.as_str()), (0, ""));
    // The age of an agent varies.
    let lines = ran.stdout.lines().map(|line| match line.split_once(", started ") {
        Some((before, rest)) => format!("{before}{}\n", rest.split_once(" ago").unwrap().1),
        None => format!("{line}\n"),
    });
    plain(bench, &lines.collect::<String>(), pids)
}

/// Hash of a side's schema, as in names.
fn hash8(bench: &Bench, side: &str) -> String {
    let header = fs::read_to_string(bench.path(&format!("{side}/example.h"))).unwrap();
    let (_, rest) = header.split_once("\n * Schema ").unwrap();
    rest[..8].into()
}

/// Checks every frame of a thread's rounds, written `times` times each.
fn check(table: &Table, side: &str, times: u64) -> u64 {
    let (threads, rounds) = (table.numbers("thread"), table.numbers("i"));
    let mut seen: HashMap<(i64, i64), u64> = HashMap::new();
    for (row, (&thread, &i)) in threads.iter().zip(&rounds).enumerate() {
        let cell = |name: &str| table.rows[row][table.column(name)].as_str();
        *seen.entry((thread, i)).or_default() += 1;
        if side == "left" {
            let mix = (thread as u64 + 1).wrapping_mul(0x9e37_79b9_7f4a_7c15) ^ i as u64;
            assert_eq!(cell("mix").parse(), Ok(mix));
        } else {
            assert_eq!(cell("half").parse(), Ok(i as f64 * 0.5));
            assert_eq!(cell("minus").parse(), Ok(-i));
            assert_eq!(cell("text"), format!("right {}", i % 10000));
        }
    }
    assert!(seen.values().all(|&count| count == times), "each {times} times");
    let mut names: Vec<_> = table.cells("ring").into_iter().zip(table.cells("seqno")).collect();
    names.sort_unstable();
    names.dedup();
    assert_eq!(names.len(), table.rows.len(), "ring and number name one frame");
    table.rows.len() as u64
}

/// Ends the target, checks the sum and records it.
fn account(
    bench: &Bench,
    row: &str,
    case: &str,
    target: Target,
    attach: (u32, &str),
    written: u64,
) -> Account {
    target.finish();
    let (pid, said) = attach;
    let info = bench.info("out.bin");
    let account = Account::of(&info);
    account.check(written);
    assert_eq!(account.captured, written, "{said}");
    support::record(row, case, written, account, &info, support::segments_of(&[pid]));
    account
}

/// Two libraries with different frames of the same names: each has its own buffer.
fn two_of_a_name(case: &str, prepare: impl Fn(&Bench) -> Target) {
    let bench = bench();
    let mut target = prepare(&bench);
    let hashes = ["left", "right"].map(|side| hash8(&bench, side));
    let name = |side: usize| format!("example#{}", hashes[side]);
    let mut lines = [0, 1].map(|side| {
        let object = ["left", "right"][side];
        format!("{} work off symtab DIR/lib{object}.so\n", name(side))
    });
    lines.sort();
    let expected = format!("BUFFER FRAMES STATE FOUND OBJECT\n{}", lines.concat());
    assert_eq!(list(&bench, &target, &[]), expected);

    let attach = bench.attach(&target, &[]);
    let pid = attach.pid();
    let written = go(&mut target, 500);
    assert_eq!(written, CREW * 500 * 2);
    tell(&mut target, "join", "joined");
    let said = attach.stop();
    let mut names = [name(0), name(1)];
    names.sort();
    let attached = format!("attached: pid {}, buffers {}, {}", target.pid(), names[0], names[1]);
    assert!(said.contains(&attached), "{said}");
    account(&bench, "45", case, target, (pid, &said), written);
    for (side, hash) in hashes.iter().enumerate() {
        let table = bench.table("out.bin", &["-b", &format!("example#{hash}")]);
        assert_eq!(check(&table, ["left", "right"][side], 1), CREW * 500);
    }
    // Together: a column identifies the library of a row.
    let all = bench.table("out.bin", &[]);
    for name in &names {
        assert_eq!(all.cells("buffer").iter().filter(|it| *it == name).count(), 2000);
    }
}

/// Two parts with the same frames: the linker merges them into one buffer.
fn merged(case: &str, prepare: impl Fn(&Bench) -> Target) {
    let bench = bench();
    let mut target = prepare(&bench);
    let listed = list(&bench, &target, &[]);
    assert_eq!(listed.lines().count(), 2, "{listed}");
    assert!(listed.contains("\nexample work off symtab DIR/"), "{listed}");
    let attach = bench.attach(&target, &[]);
    let pid = attach.pid();
    let written = go(&mut target, 500);
    assert_eq!(written, CREW * 500 * 2);
    tell(&mut target, "join", "joined");
    let stderr = attach.stop();
    account(&bench, "21", case, target, (pid, &stderr), written);
    let table = bench.table("out.bin", &[]);
    assert_eq!(check(&table, "left", 2), written);
    let rings: HashSet<_> = table.cells("ring").into_iter().collect();
    assert_eq!(rings.len() as u64, CREW, "both parts write into the thread's one ring");
}
