//! Programs that filter their system calls, in the whole process or in a single thread: attaching
//! kills none of them.

use std::process::Command;

use crate::fixtures::explained::explained;
use crate::fixtures::flood;
use crate::fixtures::steady::is_root;
use crate::fixtures::support::{
    Account, Attach, Bench, Target, available, copy_program, fetched, ppt, record, segments_mapped,
    segments_of,
};

fn start(bench: &Bench) -> Target {
    bench.start("filtered_main", &[])
}

fn tell(target: &mut Target, line: &str) -> u64 {
    target.say(line);
    target.written()
}

/// Filters a thread.
fn filter(target: &mut Target, how: &str) {
    target.say(how);
    target.stdout.wait_for("filtered");
}

fn seccomp(pid: u32) -> String {
    format!(
        "ppt: process {pid} filters its system calls (seccomp), and the filter might end it at \
         shmat(2) (with --segment memfd, at memfd_create(2)); if you know that the filter allows \
         that call or returns an error: --allow seccomp\n"
    )
}

/// The attach is refused before anything is written, and the thread continues.
fn refused(how: &str, expected: impl Fn(u32) -> String) {
    let bench = flood::build_with("filtered_main.c");
    let mut target = start(&bench);
    filter(&mut target, how);
    let pid = target.pid();
    for kind in ["sysv", "memfd"] {
        let ran = bench.ppt(&["attach", &pid.to_string(), "--segment", kind]);
        let stderr = explained(&ran.stderr);
        assert_eq!(ran.code(), 1);
        assert!(crate::fixtures::steady::matches(&stderr, &expected(pid)), "{stderr}");
        assert!(!bench.path("out.bin").exists());
    }
    assert_eq!(tell(&mut target, "thread"), 0, "off");
    assert_eq!(tell(&mut target, "go"), 0, "off");
    target.finish();
}

#[test]
fn a_thread_in_strict_mode_is_refused() {
    refused("strict", |pid| {
        format!(
            "ppt: thread {{}} of process {pid} is in seccomp's strict mode: its first frame would \
             make system calls, and every call except read, write and exit ends it; if this thread \
             writes no frames: --allow seccomp\n"
        )
    });
}

#[test]
fn a_thread_with_a_filter_is_refused() {
    refused("kill", seccomp);
}

/// ppt attaches before the program filters itself, and before its first frame.
#[test]
fn a_filter_that_comes_before_the_first_frame_ends_the_capture() {
    let bench = flood::build_with("filtered_main.c");
    let mut target = start(&bench);
    let attach = bench.attach(&target, &[]);
    filter(&mut target, "kill");
    let stderr = attach.ended(1);
    assert!(stderr.contains(&seccomp(target.pid())), "{stderr}");
    assert_eq!(tell(&mut target, "thread"), 0, "off");
    target.finish();
    assert_eq!(Account::of(&bench.info("out.bin")), Account::default());
}

/// A mapped segment needs no system call that a program would forbid.
#[test]
fn a_filter_that_comes_after_the_first_frame_stands_in_nobodys_way() {
    let bench = flood::build_with_slots("filtered_main.c", 64);
    let mut target = start(&bench);
    let attach = bench.attach(&target, &["--slots", "auto"]);
    let agent = attach.pid();
    let mut written = tell(&mut target, "one");
    filter(&mut target, "kill");
    written += tell(&mut target, "thread") + tell(&mut target, "go");
    // Larger rings would have to be mapped, so the rings keep their size.
    let why = attach.stderr.wait_for("ppt: rings of flood are too small but stay at 64 slots: ");
    assert!(why.contains("filters its system calls (seccomp)"), "{why}");
    written += tell(&mut target, "thread") + tell(&mut target, "go");
    let stderr = attach.stop();
    target.finish();
    let info = bench.info("out.bin");
    let account = Account::of(&info);
    account.check(written);
    assert_eq!(account.dropped, 0, "{stderr}");
    record("25", "a filter after the first frame", written, account, &info, segments_of(&[agent]));
}

/// A filter that returns an error, as a container's runtime installs it before it starts the
/// container's program.
fn contained(bench: &Bench, name: &str, command: &[&str]) -> Command {
    copy_program(bench.path("failing_main"), bench.path(name));
    let mut unshare = bench.command("unshare");
    unshare.args(["--pid", "--fork", "./failing_main", "0"]).args(command);
    unshare
}

#[test]
fn a_container_whose_first_process_is_another() {
    if !is_root() || !available("unshare") {
        return;
    }
    let bench = flood::build_with("failing_main.c");
    let name = format!("below-{}", std::process::id());
    let shell = format!("./{name} 1000; true");
    let mut target = Target::start(contained(&bench, &name, &["/bin/sh", "-c", &shell]));
    let mut command = bench.command(ppt());
    command.args(["attach", "--name", &name]);
    let attach = Attach::spawn(command);
    let agent = attach.pid();
    let attached = attach.stderr.wait_for("attached: pid ");
    let pid = attached.split(',').next().unwrap().parse().unwrap();
    // It fails shmat(2) with an error, so the program makes its segment itself.
    let mut written = 0;
    while segments_mapped(pid) == 0 {
        written += tell(&mut target, "go");
    }
    fetched(&attach, 1);
    written += tell(&mut target, "go");
    attach.stop();
    target.finish();
    let info = bench.info("out.bin");
    let account = Account::of(&info);
    account.check(written);
    assert!(account.captured >= 1000, "{account:?}");
    record("25", "a container's filter", written, account, &info, segments_of(&[agent]));
}

#[test]
fn a_container_whose_first_process_may_have_filtered_itself() {
    if !is_root() || !available("unshare") {
        return;
    }
    let bench = flood::build_with("failing_main.c");
    let name = format!("first-{}", std::process::id());
    let mut target = Target::start(contained(&bench, &name, &[&format!("./{name}"), "1000"]));
    let ran = bench.ppt(&["attach", "--name", &name]);
    assert_eq!(ran.code(), 1);
    assert!(ran.stderr.contains("filters its system calls (seccomp)"), "{}", ran.stderr);
    assert!(!bench.path("out.bin").exists());
    assert_eq!(tell(&mut target, "go"), 0);
    target.finish();
}
