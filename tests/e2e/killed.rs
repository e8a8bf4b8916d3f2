//! kill -9 of the agent, or of its target, between any two system calls of attach and detach.

use std::fs;

use crate::flood;
use crate::stepped::{self, Accident, Outcome};
use crate::support::{Account, Bench, Target, ppt, record, rounds, segments_of};

/// A `ppt attach` that is to have an accident.
fn attach(bench: &Bench, target: &Target, at: usize, accident: Accident) -> Outcome {
    let _ = fs::remove_file(bench.path("killed.bin"));
    let pid = target.pid().to_string();
    let mut command = bench.command(ppt());
    command.args(["attach", &pid, "-v", "-o", "killed.bin", "--slots", "1024"]);
    stepped::run(command, at, accident)
}

/// The system calls to try, of an attach and detach that makes `calls`: some sixty; all of
/// them in the long form.
fn tried(calls: usize) -> impl Iterator<Item = usize> {
    let few = [7, 11, 13, 17, 23].into_iter().find(|it| calls / it <= 60).unwrap_or(29);
    (1..calls).step_by(rounds(few, 1))
}

/// Whatever reached the disk can be read, and no frame of it is torn or there twice.
fn captured(bench: &Bench, killed: &Outcome) -> u64 {
    let begun = fs::metadata(bench.path("killed.bin")).is_ok_and(|it| it.len() > 0);
    if !begun {
        return 0;
    }
    // Killed within its first write, a capture is not one yet.
    let ran = bench.ppt(&["info", "killed.bin"]);
    if !ran.status.success() {
        assert!(!killed.attached, "{}", ran.stderr);
        return 0;
    }
    let table = bench.ppt(&["dump", "killed.bin"]);
    if table.stdout.lines().count() < 2 {
        return 0;
    }
    flood::frames(bench, "killed.bin").len() as u64
}

/// Neither stopped nor traced.
fn runs_on(target: &Target) {
    for task in fs::read_dir(format!("/proc/{}/task", target.pid())).unwrap() {
        let status = fs::read_to_string(task.unwrap().path().join("status")).unwrap();
        let value =
            |name: &str| status.lines().find_map(|it| it.strip_prefix(name)).unwrap().trim();
        assert!(!value("State:").starts_with(['T', 't']), "{}", value("State:"));
        assert_eq!(value("TracerPid:"), "0");
    }
}

#[test]
fn the_agent_between_any_two_system_calls() {
    let bench = flood::build();
    let mut target = flood::start_endless(&bench, "2");
    let whole = attach(&bench, &target, usize::MAX, Accident::OfPpt);
    assert_eq!(whole.code, Some(0), "{}", whole.said);
    assert!(whole.attached);

    let mut agents = vec![whole.pid];
    let mut killed = 0;
    for at in tried(whole.calls) {
        let outcome = attach(&bench, &target, at, Accident::OfPpt);
        // The polls of a session are not always as many; it may end before its accident.
        assert_eq!(outcome.code.is_none(), outcome.calls >= at, "{}", outcome.said);
        killed += u64::from(outcome.code.is_none());
        captured(&bench, &outcome);
        runs_on(&target);

        // The next one works at once, and sweeps.
        let _ = fs::remove_file(bench.path("next.bin"));
        let next = bench.attach(&target, &["-o", "next.bin", "--slots", "1024"]);
        agents.push(outcome.pid);
        agents.push(next.pid());
        next.stop();
        let account = Account::of(&bench.info("next.bin"));
        assert_eq!(flood::frames(&bench, "next.bin").len() as u64, account.captured);
    }
    assert!(killed > 20, "{killed} of {}", whole.calls);

    target.say("stop");
    target.written();
    flood::published(&target);
    // At rest, the sums are exact again.
    let _ = fs::remove_file(bench.path("next.bin"));
    let last = bench.attach(&target, &["-o", "next.bin", "--slots", "1024"]);
    agents.push(last.pid());
    target.say("start");
    target.say("stop");
    let written = target.written();
    flood::published(&target);
    last.stop();
    let info = bench.info("next.bin");
    let account = Account::of(&info);
    account.check(written);
    target.finish();
    let case = format!("agent killed at {killed} system calls: the session after");
    record("12", &case, written, account, &info, segments_of(&agents));
}

#[test]
fn the_target_at_any_system_call_of_the_agent() {
    let bench = flood::build();
    let start = || flood::start_endless(&bench, "2");
    let whole = attach(&bench, &start(), usize::MAX, Accident::OfPpt);
    assert_eq!(whole.code, Some(0), "{}", whole.said);

    let (mut agents, mut frames) = (vec![whole.pid], 0);
    for at in tried(whole.calls).step_by(2) {
        let target = start();
        let outcome = attach(&bench, &target, at, Accident::Of(target.pid()));
        let expected = if outcome.attached { 0 } else { 1 };
        assert_eq!(outcome.code, Some(expected), "call {at}: {}", outcome.said);
        if !outcome.attached {
            let pid = target.pid().to_string();
            assert!(outcome.said.lines().last().unwrap().contains(&pid), "{}", outcome.said);
        }
        frames += captured(&bench, &outcome);
        if outcome.attached {
            Account::of(&bench.info("killed.bin"));
        }
        agents.push(outcome.pid);
    }
    assert_eq!(segments_of(&agents), 0);
    assert!(frames > 0 || agents.len() < 10);
}
