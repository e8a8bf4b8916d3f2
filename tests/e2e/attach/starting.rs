//! Programs that have just been started: `ppt attach` waits a moment for libraries that the dynamic
//! loader has not loaded yet, and for nothing else.

use std::fs;
use std::time::{Duration, Instant};

use crate::fixtures::steady::{build, start};
use crate::fixtures::support::{Account, Attach, Bench, Target, ppt, rounds, wait_until};

/// The longest wait, and the shortest time that proves a wait.
const PATIENCE: Duration = Duration::from_millis(200);

fn attach(bench: &Bench, target: &Target) -> Attach {
    let mut command = bench.command(ppt());
    command.args(["attach", &target.pid().to_string(), "--force"]);
    Attach::spawn(command)
}

/// Every frame that is written after the attach is captured.
fn captured(bench: &Bench, mut target: Target, attach: Attach) {
    attach.stderr.wait_for("attached:");
    target.say("burst 100");
    let written = target.written();
    attach.stop();
    Account::of(&bench.info("out.bin")).check(written);
    assert_eq!(written, 100);
    target.finish();
}

#[test]
fn attached_as_soon_as_it_is_started() {
    let bench = build(&["-pie", "-fPIE"]);
    for _ in 0..rounds(20, 1000) {
        fs::write(bench.path("counters"), [0; 4096]).unwrap();
        let mut command = bench.command(bench.path("steady"));
        command.arg("counters");
        let target = Target::spawn(command);
        let attach = attach(&bench, &target);
        captured(&bench, target, attach);
    }
}

/// `steady` with a library on which the loader blocks until the test lets it continue.
fn slow() -> (Bench, Target) {
    let bench = build(&["-pie", "-fPIE"]);
    bench.copy("slow.c");
    bench.cc(&["-shared", "-fPIC", "slow.c", "-o", "slow.so"]);
    let mut command = bench.command(bench.path("steady"));
    command.arg("counters").env("LD_PRELOAD", bench.path("slow.so"));
    let target = Target::spawn(command);
    target.stdout.wait_for("loading");
    (bench, target)
}

/// Whether a process is in a timed sleep.
fn sleeps(pid: u32) -> bool {
    let call = fs::read_to_string(format!("/proc/{pid}/syscall")).unwrap_or_default();
    let number = call.split(' ').next().and_then(|piece| piece.parse().ok());
    number == Some(libc::SYS_clock_nanosleep) || number == Some(libc::SYS_nanosleep)
}

/// How long `ppt` takes to refuse.
fn refused(bench: &Bench, target: &Target) -> Duration {
    let begun = Instant::now();
    let stderr = attach(bench, target).ended(1);
    let took = begun.elapsed();
    assert!(stderr.contains(&format!("process {} has no ppt buffers", target.pid())), "{stderr}");
    took
}

/// One of several tries must succeed, because the machine may be busy while `ppt` waits.
#[test]
fn what_is_being_loaded_is_waited_for() {
    for _ in 0..20 {
        let (bench, mut target) = slow();
        let mut attach = attach(&bench, &target);
        // It has searched and found nothing.
        let mut waits = false;
        wait_until("ppt waits, or says no", || {
            waits = sleeps(attach.pid());
            waits || attach.has_ended()
        });
        target.say("");
        if waits {
            return captured(&bench, target, attach);
        }
    }
    panic!("it never waits");
}

#[test]
fn but_not_for_long() {
    let (bench, mut target) = slow();
    assert!(refused(&bench, &target) >= PATIENCE);
    target.say("");
    let attach = attach(&bench, &target);
    captured(&bench, target, attach);
}

/// One of several tries must succeed, because the machine may be busy.
#[test]
fn an_old_program_without_buffers_is_answered_at_once() {
    let bench = build(&[]);
    let steady = start(&bench);
    let mut command = bench.command("sleep");
    command.arg("600");
    let target = Target::spawn(command);
    let began = Instant::now();
    wait_until("it is no longer young", || began.elapsed() > Duration::from_secs(1));
    let least = (0..10).map(|_| refused(&bench, &target)).min().unwrap();
    assert!(least < PATIENCE, "{least:?}");
    steady.finish();
}
