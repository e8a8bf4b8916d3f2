//! File operations of programs: there is one frame per call, and nothing else changes.

use std::collections::HashMap;
use std::fs;

use crate::fixtures::preloaded::{counts, frames, nonzero, prints_the_same, python, tally};
use crate::fixtures::support::{Bench, Table, available};

/// `filing_main`, which does not use ppt, with these options.
fn filing(options: &[&str]) -> Bench {
    let bench = Bench::new();
    bench.copy("with/filing_main.c");
    bench.cc(&[options, &["filing_main.c", "-o", "filing"]].concat());
    bench
}

/// Runs a program. Returns its output, and the counts in the frames.
#[track_caller]
fn run(bench: &Bench, program: &[&str], skipped: i64) -> (HashMap<String, u64>, Table) {
    let with = ["run", "--with", "files", "-q", "--force", "--"];
    let ran = bench.ppt(&[&with, program].concat());
    assert_eq!(ran.code(), 0, "{ran:?}");
    let (table, unseen) = frames(bench, "out.bin", "files", "io", "skipped");
    assert_eq!(unseen, skipped);
    (counts(&ran.stdout), table)
}

#[track_caller]
fn check(mut said: HashMap<String, u64>, io: &Table) {
    let [failed, bytes] = ["failed", "bytes"].map(|name| said.remove(name).unwrap());
    assert_eq!(tally(io, "call"), nonzero(said));
    let sum: i64 = io.numbers("bytes").iter().sum();
    let errors = io.numbers("error").iter().filter(|&&number| number != 0).count();
    assert_eq!((errors as u64, sum as u64), (failed, bytes));
    let [starts, ends] = ["took_start", "took_end"].map(|text| io.numbers(text));
    assert!(starts.iter().zip(&ends).all(|(start, end)| start <= end));
}

#[test]
fn each_call_is_a_frame() {
    let bench = filing(&[]);
    let (said, io) = run(&bench, &["./filing", "calls", "20"], 0);
    assert!(said.values().all(|&count| count >= 20), "{said:?}");
    check(said, &io);
}

#[test]
fn also_of_programs_with_large_files_and_fortified() {
    let bench = filing(&["-D_FILE_OFFSET_BITS=64", "-D_FORTIFY_SOURCE=2"]);
    let (said, io) = run(&bench, &["./filing", "calls", "5"], 0);
    check(said, &io);
}

#[test]
fn with_musl() {
    if !available("musl-gcc") {
        return;
    }
    let bench = filing(&[]);
    bench.compile("musl-gcc", &["-std=c11", "filing_main.c", "-o", "musl"]);
    let (said, io) = run(&bench, &["./musl", "calls", "5"], 0);
    check(said, &io);
}

/// Only reads and writes of files are frames, even if a descriptor number was used for something
/// else before.
#[test]
fn of_numbers_that_are_used_again() {
    let bench = filing(&[]);
    let (said, io) = run(&bench, &["./filing", "numbers", "50"], 0);
    check(said, &io);
}

#[test]
fn functions_return_the_same() {
    let bench = filing(&[]);
    prints_the_same(&bench, &["./filing", "returns"]);
}

/// Calls of a program on files whose path contains this text, counted by strace.
fn traced(bench: &Bench, program: &[&str], path: &str) -> HashMap<String, u64> {
    let calls = "open,openat,creat,read,write,readv,writev,pread64,pwrite64,preadv,pwritev,fsync,\
                 fdatasync,ftruncate,rename,renameat,renameat2,unlink,unlinkat";
    let trace = format!("trace={calls}");
    let mut command = bench.command("strace");
    command.args(["-f", "-y", "-s", "0", "-o", "trace", "-e", &trace, "--"]).args(program);
    let output = command.output().unwrap();
    assert!(output.status.success(), "{output:?}");
    let mut all = HashMap::new();
    for line in fs::read_to_string(bench.path("trace")).unwrap().lines() {
        let Some((_, call)) = line.split_once(' ') else { continue };
        let Some((name, rest)) = call.trim_start().split_once('(') else { continue };
        if !rest.contains(path) {
            continue;
        }
        let name = match name {
            "open" | "openat" | "creat" => "OPEN",
            "read" | "readv" => "READ",
            "write" | "writev" => "WRITE",
            "pread64" | "preadv" => "PREAD",
            "pwrite64" | "pwritev" => "PWRITE",
            "rename" | "renameat" | "renameat2" => "RENAME",
            "unlink" | "unlinkat" => "UNLINK",
            other => &other.to_uppercase(),
        };
        *all.entry(name.to_owned()).or_default() += 1;
    }
    all
}

/// strace may not be permitted to trace.
fn has_strace(bench: &Bench) -> bool {
    available("strace")
        && bench.command("strace").args(["-o", "trace", "true"]).status().unwrap().success()
}

/// File operations of SQLite, compared with those that strace sees.
#[test]
fn of_sqlite_are_those_that_strace_counts() {
    let bench = Bench::new();
    if !available("sqlite3") || !has_strace(&bench) {
        return;
    }
    let script = "CREATE TABLE t(a); INSERT INTO t VALUES (1); INSERT INTO t SELECT a FROM t; \
                  BEGIN; INSERT INTO t VALUES (2); COMMIT; UPDATE t SET a = 3; VACUUM; \
                  SELECT count(*) FROM t; DELETE FROM t;";
    let program = ["sqlite3", "-init", "/dev/null", "test.db", script];
    // It syncs the folder, too.
    let folder = bench.path("").display().to_string();
    let expected = traced(&bench, &program, folder.trim_end_matches('/'));
    fs::remove_file(bench.path("test.db")).unwrap();
    let (_, io) = run(&bench, &program, 0);
    let found = tally(&io, "call");
    for call in ["PREAD", "PWRITE", "FDATASYNC", "UNLINK"] {
        assert!(expected[call] > 0, "{expected:?}");
        assert_eq!(found.get(call), expected.get(call), "{call}: {found:?} {expected:?}");
    }
}

#[test]
fn of_python_are_those_that_strace_counts() {
    let Some(python) = python() else { return };
    let bench = Bench::new();
    if !has_strace(&bench) {
        return;
    }
    bench.write(
        "work.py",
        "import os\n\
         for n in range(10):\n\
         \x20   fd = os.open(f'work-{n}', os.O_RDWR | os.O_CREAT)\n\
         \x20   os.dup2(fd, 900 + n)\n\
         \x20   os.close(fd)\n\
         \x20   os.write(900 + n, b'x' * 1000)\n\
         \x20   os.pwrite(900 + n, b'y' * 10, 50)\n\
         \x20   os.pread(900 + n, 20, 45)\n\
         \x20   os.lseek(900 + n, 0, 0)\n\
         \x20   os.read(900 + n, 100)\n\
         \x20   os.ftruncate(900 + n, 7)\n\
         \x20   os.fsync(900 + n)\n\
         \x20   os.fdatasync(900 + n)\n\
         \x20   os.rename(f'work-{n}', f'work-{n}-2')\n\
         \x20   os.unlink(f'work-{n}-2')\n",
    );
    let program = [python, "-I", "-S", "-B", "work.py"];
    let expected = traced(&bench, &program, "work-");
    let (_, io) = run(&bench, &program, 0);
    let (fds, calls) = (io.numbers("fd"), io.cells("call"));
    let mut found: HashMap<String, u64> = HashMap::new();
    for (fd, call) in fds.iter().zip(calls) {
        if *fd >= 900 || *fd == -1 {
            *found.entry(call.to_owned()).or_default() += 1;
        }
    }
    // Python opens many of its own files, and tries to open missing ones.
    let opened = expected["OPEN"];
    found.insert("OPEN".into(), opened);
    assert!(tally(&io, "call")["OPEN"] >= opened);
    assert_eq!((found, opened), (expected, 10));
}
