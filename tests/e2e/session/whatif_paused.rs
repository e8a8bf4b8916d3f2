//! `ppt whatif --live --pause-host`: a span that looks faster, and threads that are as they were afterwards.

use std::fs;
use std::time::Duration;

use super::whatif_live::{asked, live};
use super::whatif_numbers as numbers;
use crate::fixtures::busy::wait_for_calm;
use crate::fixtures::explained::explained;
use crate::fixtures::support::{Attach, Bench, Target, lock, rounds, segments_of, wait_until};

fn built() -> Bench {
    let bench = Bench::new();
    bench.copy_all(&["pairs.frame", "pairs_main.c"]);
    bench.pptc(&["pairs.frame"]);
    bench.cc(&["-O2", "pairs_main.c", "pairs.c", "-o", "pairs", "-pthread"]);
    bench
}

/// Real-time priorities, and the switches of all CPUs, need rights, several CPUs, and no container.
fn can_pause() -> bool {
    const SYS_ADMIN: u64 = 1 << 21;
    const SYS_NICE: u64 = 1 << 23;
    let status = fs::read_to_string("/proc/self/status").unwrap();
    let effective = status.lines().find_map(|line| line.strip_prefix("CapEff:")).unwrap();
    let rights = u64::from_str_radix(effective.trim(), 16).unwrap();
    let has_rights = rights & SYS_ADMIN != 0 && rights & SYS_NICE != 0;
    let is_outside = fs::read_to_string("/proc/2/comm").is_ok_and(|name| name == "kthreadd\n");
    let cpus = std::thread::available_parallelism().map_or(1, usize::from);
    let can = has_rights && is_outside && (2..=16).contains(&cpus);
    if !can {
        eprintln!("CPUs cannot be paused here: skipped");
    }
    can
}

/// Waits until no other test pauses CPUs: ppt refuses a second experiment. None if CPUs cannot be paused here.
fn turn() -> Option<fs::File> {
    can_pause().then(|| lock("paused-cpus"))
}

/// The same on a calm machine: on a busy one, ppt refuses to tell what these tests hold.
fn calm_turn() -> Option<fs::File> {
    can_pause().then(wait_for_calm).and_then(|()| turn())
}

const PAUSED: [&str; 7] =
    ["--pause-host", "--speed", "work=1.5x", "--metric", "request", "--round", "500ms"];

/// The field of /proc/PID/stat behind the name, counted from 3 as in proc(5), of each thread.
fn threads(pid: u32, field: usize) -> Vec<(String, i64)> {
    let Ok(entries) = fs::read_dir(format!("/proc/{pid}/task")) else { return Vec::new() };
    let read = |entry: fs::DirEntry| {
        let text = fs::read_to_string(entry.path().join("stat")).ok()?;
        let (name, rest) = text.split_once('(')?.1.rsplit_once(')')?;
        Some((name.to_owned(), rest.split_whitespace().nth(field - 3)?.parse().ok()?))
    };
    entries.flatten().filter_map(read).collect()
}

const NICE: usize = 19;
const REALTIME_PRIORITY: usize = 40;

/// Whether a thread of the target is heavier than it was.
fn is_heavier(target: &Target) -> bool {
    threads(target.pid(), NICE).iter().any(|thread| thread.1 < 0)
}

fn wait_for_weight(target: &Target) {
    wait_until("a thread in the span is heavier", || is_heavier(target));
}

fn refused(bench: &Bench, target: &Target, args: &[&str]) -> String {
    let mut command = live(bench, target, args);
    let ran = command.output().unwrap();
    assert!(!ran.status.success(), "{args:?}");
    String::from_utf8(ran.stderr).unwrap()
}

/// The process that guards the weights.
fn guard(ran: &Attach) -> i32 {
    let children = fs::read_to_string(format!("/proc/{0}/task/{0}/children", ran.pid())).unwrap();
    children.split_whitespace().next().unwrap().parse().unwrap()
}

fn kill(pid: i32) {
    nix::sys::signal::kill(nix::unistd::Pid::from_raw(pid), nix::sys::signal::SIGKILL).unwrap();
}

#[test]
fn what_cannot_be_paused_is_refused() {
    let Some(_turn) = turn() else { return };
    let bench = built();
    let target = bench.start("pairs", &["2000", "6000"]);
    for (speed, message) in [
        ("nothing=1.5x", "there is no span `nothing` in these processes; there are: request, work"),
        ("part=1.5x", "part is an interval, which is known at its end"),
        ("work=2x", "by pausing CPUs, work looks up to 1.5x as fast"),
        ("part=0.8x", "--pause-host takes one span and its speeds"),
    ] {
        let stderr = refused(&bench, &target, &["--pause-host", "--speed", speed, "--for", "2s"]);
        assert!(explained(&stderr).contains(message), "{speed}: {stderr}");
        assert!(!bench.path("out.bin").exists(), "nothing was captured");
    }
    target.finish();
    for (mode, message) in
        [("sleep", "sleep by the clock for"), ("nice", "has a priority of its own")]
    {
        let target = bench.start("pairs", &["4000", "6000", mode]);
        let args = [&PAUSED[..], &["--for", "60s"]].concat();
        let stderr = refused(&bench, &target, &args);
        assert!(explained(&stderr).contains(message), "{mode}: {stderr}");
        assert!(threads(target.pid(), NICE).iter().all(|thread| thread.1 >= 0), "{mode}");
        target.finish();
    }
}

#[test]
fn a_faster_span_is_worth_what_a_faster_program_is() {
    let Some(_turn) = calm_turn() else { return };
    let bench = built();
    let p50 = |answer: &serde_json::Value| answer["predicted"]["p50"].as_f64().unwrap();
    let mut refusals = Vec::new();
    // Where other programs take the CPUs, the baselines differ, or rounds do not count.
    for _ in 0..rounds(3, 6) {
        let target = bench.start("pairs", &["2000", "8000"]);
        let args = [&PAUSED[..], &["--for", "28s"]].concat();
        let ran = Attach::start(live(&bench, &target, &args));
        let _ = ran.stderr.rest();
        drop(ran);
        assert!(!is_heavier(&target));
        target.finish();
        let answers = match asked(&bench, &[]) {
            Ok(answers) => answers,
            Err(stderr) => {
                let causes = ["baselines", "permutations", "look at a CPU", "paused for"];
                assert!(causes.iter().any(|cause| stderr.contains(cause)), "{stderr}");
                refusals.push(stderr);
                continue;
            }
        };
        let [answer] = &answers[..] else { panic!("{answers:?}") };
        assert_eq!(
            (answer["how"].as_str(), answer["speed"]["work"].as_f64()),
            (Some("paused"), Some(1.5))
        );
        numbers::hold_paused(&bench, "request", &answers);
        // Alone on its CPU, the work takes two thirds of the time in virtual time.
        let was = answer["was"]["p50"].as_f64().unwrap();
        println!("was {was}, predicted {}", p50(answer));
        assert!(p50(answer) < 0.85 * was && p50(answer) > 0.5 * was, "{answer}");
        return;
    }
    println!("refused each time, as the machine is busy: {refusals:?}");
}

/// Spans with a lock in them overlap. Only the switches of threads show that they wait.
#[test]
fn a_lock_within_the_span_is_noticed() {
    let Some(_turn) = calm_turn() else { return };
    let bench = built();
    let target = bench.start("pairs", &["4000", "4000", "lock"]);
    let mut refusals = Vec::new();
    for _ in 0..rounds(3, 6) {
        let args = [&PAUSED[..], &["--for", "28s"]].concat();
        drop(Attach::start(live(&bench, &target, &args)).stderr.rest());
        assert!(!is_heavier(&target));
        let stderr = asked(&bench, &[]).unwrap_err();
        let said = explained(&stderr);
        let Some((_, rest)) = said.split_once("threads wait in work for ") else {
            let causes = ["baselines", "permutations", "look at a CPU", "paused for"];
            assert!(causes.iter().any(|cause| stderr.contains(cause)), "{stderr}");
            refusals.push(stderr);
            continue;
        };
        let table = bench.table("out.bin", &["--frame", "pauses"]);
        let sum = |name: &str| table.numbers(name).iter().sum::<i64>() as f64;
        let share = 100.0 * sum("waited") / sum("in_span");
        assert!(rest.starts_with(&format!("{share:.0} %")), "{share}: {stderr}");
        assert!(share > 20.0 && share < 90.0, "{share}");
        return target.finish();
    }
    println!("refused each time, as the machine is busy: {refusals:?}");
}

#[test]
fn nobody_stays_heavier_or_paused_if_ppt_is_killed() {
    let Some(_turn) = turn() else { return };
    let bench = built();
    let target = bench.start("pairs", &["2000", "6000"]);
    let mut agents = Vec::new();
    for number in 0..rounds(4, 1000) as u64 {
        let args = [&PAUSED[..], &["--for", "6s"]].concat();
        let ran = Attach::start(live(&bench, &target, &args));
        wait_for_weight(&target);
        let agent = ran.pid();
        agents.push(agent);
        std::thread::sleep(Duration::from_micros(number * 7919 % 20_000));
        ran.kill();
        wait_until("all threads are as they were", || !is_heavier(&target));
        assert!(threads(agent, REALTIME_PRIORITY).is_empty());
    }
    let pid = target.pid().to_string();
    let ran = bench.ppt(&["attach", &pid, "-o", "next.bin", "--force", "-d", "300ms"]);
    assert_eq!(ran.code(), 0, "{}", ran.stderr);
    bench.check_off(&target);
    target.finish();
    assert_eq!(segments_of(&agents), 0);
}

#[test]
fn nobody_stays_heavier_if_ppt_is_stopped() {
    let Some(_turn) = turn() else { return };
    let bench = built();
    let target = bench.start("pairs", &["2000", "6000"]);
    let args = [&PAUSED[..], &["--for", "20s"]].concat();
    let ran = Attach::start(live(&bench, &target, &args));
    wait_for_weight(&target);
    ran.signal(libc::SIGSTOP);
    // The guard misses the beats of ppt.
    wait_until("all threads are as they were", || !is_heavier(&target));
    ran.signal(libc::SIGCONT);
    wait_for_weight(&target);
    ran.signal(libc::SIGINT);
    let _ = ran.stderr.rest();
    drop(ran);
    assert!(!is_heavier(&target));
    bench.check_off(&target);
    target.finish();
}

#[test]
fn without_its_guard_ppt_goes_on_with_nothing() {
    let Some(_turn) = turn() else { return };
    let bench = built();
    let target = bench.start("pairs", &["2000", "6000"]);
    let args = [&PAUSED[..], &["--for", "60s"]].concat();
    let ran = Attach::start(live(&bench, &target, &args));
    wait_for_weight(&target);
    kill(guard(&ran));
    let stderr = ran.stderr.rest();
    assert!(explained(&stderr).contains("guards the weights of threads has ended"), "{stderr}");
    assert!(!is_heavier(&target));
    target.finish();
}

#[test]
fn one_experiment_at_a_time_pauses_a_host() {
    let Some(_turn) = turn() else { return };
    let bench = built();
    let start = || bench.start("pairs", &["2000", "6000"]);
    let (first, second) = (start(), start());
    let args = [&PAUSED[..], &["--for", "6s"]].concat();
    let mut ran = Attach::start(live(&bench, &first, &args));
    wait_for_weight(&first);
    let other = Bench::new();
    let stderr = refused(&other, &second, &args);
    assert!(explained(&stderr).contains("another ppt pauses the CPUs of this host"), "{stderr}");
    assert!(!other.path("out.bin").exists(), "nothing was captured");
    assert!(!ran.has_ended(), "the first one goes on");
    drop(ran);
    bench.check_off(&second);
    first.finish();
    second.finish();
}

/// As if all processes of a control group were killed.
#[test]
fn the_next_ppt_restores_what_nobody_could() {
    let Some(_turn) = turn() else { return };
    let bench = built();
    let target = bench.start("pairs", &["2000", "6000"]);
    let pid = target.pid().to_string();
    for command in [&["detach", &pid][..], &["attach", &pid, "-o", "next.bin", "-d", "100ms"]] {
        wait_until("they are killed while a thread is heavier", || {
            let args = [&PAUSED[..], &["--for", "6s"]].concat();
            let ran = Attach::start(live(&bench, &target, &args));
            wait_for_weight(&target);
            ran.signal(libc::SIGSTOP);
            kill(guard(&ran));
            ran.kill();
            is_heavier(&target)
        });
        let ran = bench.ppt(command);
        assert_eq!(ran.code(), 0, "{}", ran.stderr);
        let restored =
            "threads that a killed ppt had made heavier have their ordinary weight again: 1";
        assert!(ran.stderr.contains(restored), "{}", ran.stderr);
        assert!(!is_heavier(&target));
    }
    target.finish();
}

#[test]
fn a_target_that_ends_or_executes_ends_the_rounds() {
    let Some(_turn) = turn() else { return };
    let bench = built();
    for _ in 0..rounds(2, 20) {
        let target = bench.start("pairs", &["2000", "6000"]);
        let args = [&PAUSED[..], &["--for", "60s"]].concat();
        let mut ran = Attach::start(live(&bench, &target, &args));
        wait_for_weight(&target);
        drop(target);
        wait_until("ppt ends", || ran.has_ended());
    }
}
