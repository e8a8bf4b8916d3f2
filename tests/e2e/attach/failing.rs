//! Targets that cannot map a segment: one attempt per value of the gate, and a reported reason.

use crate::fixtures::flood::{self, count};
use crate::fixtures::steady::is_root;
use crate::fixtures::support::{Account, Bench, Target, record, segments_of, stopped};

/// Rounds of frames, each with the gate off and with a failed one.
const ROUNDS: usize = 4;
const FRAMES: u64 = 2_000_000;

/// A target's report after a command.
struct FailureMessages {
    written: u64,
    micros: u64,
    /// Number of shmat(2) calls since its start.
    calls: u64,
}

fn tell(target: &mut Target, command: &str) -> FailureMessages {
    target.say(command);
    let number = |prefix| target.stdout.wait_for(prefix).parse().unwrap();
    FailureMessages { written: target.written(), micros: number("cpu "), calls: number("calls ") }
}

fn median(mut numbers: Vec<u64>) -> u64 {
    numbers.sort_unstable();
    (numbers[(numbers.len() - 1) / 2] + numbers[numbers.len() / 2]) / 2
}

/// Attaches to a target that cannot map the segment because of `reason`, before or after the gate
/// is open.
fn fails(reason: &str, before: bool, message: &str, row: &str) {
    let bench = flood::build_with("failing_main.c");
    let start = |bench: &Bench| bench.start("failing_main", &[&FRAMES.to_string()]);
    let (mut target, mut unattached) = (start(&bench), start(&bench));
    if before {
        tell(&mut target, reason);
    }
    let attach = bench.attach(&target, &["--allow", "seccomp", "--segment", "sysv"]);
    let agent = attach.pid();
    // The gate keeps its value while the agent does not read the target's report.
    attach.signal(libc::SIGSTOP);
    stopped(agent);
    if !before {
        tell(&mut target, reason);
    }

    let (mut off, mut failed, mut written) = (Vec::new(), Vec::new(), 0);
    for _ in 0..ROUNDS {
        let told = tell(&mut unattached, "go");
        assert_eq!((told.written, told.calls), (0, 0));
        off.push(told.micros);
        let told = tell(&mut target, "go");
        assert_eq!((told.written, told.calls), (FRAMES, 1), "one attempt for 8,000,000 frames");
        failed.push(told.micros);
        written += told.written;
    }
    let (off, failed) = (median(off), median(failed));
    println!("{reason}: {off} µs with the gate off, {failed} µs with one that failed");
    assert!(failed < off * 3 / 2, "{off} µs with the gate off, {failed} µs with one that failed");

    // The agent offers it once more, under a new value, and gives up.
    attach.signal(libc::SIGCONT);
    let told = tell(&mut target, "retry");
    assert_eq!(told.calls, 2);
    written += told.written;
    let stderr = attach.ended(1);
    let expected = format!("ppt: flood: the target could not map the segment: {message}\n");
    assert!(stderr.contains(&expected), "{stderr}");
    let told = tell(&mut target, "go");
    assert_eq!((told.written, told.calls), (0, 2), "off");
    target.finish();
    unattached.finish();

    let info = bench.info("out.bin");
    let account = Account::of(&info);
    account.check(written);
    assert_eq!(count(&info, "dropped", "not_mapped"), written);
    record(row, reason, written, account, &info, segments_of(&[agent]));
}

#[test]
fn a_filter_of_system_calls() {
    let why = "its system call filter (seccomp) refuses shmat(2)";
    fails("seccomp", true, &format!("EPERM: Operation not permitted\n  {why}"), "24");
}

#[test]
fn another_user_since_it_was_attached() {
    if !is_root() {
        return;
    }
    let why = "it may not attach the segment: its user changed, or a security module refuses \
               shmat(2)";
    fails("user", false, &format!("EACCES: Permission denied\n  {why}"), "38");
}

#[test]
fn no_room_for_the_mapping() {
    let why = "it has no room for the mapping: see ulimit -v; ask for less by --memory";
    fails("memory", true, &format!("ENOMEM: Out of memory\n  {why}"), "38");
}
