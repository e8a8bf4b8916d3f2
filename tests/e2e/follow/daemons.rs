//! `ppt run` of programs that become daemons or never fork, on a busy machine and on an idle one:
//! its messages are true, and no process is missing.

use crate::fixtures::busy::Busy;
use crate::fixtures::first::{all_captured, written};
use crate::fixtures::flood;
use crate::fixtures::support::{Account, Bench, Ran, rounds};

/// The same run this many times.
fn each_time(bench: &Bench, how: &str, times: usize) -> Vec<(Ran, u32)> {
    let args = ["run", "--force", "--", "./daemon_main", "20", how];
    (0..times)
        .map(|_| {
            let (ran, agent) = bench.ppt_and_pid(&args);
            assert_eq!(ran.code(), 0, "{ran:?}");
            let processes = if how == "alone" { 1 } else { 3 };
            assert_eq!(written(&ran.stdout), 20 * processes, "each waits for ppt: {ran:?}");
            let info = bench.info("out.bin");
            let targets = info["targets"].as_array().unwrap();
            assert_eq!(targets.len() as u64, processes, "{ran:?}");
            Account::of(&info).check(20 * processes);
            assert!(!ran.stderr.contains("not captured"), "{ran:?}");
            assert!(!ran.stderr.contains("without being captured"), "{ran:?}");
            (ran, agent)
        })
        .collect()
}

fn daemons(how: &str, times: usize) {
    let bench = flood::build_with("daemon_main.c");
    for (ran, _) in each_time(&bench, how, times) {
        assert_eq!(ran.stderr.matches("attached: pid ").count(), 3, "{ran:?}");
    }
}

#[test]
fn a_daemon_whose_ancestors_leave_at_once() {
    daemons("leaves", rounds(5, 100));
}

#[test]
fn a_daemon_whose_ancestors_leave_at_once_beside_busy_loops() {
    let _busy = Busy::start();
    daemons("leaves", rounds(10, 100));
}

#[test]
fn a_daemon_whose_ancestor_waits_beside_busy_loops() {
    let _busy = Busy::start();
    daemons("waits", rounds(5, 100));
}

/// ppt learns of its end with a delay.
#[test]
fn what_never_forks_has_no_process_that_continues() {
    let bench = flood::build_with("daemon_main.c");
    let check = |ran: Vec<(Ran, u32)>| {
        for (ran, agent) in ran {
            assert!(!ran.stderr.contains("continue"), "{ran:?}");
            all_captured(&bench, (&ran, agent), 20, "a program that never forks");
        }
    };
    check(each_time(&bench, "alone", rounds(10, 100)));
    let _busy = Busy::start();
    check(each_time(&bench, "alone", rounds(5, 100)));
}

/// A shell ends before the program that it has started reports to ppt.
#[test]
fn a_program_whose_shell_has_left() {
    let bench = flood::build_with("daemon_main.c");
    let _busy = Busy::start();
    for _ in 0..rounds(5, 100) {
        let script = "./daemon_main 20 alone & exit 3";
        let (ran, agent) = bench.ppt_and_pid(&["run", "--force", "--", "sh", "-c", script]);
        assert_eq!(ran.code(), 3, "{ran:?}");
        all_captured(&bench, (&ran, agent), 20, "a program whose shell has left");
        assert!(!ran.stderr.contains("without being captured"), "{ran:?}");
    }
}
