//! Nothing stops a target: whatever it waits for is not disturbed by an attach.

use std::fs;

use serde_json::Value;

use crate::fixtures::flood::{self, count, frames};
use crate::fixtures::support::{
    Account, Attach, Bench, Target, first_and_latest, ppt, record, rounds, segments_of, wait_until,
};

fn start(bench: &Bench, call: &str) -> Target {
    let target = bench.start("blocked_main", &[call]);
    wait_until("the first thread is blocked", || {
        let stat = fs::read_to_string(format!("/proc/{}/stat", target.pid())).unwrap();
        stat.rsplit(") ").next().unwrap().starts_with('S')
    });
    target
}

/// The target's final report on its call.
fn outcome(mut target: Target, call: &str) -> String {
    target.say("release");
    let answer = target.stdout.wait_for(&format!("{call}: "));
    target.finish();
    answer
}

/// Repeated attaches to a target that is blocked in `call`.
fn blocked_in(call: &str) {
    let bench = flood::build_with("blocked_main.c");
    let rounds = rounds(12, 1_000);
    let with_signals = call == "sigtimedwait";
    let queue = |target: &mut Target| {
        if with_signals {
            target.say("queue");
            target.stdout.wait_for("queued");
        }
    };
    let mut target = start(&bench, call);
    (0..rounds).for_each(|_| queue(&mut target));
    let expected = outcome(target, call);
    let _ = fs::remove_dir_all(bench.path("watched"));

    let mut target = start(&bench, call);
    let (mut agents, mut captured, mut info) = (Vec::new(), 0, Value::Null);
    for _ in 0..rounds {
        let mut command = bench.command(ppt());
        let pid = target.pid().to_string();
        command.args(["attach", &pid, "--force", "-d", "2ms", "--slots", "64"]);
        let attach = Attach::spawn(command);
        agents.push(attach.pid());
        queue(&mut target);
        attach.ended(0);
        info = bench.info("out.bin");
        assert_eq!(count(&info, "lost_by", "corrupt"), 0);
        captured += frames(&bench, "out.bin").len();
    }
    let said = outcome(target, call);
    assert_eq!(said, expected);
    let received = if with_signals { 100 * rounds + 1 } else { 0 };
    let handled = usize::from(call == "pause");
    assert_eq!(
        said,
        format!("EINTR 0, failed 0, handled {handled}, received {received}, disordered 0")
    );
    assert!(captured > 0, "the other thread wrote meanwhile");
    let account = Account::of(&info);
    let case = format!("blocked in {call}, {rounds} sessions");
    let written = account.captured + account.lost;
    record("11", &case, written, account, &info, segments_of(&first_and_latest(&agents)));
}

#[test]
fn epoll_wait() {
    blocked_in("epoll_wait");
}

#[test]
fn semop() {
    blocked_in("semop");
}

#[test]
fn recv_with_a_time_limit() {
    blocked_in("recv");
}

#[test]
fn sigtimedwait() {
    blocked_in("sigtimedwait");
}

#[test]
fn poll() {
    blocked_in("poll");
}

#[test]
fn nanosleep() {
    blocked_in("nanosleep");
}

#[test]
fn pause() {
    blocked_in("pause");
}

#[test]
fn read() {
    blocked_in("read");
}

#[test]
fn inotify() {
    blocked_in("inotify");
}
