//! Rust targets in every build configuration: the buffer is kept and found, the process reports to
//! ppt, and every value is right.

use std::collections::BTreeSet;
use std::process::Command;

use crate::fixtures::first::all_captured_in_order;
use crate::fixtures::rust::{host, plugin, program_for};
use crate::fixtures::support::{Account, Bench, Target, record, segments_of, text};
use crate::fixtures::values;

/// `first` from its first frame, `values` attached to later. A panic writes its scope unless panics
/// abort.
fn works(case: &str, triple: &str, flags: &str, last: &[&str]) {
    let bench = Bench::new();
    let first = program_for(triple, "first", flags, last);
    let first = first.to_str().unwrap();
    let (ran, agent) = bench.ppt_and_pid(&["run", "--", first, "1000", "7"]);
    assert_eq!(ran.code(), 7, "{case}: {ran:?}");
    all_captured_in_order(&bench, (&ran, agent), 1000, &format!("Rust, {case}"));

    let (ran, agent) = bench.ppt_and_pid(&["run", "--force", "--", first, "10", "panic"]);
    let aborts = last.contains(&"-Cpanic=abort");
    let (code, expected) = if aborts { (128 + libc::SIGABRT, 10) } else { (101, 11) };
    assert_eq!(ran.code(), code, "{case}: {ran:?}");
    let info = bench.info("out.bin");
    let account = Account::of(&info);
    assert_eq!(account, Account { captured: expected, ..Account::default() }, "{case}");
    record(
        "43",
        &format!("Rust panic in a scope, {case}"),
        expected,
        account,
        &info,
        segments_of(&[agent]),
    );

    let mut command = bench.command(program_for(triple, "values", flags, last));
    command.args(["2", "500"]);
    std::fs::remove_file(bench.path("out.bin")).unwrap();
    values::check(&bench, Target::start(command), 2, 500);
}

#[test]
fn panics_that_abort() {
    works("panic = abort", &host(), "", &["-Cpanic=abort"]);
}

#[test]
fn lto_for_size() {
    let last = ["-Clto=fat", "-Ccodegen-units=1", "-Cpanic=abort"];
    works("LTO, -Os, panic = abort", &host(), "-Cembed-bitcode=yes -Copt-level=s", &last);
}

#[test]
fn lto_for_speed() {
    works("LTO, -O3", &host(), "-Cembed-bitcode=yes", &["-Clto=fat", "-Ccodegen-units=1"]);
}

#[test]
fn no_optimisation() {
    works("-O0", &host(), "-Copt-level=0 -Cdebug-assertions=yes", &[]);
}

#[test]
fn static_pie() {
    works("static-pie", &host(), "-Ctarget-feature=+crt-static", &[]);
}

#[test]
fn musl() {
    let triple = host().replace("-gnu", "-musl");
    let sysroot = Command::new("rustc").args(["--print", "sysroot"]).output().unwrap();
    let there = format!("{}/lib/rustlib/{triple}", text(&sysroot.stdout).trim());
    if !std::path::Path::new(&there).exists() {
        eprintln!("skipped: rustc has no {triple}");
        return;
    }
    works("musl", &triple, "", &[]);
}

/// A cdylib is a plugin of a C program like any other.
#[test]
fn a_library_that_a_c_program_loads() {
    let bench = Bench::new();
    bench.copy("host.c");
    bench.cc(&["host.c", "-o", "host", "-lpthread", "-ldl"]);
    let mut target = bench.start("host", &[]);
    let tell = |target: &mut Target, line: &str, answer: &str| {
        target.say(line);
        target.stdout.wait_for(answer);
    };
    tell(&mut target, &format!("load {} local", plugin().display()), "loaded");
    let attach = bench.attach(&target, &["-v"]);
    let agent = attach.pid();
    target.say("go 500");
    let written = target.written();
    tell(&mut target, "unload 0", "unloaded");
    let said = attach.ended(0);
    assert!(said.contains("clocks: its library was unloaded"), "{said}");
    // The threads that used it outlive it.
    tell(&mut target, "join", "joined");
    target.finish();
    let info = bench.info("out.bin");
    let account = Account::of(&info);
    account.check(written);
    assert_eq!((account.captured, written), (2000, 2000));
    let table = bench.table("out.bin", &[]);
    let cells = table.numbers("thread").into_iter().zip(table.numbers("i"));
    let expected: BTreeSet<_> =
        (0..4).flat_map(|thread| (0..500).map(move |i| (thread, i))).collect();
    assert_eq!(cells.collect::<BTreeSet<_>>(), expected);
    record("22", "dlclose of a Rust cdylib", written, account, &info, segments_of(&[agent]));
}
