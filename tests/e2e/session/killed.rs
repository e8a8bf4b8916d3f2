//! kill -9 of the agent, or of its target, between any two system calls of attach and detach; and
//! targets that become another program, or another process, at that time.

use std::fs;

use serde_json::Value;

use crate::fixtures::flood;
use crate::fixtures::steady::{self, is_root, page};
use crate::fixtures::stepped::{self, SteppedOutcome, end};
use crate::fixtures::support::{
    Account, Bench, Kind, Target, of_both_kinds, ppt, record, rounds, segments_of, wait_until,
};

/// No accident.
const NEVER: usize = usize::MAX;

/// A `ppt attach` with an accident.
fn attach(bench: &Bench, pid: u32, at: usize, accident: impl FnOnce(u32)) -> SteppedOutcome {
    let _ = fs::remove_file(bench.path("killed.bin"));
    let mut command = bench.command(ppt());
    command.args(["attach", &pid.to_string(), "-v", "-o", "killed.bin", "--slots", "1024"]);
    command.args(bench.kind_args());
    stepped::run(command, at, accident)
}

/// The system calls to try, of an attach and detach with `calls` calls: about sixty; all of them in
/// the long form.
fn tried(calls: usize) -> impl Iterator<Item = usize> {
    let few = [7, 11, 13, 17, 23].into_iter().find(|index| calls / index <= 60).unwrap_or(29);
    (1..calls).step_by(rounds(few, 1))
}

/// Half as many, and every one of the write into the target.
fn tried_at_the_poke(whole: &SteppedOutcome) -> impl Iterator<Item = usize> {
    tried(whole.calls).step_by(2).chain(whole.held - 5..whole.held + 25)
}

/// Checks that everything on disk is readable, and that no frame is torn or duplicated.
fn captured(bench: &Bench, killed: &SteppedOutcome) -> u64 {
    let begun = fs::metadata(bench.path("killed.bin")).is_ok_and(|metadata| metadata.len() > 0);
    if !begun {
        return 0;
    }
    // If killed during its first write, the file is not a capture yet.
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

/// The last line of the output, without the reference to the explanation.
fn last(said: &str) -> &str {
    said.lines().rfind(|line| !line.starts_with("  more: ")).unwrap()
}

/// Checks that it is neither stopped nor traced.
fn runs_on(target: &Target) {
    for task in fs::read_dir(format!("/proc/{}/task", target.pid())).unwrap() {
        let status = fs::read_to_string(task.unwrap().path().join("status")).unwrap();
        let value =
            |name: &str| status.lines().find_map(|line| line.strip_prefix(name)).unwrap().trim();
        assert!(!value("State:").starts_with(['T', 't']), "{}", value("State:"));
        assert_eq!(value("TracerPid:"), "0");
    }
}

of_both_kinds! {
    the_agent_between_any_two_system_calls
    the_target_at_any_system_call_of_the_agent
    the_target_executes_another_program_at_any_system_call
    another_process_has_its_pid_at_any_system_call
}

fn the_agent_between_any_two_system_calls(kind: Kind) {
    let bench = flood::build().of(kind);
    let mut target = flood::start_endless(&bench, "2");
    let pid = target.pid();
    let whole = attach(&bench, pid, NEVER, end);
    assert_eq!(whole.code, Some(0), "{}", whole.said);
    assert!(whole.attached);

    let mut agents = vec![whole.pid];
    let mut killed = 0;
    for at in tried(whole.calls) {
        let outcome = attach(&bench, pid, at, end);
        // The number of polls of a session varies; it may end before its accident.
        assert_eq!(outcome.code.is_none(), outcome.calls >= at, "{}", outcome.said);
        killed += u64::from(outcome.code.is_none());
        captured(&bench, &outcome);
        runs_on(&target);

        // The next session works at once, and sweeps.
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
    let begun = || fs::metadata(bench.path("next.bin")).unwrap().len() > 64 << 10;
    wait_until("frames are captured", begun);
    target.say("stop");
    let written = target.written();
    flood::published(&target);
    last.stop();
    let info = bench.info("next.bin");
    let account = Account::of(&info);
    account.check(written);
    target.finish();
    let case = kind.case(&format!("agent killed at {killed} system calls: the session after"));
    record("12", &case, written, account, &info, segments_of(&agents));
}

/// A burst that does not fit into the rings, as soon as `ppt` is attached.
fn grow(bench: &Bench, target: &mut Target, at: usize) -> SteppedOutcome {
    let _ = fs::remove_file(bench.path("killed.bin"));
    let pid = target.pid().to_string();
    let mut command = bench.command(ppt());
    command.args(["attach", &pid, "-o", "killed.bin", "--slots", "auto"]);
    stepped::run_until(command, at, end, |said| {
        if said == b"attached" {
            target.say("go");
        }
        said == b"rings of" || said == b"ppt: rin"
    })
}

#[test]
fn the_agent_while_rings_grow() {
    let bench = flood::build_with_slots("flood_main.c", 64);
    let start = || bench.start("flood_main", &["2", "5000"]);
    let mut target = start();
    let whole = grow(&bench, &mut target, NEVER);
    assert_eq!(whole.code, Some(0), "{}", whole.said);
    assert!(whole.said.contains("rings of flood grew from 64 to "), "{}", whole.said);
    target.written();
    target.finish();

    let (mut agents, mut killed) = (vec![whole.pid], 0);
    let grows = whole.attached_at..whole.calls;
    for at in grows.clone().step_by(rounds(grows.len() / 25, 1).max(1)) {
        let mut target = start();
        let outcome = grow(&bench, &mut target, at);
        killed += u64::from(outcome.code.is_none());
        agents.push(outcome.pid);
        // It was asked to write when `ppt` was attached.
        if outcome.attached {
            target.written();
        }
        runs_on(&target);

        // Whichever segment the gate names, if any: the next session works at once, exactly.
        let _ = fs::remove_file(bench.path("next.bin"));
        let next = bench.attach(&target, &["-o", "next.bin", "--slots", "auto"]);
        agents.push(next.pid());
        let written = target.run();
        let said = next.stop();
        let account = Account::of(&bench.info("next.bin"));
        account.check(written);
        assert_eq!((written, account.dropped), (10_000, 0), "call {at}: {said}");
        assert_eq!(flood::frames(&bench, "next.bin").len() as u64, account.captured);
        target.finish();
    }
    assert!(killed > 10, "{killed} of {grows:?}");
    assert_eq!(segments_of(&agents), 0);
}

fn the_target_at_any_system_call_of_the_agent(kind: Kind) {
    let bench = flood::build().of(kind);
    let start = || flood::start_endless(&bench, "2");
    let whole = attach(&bench, start().pid(), NEVER, end);
    assert_eq!(whole.code, Some(0), "{}", whole.said);

    let (mut agents, mut total) = (vec![whole.pid], Account::default());
    let mut info = serde_json::Value::Null;
    for at in tried(whole.calls).step_by(2) {
        let target = start();
        let outcome = attach(&bench, target.pid(), at, |_| end(target.pid()));
        let expected = if outcome.attached { 0 } else { 1 };
        assert_eq!(outcome.code, Some(expected), "call {at}: {}", outcome.said);
        if !outcome.attached {
            let pid = target.pid().to_string();
            assert!(last(&outcome.said).contains(&pid), "{}", outcome.said);
            // While ppt traces one of its threads, it has not ended completely.
            assert!(!outcome.said.contains("another program"), "call {at}: {}", outcome.said);
        }
        let frames = captured(&bench, &outcome);
        if outcome.attached {
            info = bench.info("killed.bin");
            let account = Account::of(&info);
            assert_eq!(account.captured, frames);
            total = account;
        }
        agents.push(outcome.pid);
    }
    assert!(agents.len() > 10, "{} of {}", agents.len(), whole.calls);
    let case = kind.case(&format!("target killed at {} system calls", agents.len() - 1));
    let written = total.captured + total.lost + total.dropped;
    record("13", &case, written, total, &info, segments_of(&agents));
}

/// A target at a fixed address, in a separate folder: its addresses will hold another program's
/// data.
fn fixed(kind: Kind) -> Bench {
    steady::build(&["-no-pie"]).of(kind)
}

/// The frames that all started sessions captured, by the counters of their targets.
#[derive(Default)]
struct Sum {
    written: u64,
    account: Account,
    info: Value,
}

impl Sum {
    /// Adds a session whose target wrote and then ended. A segment that the target made in its last
    /// moments (memfd) may be gone with it, which is reported.
    fn take(&mut self, bench: &Bench, outcome: &SteppedOutcome) {
        let counted = steady::counted(bench);
        assert_eq!(counted.start(), counted.end(), "no frame was cut off");
        let gone = outcome.said.contains("ended before its segment was fetched");
        if !outcome.attached || gone {
            return;
        }
        self.info = bench.info("killed.bin");
        let account = Account::of(&self.info);
        account.check(*counted.end());
        steady::check_frames(&bench.table("killed.bin", &[]), &self.info);
        self.written += counted.end();
        self.account.captured += account.captured;
        self.account.lost += account.lost;
        self.account.dropped += account.dropped;
    }

    fn record(self, row: &str, case: &str, leaks: usize) {
        assert_eq!(self.account.lost, 0, "a burst fits into the rings");
        record(row, case, self.written, self.account, &self.info, leaks);
    }
}

/// A target that has written nothing yet.
fn fresh(bench: &Bench) -> Target {
    fs::write(bench.path("counters"), [0; 4096]).unwrap();
    steady::start(bench)
}

/// Makes the target write some frames, if a session is attached.
fn burst(target: &mut Target) {
    target.say("burst 100");
    target.written();
}

fn the_target_executes_another_program_at_any_system_call(kind: Kind) {
    let bench = fixed(kind);
    bench.copy("other.c");
    bench.cc(&["-no-pie", "other.c", "-o", "other"]);
    let other = bench.path("other").display().to_string();
    let whole = attach(&bench, steady::start(&bench).pid(), NEVER, end);
    assert_eq!(whole.code, Some(0), "{}", whole.said);

    let (mut agents, mut changed, mut sum) = (vec![whole.pid], 0, Sum::default());
    for at in tried_at_the_poke(&whole) {
        let mut target = fresh(&bench);
        let pid = target.pid();
        let outcome = attach(&bench, pid, at, |_| {
            burst(&mut target);
            target.say(&format!("exec {other}"));
            target.stdout.wait_for("covers ");
        });
        if outcome.calls >= at {
            target.say("");
            assert_eq!(target.stdout.wait_for("i"), "ntact", "call {at}");
        }
        let (code, said) = (outcome.code, &outcome.said);
        if outcome.attached {
            assert_eq!(code, Some(0), "call {at}: {said}");
        } else {
            assert_eq!(code, Some(1), "call {at}: {said}");
            let program_changed = format!(
                "ppt: process {pid} started another program (exec) while ppt examined it; nothing \
                 was written"
            );
            let none = format!("ppt: process {pid} has no ppt buffers");
            changed += u64::from(said.contains(&program_changed));
            assert!(said.contains(&program_changed) || said.contains(&none), "call {at}: {said}");
        }
        sum.take(&bench, &outcome);
        agents.push(outcome.pid);
    }
    assert!(changed > 0, "none of {} came in between", agents.len());
    let case = kind.case(&format!("exec at {} system calls of the attach", agents.len() - 1));
    sum.record("4", &case, segments_of(&agents));
}

/// Whether a `ppt` has looked up a process by its pid: from then on it refers to that process.
fn has_looked(ppt: u32) -> bool {
    let links = fs::read_dir(format!("/proc/{ppt}/fd")).unwrap().flatten();
    let mut links = links.filter_map(|link| fs::read_link(link.path()).ok());
    links.any(|link| link.to_string_lossy().contains("pidfd"))
}

/// Whether `ppt` traces a process, or its zombie.
fn is_traced(pid: u32) -> bool {
    let status = fs::read_to_string(format!("/proc/{pid}/status")).unwrap();
    !status.contains("TracerPid:\t0\n")
}

fn another_process_has_its_pid_at_any_system_call(kind: Kind) {
    if !is_root() {
        return; // only root can choose a pid
    }
    let bench = fixed(kind);
    bench.copy("as_pid.c");
    bench.cc(&["as_pid.c", "-o", "as_pid"]);
    let whole = attach(&bench, steady::start(&bench).pid(), NEVER, end);
    assert_eq!(whole.code, Some(0), "{}", whole.said);

    let (mut agents, mut replaced, mut sum) = (vec![whole.pid], 0, Sum::default());
    for at in tried_at_the_poke(&whole) {
        let mut target = fresh(&bench);
        let pid = target.pid();
        let mut next = None;
        let outcome = attach(&bench, pid, at, |ppt| {
            let looked = has_looked(ppt);
            burst(&mut target);
            target.signal(libc::SIGKILL);
            if is_traced(pid) {
                return; // the pid is not free before ppt releases it
            }
            target.wait();
            let program = bench.path("steady").display().to_string();
            let mut other = bench.start("as_pid", &[&pid.to_string(), &program, "counters"]);
            let before = page(&mut other);
            next = Some((other, before, looked));
        });
        agents.push(outcome.pid);
        // If the pid was reused before ppt looked it up, ppt may attach to the other process.
        let Some((mut other, before, true)) = next else { continue };
        assert_eq!(page(&mut other), before, "call {at}: the other process was written to");
        let (code, said) = (outcome.code, &outcome.said);
        assert_eq!(code, Some(if outcome.attached { 0 } else { 1 }), "call {at}: {said}");
        if !outcome.attached {
            assert!(last(said).contains(&pid.to_string()), "call {at}: {said}");
        }
        replaced += 1;
        // No session is attached to the other one: its frames count nowhere.
        burst(&mut other);
        sum.take(&bench, &outcome);
        other.finish();
    }
    assert!(replaced > 10, "{replaced} of {}", agents.len());
    let case = kind.case(&format!("pid used again at {replaced} system calls of the attach"));
    sum.record("3", &case, segments_of(&agents));
}
