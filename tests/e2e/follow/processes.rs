//! Processes and threads: they fork, start and end in every way, and handle signals.

use std::fs;

use crate::fixtures::flood::{self, count, frames};
use crate::fixtures::support::{
    Account, Attach, Bench, Kind, Target, child_of, fetched, of_both_kinds, ppt, record, rounds,
    segments_mapped, segments_of, status, wait_until,
};

/// Attaches to a process by its pid.
fn attach_pid(bench: &Bench, pid: &str, capture: &str, args: &[&str]) -> Attach {
    let mut command = bench.command(ppt());
    command.args(["attach", pid, "-o", capture]).args(bench.kind_args()).args(args);
    Attach::start(command)
}

fn fork(target: &mut Target) -> String {
    target.say("fork");
    target.stdout.wait_for("forked ")
}

fn write(target: &mut Target) -> u64 {
    target.say("write");
    target.written()
}

fn lives(pid: &str) -> bool {
    status(pid, "State:").is_some_and(|state| !state.starts_with(['Z', 'X']))
}

of_both_kinds! {
    children_write_nothing_and_pin_nothing
    a_child_is_attached_on_its_own
    ten_thousand_short_threads
    more_threads_than_rings
    storms_of_threads_beyond_the_rings
    thousands_of_idle_threads
    the_leader_is_gone
}

fn children_write_nothing_and_pin_nothing(kind: Kind) {
    let bench = flood::build_with("forks_main.c").of(kind);
    let mut target = bench.start("forks_main", &[]);
    let mut children = vec![fork(&mut target)];
    let attach = bench.attach(&target, &[]);
    children.push(fork(&mut target)); // between the write of the gate and the first frame
    let mut written = write(&mut target);
    children.push(fork(&mut target)); // after it
    written += write(&mut target);
    for child in &children {
        assert_eq!(segments_mapped(child.parse().unwrap()), 0);
    }
    let agent = attach.pid();
    fetched(&attach, 1);
    target.say("quit");
    assert!(target.wait().success());
    attach.ended(0);
    let leaks = segments_of(&[agent]);
    assert!(children.iter().all(|child| lives(child)), "the children go on");
    drop(target);

    let info = bench.info("out.bin");
    let account = Account::of(&info);
    account.check(written);
    let rows = frames(&bench, "out.bin");
    assert_eq!((written, rows.len()), (2000, 2000));
    assert!(rows.iter().all(|row| row.thread == rows[0].thread), "the parent's alone");
    assert!(rows.iter().all(|row| row.tid == row.thread));
    record("36", &kind.case("children forked before and after"), written, account, &info, leaks);
    record("55", &kind.case("child forked before the first frame"), written, account, &info, leaks);
    wait_until("the children end", || !children.iter().any(|child| lives(child)));
}

fn a_child_is_attached_on_its_own(kind: Kind) {
    let bench = flood::build_with("forks_main.c").of(kind);
    let mut target = bench.start("forks_main", &[]);
    let parent = bench.attach(&target, &["-o", "parent.bin"]);
    let early = fork(&mut target); // with a copy of the open gate
    let mut written = write(&mut target);
    let late = fork(&mut target);
    let attach = |child: &str, capture| attach_pid(&bench, child, capture, &["-d", "100ms", "-v"]);
    let attached = [attach(&early, "early.bin"), attach(&late, "late.bin")];
    let mut agents = vec![parent.pid()];
    agents.extend(attached.iter().map(Attach::pid));
    written += write(&mut target);
    for child in attached {
        let said = child.ended(0);
        assert!(said.contains(&format!("; {} ", kind.had())), "{said}");
    }
    written += write(&mut target);
    parent.stop();
    let pid = u64::from(target.pid());
    target.finish();

    let info = bench.info("parent.bin");
    let account = Account::of(&info);
    account.check(written);
    let rows = frames(&bench, "parent.bin");
    assert_eq!((written, rows.len()), (3000, 3000));
    assert!(rows.iter().all(|row| row.thread == pid && row.tid == pid));
    for (child, capture) in [(&early, "early.bin"), (&late, "late.bin")] {
        let pid: u64 = child.parse().unwrap();
        let rows = frames(&bench, capture);
        assert!(rows.len() > 10, "{capture}");
        assert!(rows.iter().all(|row| row.thread == pid && row.tid == pid));
        assert!(rows.windows(2).all(|pair| pair[0].n + 1 == pair[1].n), "none is missing");
        assert_eq!(bench.info(capture)["complete"], true);
    }
    wait_until("the children end", || !lives(&early) && !lives(&late));
    record(
        "55",
        &kind.case("child attached on its own"),
        written,
        account,
        &info,
        segments_of(&agents),
    );
}

fn ten_thousand_short_threads(kind: Kind) {
    let bench = flood::build_with("threads_main.c").of(kind);
    let mut target = bench.start("threads_main", &["10000", "8", "5"]);
    let attach = bench.attach(&target, &[]);
    let agent = attach.pid();
    let written = target.run();
    attach.stop();
    target.finish();
    let info = bench.info("out.bin");
    let account = Account::of(&info);
    account.check(written);
    assert_eq!((written, account.captured), (50_000, 50_000));
    let rows = frames(&bench, "out.bin");
    assert!(rows.iter().all(|row| row.tid == 0 || row.tid == row.thread), "no tid is wrong");
    let known = rows.iter().filter(|row| row.tid != 0).count();
    assert!(known > 0, "and some are known");
    let highest = rows.iter().map(|row| row.ring).max().unwrap();
    assert!(highest < 8, "the lowest free ring is taken, but {highest} was");
    record(
        "36",
        &kind.case("10,000 short threads"),
        written,
        account,
        &info,
        segments_of(&[agent]),
    );
}

fn more_threads_than_rings(kind: Kind) {
    let bench = flood::build_with("threads_main.c").of(kind);
    let mut target = bench.start("threads_main", &["8", "8", "500"]);
    let memory = (3 * 1024 * 56).to_string();
    let attach = bench.attach(&target, &["--slots", "1024", "--memory", &memory]);
    let agent = attach.pid();
    let mut written = target.run();
    written += target.run();
    let stderr = attach.stop();
    target.finish();
    let info = bench.info("out.bin");
    let account = Account::of(&info);
    account.check(written);
    // Three at a time found a ring.
    assert_eq!(written, 8000);
    assert_eq!(count(&info, "dropped", "no_ring"), account.dropped);
    assert!((1..=5000).contains(&account.dropped), "{account:?}");
    assert_eq!(frames(&bench, "out.bin").len() as u64, account.captured);
    let lines: Vec<&str> = stderr.lines().collect();
    assert_eq!(
        lines[0],
        "ppt: flood: 3 rings of 1,024 slots of 56 bytes (184.0 KiB), to stay within --memory 168.0 KiB"
    );
    assert_eq!(
        lines.last().unwrap(),
        &"ppt: more threads wrote at once than there were rings; attach again while they run, and \
          each gets a ring"
    );
    record("44", &kind.case("8 threads, 3 rings"), written, account, &info, segments_of(&[agent]));
}

fn storms_of_threads_beyond_the_rings(kind: Kind) {
    let bench = flood::build_with("threads_main.c").of(kind);
    let (threads, together) = (rounds(3_200, 64_000).to_string(), 64);
    let mut target = bench.start("threads_main", &[&threads, &together.to_string(), "20"]);
    let memory = (8 * 1024 * 56).to_string();
    let attach = bench.attach(&target, &["--slots", "1024", "--memory", &memory]);
    let agent = attach.pid();
    let written = target.run();
    attach.stop();
    target.finish();
    let info = bench.info("out.bin");
    let account = Account::of(&info);
    account.check(written);
    assert_eq!(written, 20 * threads.parse::<u64>().unwrap());
    assert_eq!(count(&info, "dropped", "no_ring"), account.dropped);
    assert!(account.dropped > 0 && account.captured > 0, "{account:?}");
    let rows = frames(&bench, "out.bin");
    assert_eq!(rows.len() as u64, account.captured);
    assert!(rows.iter().all(|row| row.ring < 8), "there are 8 rings");
    let case = kind.case(&format!("{threads} threads, {together} at a time, 8 rings"));
    record("36", &case, written, account, &info, segments_of(&[agent]));
}

/// How often a process has called read(2).
fn reads(pid: u32) -> u64 {
    let io = fs::read_to_string(format!("/proc/{pid}/io")).unwrap();
    io.lines().find_map(|line| line.strip_prefix("syscr: ")).unwrap().parse().unwrap()
}

/// Each has a ring that may be a dead thread's, but Ctrl-C does not wait until all of them are
/// checked.
fn thousands_of_idle_threads(kind: Kind) {
    const THREADS: u64 = 2_000;
    let bench = flood::build_with("idle_main.c").of(kind);
    let mut target = bench.start("idle_main", &[&THREADS.to_string()]);
    let attach = bench.attach(&target, &["--slots", "64"]);
    let agent = attach.pid();
    let mut written = target.run();
    written += target.run();
    fetched(&attach, 1);
    let before = reads(agent);
    attach.signal(libc::SIGINT);
    wait_until("it ends", || status(agent, "State:").is_none_or(|status| status.starts_with('Z')));
    let after = reads(agent) - before;
    // The names of 256 threads may be read once or twice before the signal arrives.
    assert!(after < THREADS / 2, "{after} reads after Ctrl-C");
    attach.ended(0);
    target.finish();
    let info = bench.info("out.bin");
    let account = Account::of(&info);
    account.check(written);
    assert_eq!((written, account.captured), (2 * THREADS, 2 * THREADS));
    let case = kind.case(&format!("{THREADS} idle threads"));
    record("36", &case, written, account, &info, segments_of(&[agent]));
}

#[test]
fn a_handler_that_writes_interrupts_a_write() {
    let bench = flood::build_with("nested_main.c");
    let mut target = bench.start("nested_main", &["200000"]);
    let attach = bench.attach(&target, &["--slots", "65536"]);
    let agent = attach.pid();
    let written = target.run();
    let handled: u64 = target.stdout.wait_for("handled ").parse().unwrap();
    attach.stop();
    target.finish();
    let info = bench.info("out.bin");
    let account = Account::of(&info);
    account.check(written);
    let nested = count(&info, "dropped", "nested");
    assert_eq!(nested, account.dropped);
    // A handler that runs between two frames writes one.
    assert!(nested > 0 && nested < handled, "{nested} of {handled}");
    assert_eq!(frames(&bench, "out.bin").len() as u64, account.captured);
    record(
        "37",
        "handler writes while a write goes on",
        written,
        account,
        &info,
        segments_of(&[agent]),
    );
}

fn the_leader_is_gone(kind: Kind) {
    let bench = flood::build_with("leader_main.c").of(kind);
    let mut target = bench.start("leader_main", &[]);
    wait_until("the leader is gone", || {
        status(target.pid(), "State:").is_some_and(|state| state.starts_with('Z'))
    });
    let attach = bench.attach(&target, &[]);
    let agent = attach.pid();
    let mut written = target.run();
    written += target.run();
    attach.stop();
    target.finish();
    let info = bench.info("out.bin");
    let account = Account::of(&info);
    account.check(written);
    let rows = frames(&bench, "out.bin");
    assert_eq!((written, rows.len()), (2000, 2000));
    record(
        "2",
        &kind.case("leader ended by pthread_exit"),
        written,
        account,
        &info,
        segments_of(&[agent]),
    );
}

#[test]
fn a_stopped_target_stays_stopped() {
    let bench = flood::build_with("alone_main.c");
    let mut target = bench.start("alone_main", &[]);
    let pid = target.pid();
    target.signal(libc::SIGSTOP);
    let is_stopped = || status(pid, "State:").unwrap().starts_with('T');
    let has_mapped = || fs::read_to_string(format!("/proc/{pid}/maps")).unwrap().contains("/SYSV");
    wait_until("it is stopped", is_stopped);
    let attach = bench.attach(&target, &[]);
    let agent = attach.pid();
    // Between two kinds of stop it may be seen to run, but only in the kernel.
    wait_until("nobody traces it", || status(pid, "TracerPid:").as_deref() == Some("0"));
    wait_until("it is stopped again", is_stopped);
    // From here on it gets no CPU: a program that ran would be switched off, and would map the
    // segment. At the same time another ppt searches all of it.
    let switches = || {
        let count = |key| status(pid, key).unwrap().parse::<u64>().unwrap();
        count("voluntary_ctxt_switches:") + count("nonvoluntary_ctxt_switches:")
    };
    let before = switches();
    let listed = bench.ppt(&["list", &pid.to_string()]);
    assert!(listed.stdout.contains(&format!("attached by ppt with pid {agent}")), "{listed:?}");
    assert!(is_stopped() && !has_mapped());
    assert_eq!(switches(), before);
    target.signal(libc::SIGCONT);
    wait_until("it writes", has_mapped);
    let written = target.run();
    attach.stop();
    target.finish();
    let info = bench.info("out.bin");
    let account = Account::of(&info);
    account.check(written);
    assert_eq!(account.captured, written);
    assert_eq!(frames(&bench, "out.bin").len() as u64, written);
    record("9", "stopped target", written, account, &info, segments_of(&[agent]));
}

/// Makes `unwind_main` unwind `way`. Returns the number of frames written, and of those with a
/// sequence number.
fn unwind(target: &mut Target, way: &str) -> (u64, u64) {
    target.say(way);
    (target.written(), flood::published(target))
}

#[test]
fn ways_out_of_a_block() {
    let bench = flood::build_with("unwind_main.c");
    let mut target = bench.start("unwind_main", &[]);
    let attach = bench.attach(&target, &[]);
    let agent = attach.pid();
    let jumped = unwind(&mut target, "jump");
    let cancelled = unwind(&mut target, "cancel");
    attach.stop();
    assert_eq!((jumped, cancelled), ((666, 666), (320, 320)));
    let info = bench.info("out.bin");
    let account = Account::of(&info);
    account.check(666 + 320);
    assert_eq!(frames(&bench, "out.bin").len(), 666 + 320);
    target.finish();
    record("43", "longjmp and cancel in a block", 986, account, &info, segments_of(&[agent]));
}

#[test]
fn threads_cancelled_inside_the_writer() {
    let bench = flood::build_with("unwind_main.c");
    let mut target = bench.start("unwind_main", &[]);
    let attach = bench.attach(&target, &["--slots", "1024"]);
    let agent = attach.pid();
    let (_, published) = unwind(&mut target, "async");
    let (written, numbered) = unwind(&mut target, "jump");
    assert_eq!(written, numbered, "others go on");
    attach.stop();
    target.finish();
    let info = bench.info("out.bin");
    let account = Account::of(&info);
    let sum = account.captured + account.lost + account.dropped;
    // A thread may have been cancelled after its frame got its number and before it was counted.
    let counted = published + numbered;
    assert!((counted..=counted + 32).contains(&sum), "{account:?}, but {counted}");
    assert_eq!(count(&info, "lost_by", "corrupt"), 0);
    assert_eq!(frames(&bench, "out.bin").len() as u64, account.captured);
    record("43", "cancelled in the writer", sum, account, &info, segments_of(&[agent]));
}

#[test]
fn a_handler_that_jumps_out_of_a_write_silences_its_thread() {
    let bench = flood::build_with("unwind_main.c");
    let mut target = bench.start("unwind_main", &[]);
    let attach = bench.attach(&target, &[]);
    let agent = attach.pid();
    let (written, published) = unwind(&mut target, "signal");
    assert_eq!((written, published), (110, 10));
    let jumped = unwind(&mut target, "jump");
    assert_eq!(jumped, (666, 666), "other threads go on");
    attach.stop();
    target.finish();
    let info = bench.info("out.bin");
    let account = Account::of(&info);
    let written = written + jumped.0;
    account.check(written);
    assert_eq!(count(&info, "dropped", "nested"), 100);
    assert_eq!(frames(&bench, "out.bin").len(), 676);
    record("37", "longjmp out of a handler", written, account, &info, segments_of(&[agent]));
}

#[test]
fn rings_of_threads_that_vanished_are_freed() {
    let bench = flood::build_with("unwind_main.c");
    let target = bench.start("unwind_main", &[]);
    let pid = target.pid();
    vanish(&bench, target, pid, "threads without destructors");
}

#[test]
fn rings_of_threads_that_vanished_in_another_pid_namespace_are_freed() {
    let bench = flood::build_with("unwind_main.c");
    let apart = ["--pid", "--fork", "--kill-child"];
    let probe = bench.command("unshare").args(apart).arg("true").status();
    if !probe.is_ok_and(|status| status.success()) {
        eprintln!("skipped: no pid namespaces are made here");
        return;
    }
    let mut command = bench.command("unshare");
    command.args(apart).arg(bench.path("unwind_main"));
    let target = Target::start(command);
    let pid = child_of(target.pid());
    vanish(&bench, target, pid, "threads without destructors, other pid namespace");
}

fn vanish(bench: &Bench, mut target: Target, pid: u32, case: &str) {
    let memory = (3 * 1024 * 56).to_string();
    let args = ["--slots", "1024", "--memory", &memory];
    let attach = attach_pid(bench, &pid.to_string(), "out.bin", &args);
    let agent = attach.pid();
    let (vanished, published) = unwind(&mut target, "raw");
    assert_eq!(vanished, 30);
    // Three rings, three threads; but the threads need not have run at the same time.
    assert!(published <= 30);
    let (waited, got) = unwind(&mut target, "wait");
    assert_eq!(got, 1);
    attach.stop();
    target.finish();
    let info = bench.info("out.bin");
    let account = Account::of(&info);
    account.check(vanished + waited);
    assert_eq!(account.captured, published + got);
    assert!(waited > 1, "there was no ring at first");
    frames(bench, "out.bin");
    record("36", case, vanished + waited, account, &info, segments_of(&[agent]));
}
