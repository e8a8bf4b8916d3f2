//! Waits for locks: a frame for each wait, and the program behaves as without the library.

use std::collections::HashMap;
use std::path::Path;
use std::process::Command;

use crate::fixtures::preloaded::{
    counts, frames, nonzero, preload, prints_the_same, python, tally,
};
use crate::fixtures::support::{Bench, Ran, Table, available, ppt, rounds, text};

/// `waiting_main`, which does not use ppt.
fn waiting() -> Bench {
    let bench = Bench::new();
    bench.copy("with/waiting_main.c");
    bench.cc(&["waiting_main.c", "-o", "waiting", "-lpthread"]);
    bench
}

/// Runs it, with an additional earlier preload. Returns its output, and the waits in the capture.
#[track_caller]
fn run(bench: &Bench, program: &[&str], before: Option<&str>) -> (HashMap<String, u64>, Table) {
    let mut command = bench.command(ppt());
    command.args(["run", "--with", "locks", "-q", "--force", "--"]).args(program);
    command.envs(before.map(|path| ("LD_PRELOAD", path)));
    let ran = Ran::of(command.output().unwrap());
    assert_eq!(ran.code(), 0, "{ran:?}");
    let (table, waiting) = frames(bench, "out.bin", "locks", "waited", "waiting");
    assert_eq!(waiting, 0, "nobody waits any more");
    (counts(&ran.stdout), table)
}

/// Checks that the frames are those that the program counted.
#[track_caller]
fn check(mut said: HashMap<String, u64>, waited: &Table) {
    let gave_up = said.remove("ETIMEDOUT").unwrap();
    assert_eq!(tally(waited, "kind"), nonzero(said));
    let errors = tally(waited, "error");
    let timed_out = libc_number("ETIMEDOUT");
    assert_eq!(errors.get(&timed_out).copied().unwrap_or(0), gave_up, "{errors:?}");
    assert!(errors.keys().all(|error| *error == "0" || *error == timed_out), "{errors:?}");
}

fn libc_number(name: &str) -> String {
    assert_eq!(name, "ETIMEDOUT");
    (nix::errno::Errno::ETIMEDOUT as i32).to_string()
}

#[test]
fn each_wait_is_a_frame() {
    let bench = waiting();
    let (said, waited) = run(&bench, &["./waiting", "waits", "20"], None);
    assert!(said.values().all(|&count| count >= 40), "{said:?}");
    check(said, &waited);
    let [starts, ends] = ["wait_start", "wait_end"].map(|text| waited.numbers(text));
    assert!(starts.iter().zip(&ends).all(|(start, end)| start < end));
    // Each names a function of the program; there are three locks and a condition.
    let from = tally(&waited, "from");
    assert!(from.keys().all(|it| it.ends_with(" (waiting)")), "{from:?}");
    assert!(from.keys().any(|it| it.starts_with("take_the_lock+0x")), "{from:?}");
    assert_eq!(tally(&waited, "lock").len(), 4);
}

#[test]
fn each_wait_for_a_condition_is_a_frame() {
    let bench = waiting();
    let (said, waited) = run(&bench, &["./waiting", "turns", "2000"], None);
    assert!(said["CONDITION"] >= 1000, "{said:?}");
    assert_eq!(tally(&waited, "kind")["CONDITION"], said["CONDITION"]);
}

/// The number of waits is unknown. There are some, and the sum that the lock guards is right.
#[test]
fn a_crowd_at_one_lock() {
    let bench = waiting();
    let (_, waited) = run(&bench, &["./waiting", "crowd", "20000"], None);
    let kinds = tally(&waited, "kind");
    assert!(kinds.len() == 1 && kinds["MUTEX"] <= 80_000, "{kinds:?}");
    assert_eq!(tally(&waited, "lock").len(), 1);
}

/// Half of the children close all descriptors first.
#[test]
fn in_children() {
    let bench = waiting();
    let (said, waited) = run(&bench, &["./waiting", "fork", "40"], None);
    assert_eq!(tally(&waited, "pid").len(), 40);
    check(said, &waited);
}

#[test]
fn functions_return_the_same() {
    let bench = Bench::new();
    bench.copy("with/returns_main.c");
    bench.compile("gcc", &["-std=gnu11", "returns_main.c", "-o", "returns", "-lpthread"]);
    prints_the_same(&bench, &["./returns"]);
}

/// Its constructor waits for locks before the library's has run.
#[test]
fn before_the_library_is_ready() {
    let bench = waiting();
    bench.copy("with/early.c");
    bench.cc(&["-shared", "-fPIC", "early.c", "-o", "libearly.so", "-lpthread"]);
    let args = ["-Wl,--no-as-needed", "-L.", "-learly", "-Wl,-rpath,$ORIGIN", "-lpthread"];
    bench.cc(&[&["waiting_main.c", "-o", "early"], &args[..]].concat());
    let mut command = bench.command(bench.path("early"));
    let off = command.env("LD_PRELOAD", preload(&bench)).args(["crowd", "10"]).output().unwrap();
    assert!(text(&off.stdout).starts_with("early 2000\n"), "{off:?}");
    let (mut said, waited) = run(&bench, &["./early", "waits", "5"], None);
    assert_eq!(said.remove("early"), Some(2000));
    check(said, &waited);
}

#[test]
fn behind_another_allocator() {
    let places = ["/usr/lib/x86_64-linux-gnu", "/usr/lib/aarch64-linux-gnu", "/usr/lib64"];
    let found = places.map(|place| format!("{place}/libjemalloc.so.2"));
    let Some(jemalloc) = found.iter().find(|path| Path::new(path).exists()) else {
        return eprintln!("skipped: libjemalloc2 is not installed");
    };
    let bench = waiting();
    let (said, waited) = run(&bench, &["./waiting", "waits", "5"], Some(jemalloc));
    check(said, &waited);
}

#[test]
fn behind_the_address_sanitizer() {
    let output = Command::new("gcc").arg("-print-file-name=libasan.so").output().unwrap();
    let sanitizer = text(&output.stdout).trim().to_owned();
    if !Path::new(&sanitizer).is_absolute() {
        return eprintln!("skipped: gcc has no libasan.so");
    }
    let bench = waiting();
    let (said, waited) = run(&bench, &["./waiting", "waits", "5"], Some(&sanitizer));
    check(said, &waited);
}

#[test]
fn with_musl() {
    if !available("musl-gcc") {
        return;
    }
    let bench = waiting();
    bench.compile("musl-gcc", &["-std=c11", "waiting_main.c", "-o", "musl", "-lpthread"]);
    let (said, waited) = run(&bench, &["./musl", "waits", "10"], None);
    check(said, &waited);
}

/// Python threads take turns using a lock and a condition of the interpreter.
#[test]
fn threads_of_python() {
    let Some(python) = python() else { return };
    let bench = Bench::new();
    let script = "import threading\nlock = threading.Lock()\nlock.acquire()\n\
                  def wait():\n    with lock: pass\n\
                  threads = [threading.Thread(target=wait) for _ in range(20)]\n\
                  [thread.start() for thread in threads]\nimport time\ntime.sleep(0.05)\n\
                  lock.release()\n[thread.join() for thread in threads]\nprint('ended 20')";
    bench.write("wait.py", script);
    let (said, waited) = run(&bench, &[python, "wait.py"], None);
    assert_eq!(said["ended"], 20);
    assert!(tally(&waited, "tid").len() >= 20, "{:?}", tally(&waited, "kind"));
}

/// Unselected buffers are not attached, so they cost nothing.
#[test]
fn the_word_decides_which_buffers_there_are() {
    let bench = waiting();
    let buffers = |with: &str, more: &[&str]| {
        let args =
            [&["run", "-q", "--force", "--with", with], more, &["--", "./waiting", "waits", "1"]];
        let ran = bench.ppt(&args.concat());
        assert_eq!(ran.code(), 0, "{ran:?}");
        let info = bench.info("out.bin");
        let buffers = info["buffers"].as_array().unwrap().iter();
        let mut names: Vec<_> =
            buffers.map(|buffer| buffer["name"].as_str().unwrap().to_owned()).collect();
        names.sort();
        names.join(" ")
    };
    assert_eq!(buffers("locks", &[]), "locks");
    assert_eq!(buffers("net", &[]), "hops net");
    assert_eq!(buffers("locks,files", &[]), "files locks");
    assert_eq!(buffers("net,locks,files", &[]), "files hops locks net");
    assert_eq!(buffers("net", &["-b", "locks"]), "locks");
    let waits = |only: &str| {
        assert_eq!(buffers("net,locks,files", &["--only", only]), "files hops locks net");
        bench.table("out.bin", &["-b", "locks", "--frame", "waited"]).rows.len()
    };
    assert_eq!((waits("waited") > 0, waits("io")), (true, 0));
    let ran = bench.ppt(&["run", "--with", "lock", "--", "true"]);
    assert_eq!(ran.code(), 125, "{ran:?}");
    assert!(ran.stderr.contains("'locks'"), "{ran:?}");
}

/// With `locks` on, and off again: 1,000 forks, with a handler for each fork.
#[test]
fn a_thousand_forks() {
    let bench = waiting();
    let number = rounds(100, 1000).to_string();
    let (said, waited) = run(&bench, &["./waiting", "fork", &number], None);
    check(said, &waited);
}
