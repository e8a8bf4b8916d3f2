//! Programs that are slowed down, and what happens to them meanwhile.

use std::time::Duration;

use nix::time::{ClockId, clock_gettime};

use super::whatif_live::{built, live, takes};
use super::whatif_numbers as numbers;
use crate::fixtures::explained::explained;
use crate::fixtures::support::{
    Account, Attach, Bench, Target, builds, rounds, segments_of, wait_until,
};

/// The monotonic clock, in us.
fn now_us() -> u64 {
    let now = clock_gettime(ClockId::CLOCK_MONOTONIC).unwrap();
    now.tv_sec() as u64 * 1_000_000 + now.tv_nsec() as u64 / 1000
}

/// Four of six rounds make the work at least 8 times as long.
const SLOW: [&str; 6] =
    ["--speed", "work=0.1x,0.11x,0.12x,0.125x", "--round", "200ms", "--for", "600s"];

fn frames(bench: &Bench, name: &str) -> u64 {
    bench.table("out.bin", &["--frame", name]).rows.len() as u64
}

/// `begun … done … handled … failed …`.
fn told(target: &Target) -> [u64; 4] {
    let said = target.stdout.wait_for("begun ");
    let numbers: Vec<u64> = said.split(' ').filter_map(|word| word.parse().ok()).collect();
    numbers.try_into().unwrap_or_else(|numbers| panic!("{said}: {numbers:?}"))
}

#[test]
fn signal_handlers_run_while_a_thread_waits() {
    let bench = built();
    bench.copy("handled_main.c");
    bench.cc(&["-O2", "handled_main.c", "requests.c", "-o", "handled", "-pthread"]);
    let mut target = bench.start("handled", &[]);
    let mut ran = Attach::start(live(&bench, &target, &SLOW));
    // At the speeds of the baselines, it would do 300.
    let (mut done, mut served) = (0, 0);
    let mut run = |mode: &str| {
        target.say(mode);
        let said = told(&target);
        done += said[1];
        said
    };
    wait_until("the rounds begin", || run("plain")[0] < 150);
    for mode in ["frames", "jump", "fork", "exit"] {
        for _ in 0..4 {
            let [begun, whole, handled, failed] = run(mode);
            assert!(begun > 0 && handled > 0 && failed == 0, "{mode}: {begun} {handled} {failed}");
            // A request that is left by a jump, or by the end of its thread, has no end.
            let left = if ["jump", "exit"].contains(&mode) { handled } else { 0 };
            assert!(whole <= begun && begun <= whole + left + 1, "{mode}: {begun} {whole} {left}");
            served += if mode == "frames" { handled } else { 0 };
        }
    }
    target.say("exec");
    target.stdout.wait_for("again");
    wait_until("ppt ends", || ran.has_ended());
    let account = Account::of(&bench.info("out.bin"));
    let (parts, handlers) = (frames(&bench, "part"), frames(&bench, "served"));
    // Handlers that interrupt the writer itself write nothing, nor does a thread that such a handler's jump has taken
    // out of it.
    assert!(account.lost == 0 && handlers <= served, "{account:?}, {handlers} of {served}");
    assert!(served - handlers <= account.dropped, "{account:?}, {handlers} of {served}");
    let written = parts + handlers + account.dropped;
    assert!(written >= done + served, "{account:?}, {parts} of {done}, {handlers} of {served}");
    assert!(parts > done / 2 && handlers > served / 2, "{account:?}, {parts} of {done}");
    target.finish();
}

#[test]
fn nobody_waits_for_a_ppt_that_is_gone() {
    let bench = built();
    let mut target = bench.start("requests", &["20000"]);
    target.say("tell");
    let mut agents = Vec::new();
    let mut waits = Vec::new();
    for number in 0..rounds(6, 500) as u64 {
        let args = ["--speed", "work=0.01x,0.011x,0.012x", "--round", "2s", "--for", "3s"];
        let ran = Attach::start(live(&bench, &target, &args));
        agents.push(ran.pid());
        // Rounds begin after half a second. The accident comes at any time of the first ones.
        std::thread::sleep(Duration::from_millis(500 + number * 7919 % 1600));
        ran.kill();
        let killed = now_us();
        let done = || target.stdout.wait_for("done ").parse::<u64>().unwrap();
        let next = std::iter::repeat_with(done).find(|&done| done > killed).unwrap();
        waits.push(next - killed);
    }
    waits.sort_unstable();
    println!("waits after a kill, in us: {waits:?}");
    // 100 ms without a word of ppt, 5 ms until the thread looks, its own work, and other programs.
    assert!(waits[waits.len() / 2] < 200_000 && waits[waits.len() - 1] < 1_000_000, "{waits:?}");
    let pid = target.pid().to_string();
    let ran = bench.ppt(&["attach", &pid, "-o", "next.bin", "--force", "-d", "300ms"]);
    assert_eq!(ran.code(), 0, "{}", ran.stderr);
    bench.check_off(&target);
    target.finish();
    assert_eq!(segments_of(&agents), 0);
}

#[test]
fn a_detach_ends_the_wait() {
    let bench = built();
    let mut target = bench.start("requests", &["20000"]);
    target.say("tell");
    for how in ["detach", "interrupt"] {
        let args = ["--speed", "work=0.01x,0.011x,0.012x", "--round", "8s", "--for", "60s"];
        let ran = Attach::start(live(&bench, &target, &args));
        let done = || target.stdout.wait_for("done ").parse::<u64>().unwrap();
        let mut last = done();
        wait_until("a thread has waited", || {
            let before = std::mem::replace(&mut last, done());
            last - before > 900_000
        });
        let pid = target.pid().to_string();
        if how == "detach" {
            let said = bench.ppt(&["detach", &pid]);
            assert_eq!(said.code(), 0, "{}", said.stderr);
        } else {
            ran.signal(libc::SIGINT);
        }
        let _ = ran.stderr.rest();
        let ended = now_us();
        let next = std::iter::repeat_with(done).find(|&done| done > ended).unwrap();
        assert!(next - ended < 500_000, "{how}: {} us", next - ended);
        drop(ran);
        bench.check_off(&target);
    }
    target.finish();
}

#[test]
fn a_target_that_is_killed_ends_the_rounds() {
    let bench = built();
    for _ in 0..rounds(2, 20) {
        let mut target = bench.start("requests", &["1000"]);
        let mut ran = Attach::start(live(&bench, &target, &SLOW));
        wait_until("a round slows the work down", || takes(&mut target) > 4_000);
        drop(target);
        wait_until("ppt ends", || ran.has_ended());
        assert!(frames(&bench, "part") > 0 && Account::of(&bench.info("out.bin")).lost == 0);
        let agent = ran.pid();
        drop(ran);
        assert_eq!(segments_of(&[agent]), 0);
    }
}

/// ns since the epoch.
fn now_ns() -> i64 {
    let now = clock_gettime(ClockId::CLOCK_REALTIME).unwrap();
    now.tv_sec() * 1_000_000_000 + now.tv_nsec()
}

#[test]
fn a_round_in_which_ppt_stood_still_does_not_count() {
    let bench = built();
    let mut target = bench.start("requests", &["2000"]);
    let args = ["--speed", "work=0.1x,0.11x,0.12x", "--round", "1s", "--for", "30s"];
    let ran = Attach::start(live(&bench, &target, &args));
    wait_until("a round slows the work down", || takes(&mut target) > 15_000);
    ran.signal(libc::SIGSTOP);
    let stopped = now_ns();
    wait_until("nobody waits", || takes(&mut target) < 6_000);
    let goes_on = now_ns();
    ran.signal(libc::SIGCONT);
    wait_until("rounds go on", || takes(&mut target) > 15_000);
    wait_until("another round begins", || takes(&mut target) < 6_000);
    ran.signal(libc::SIGINT);
    let _ = ran.stderr.rest();
    drop(ran);
    let rounds = numbers::rounds(&bench);
    assert!(rounds.iter().any(|round| round.start > goes_on), "{rounds:?}");
    let counts = |round: &&numbers::Round| {
        round.permutation > 0 && round.start < goes_on && round.end > stopped
    };
    assert_eq!(rounds.iter().filter(counts).count(), 0, "{stopped} to {goes_on}: {rounds:?}");
    target.finish();
}

#[test]
fn what_is_written_stays_during_an_experiment() {
    let bench = built();
    let target = bench.start("requests", &["1000"]);
    let ran = Attach::start(live(&bench, &target, &SLOW));
    let pid = target.pid().to_string();
    for command in ["disable", "enable"] {
        let said = bench.ppt(&[command, &pid, "part"]);
        assert_eq!(said.code(), 1, "{}", said.stderr);
        assert!(explained(&said.stderr).contains("runs an experiment"), "{}", said.stderr);
    }
    // Nor does a second session come in between.
    let said = bench.ppt(&["attach", &pid, "-o", "second.bin", "-d", "1s"]);
    assert!(said.code() == 1 && said.stderr.contains("already"), "{}", said.stderr);
    drop(ran);
    target.finish();
}

#[test]
fn garbage_in_the_mask_page_harms_only_its_writer() {
    let sanitizers = "-fsanitize=address,undefined";
    if !builds("gcc", &[sanitizers]) {
        return;
    }
    let bench = built();
    bench.copy("scribbled_main.c");
    bench.cc(&["-O1", "-g", sanitizers, "scribbled_main.c", "-o", "scribbled", "-pthread"]);
    let mut target = bench.start("scribbled", &["2"]);
    let args = ["--speed", "work=0.5x", "--round", "200ms", "--for", "60s"];
    let ran = Attach::start(live(&bench, &target, &args));
    let written = target.run();
    assert!(written > 20, "{written}");
    ran.signal(libc::SIGINT);
    let _ = ran.stderr.rest();
    drop(ran);
    let account = Account::of(&bench.info("out.bin"));
    assert!(account.captured > 20, "{account:?}");
    bench.check_off(&target);
    target.finish();
}
