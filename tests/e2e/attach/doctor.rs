//! `ppt doctor`: with live targets, and without any.

use serde_json::Value;

use crate::fixtures::support::{Bench, Ran, segments_of, stopped};

/// The checks whose names have this prefix.
fn checks<'a>(report: &'a Value, name: &str) -> Vec<&'a Value> {
    let all = report["checks"].as_array().unwrap().iter();
    all.filter(|value| value["check"].as_str().unwrap().starts_with(name)).collect()
}

fn examine(bench: &Bench, pid: u32) -> (Ran, Value) {
    let ran = bench.ppt(&["doctor", "--json", &pid.to_string()]);
    let report =
        serde_json::from_str(&ran.stdout).unwrap_or_else(|error| panic!("{error}: {ran:?}"));
    (ran, report)
}

fn target() -> Bench {
    let bench = Bench::new();
    bench.copy_all(&["job.frame", "block.c"]);
    bench.pptc(&["job.frame"]);
    bench.cc(&["block.c", "job.c", "-o", "block"]);
    bench
}

/// The code with which an attach is refused.
fn code_of_attach(bench: &Bench, pid: u32) -> String {
    let ran = bench.ppt(&["attach", &pid.to_string(), "-o", "refused.bin"]);
    let code = ran.stderr.lines().find_map(|line| line.strip_prefix("  more: ppt explain "));
    code.unwrap_or_else(|| panic!("{ran:?}")).to_owned()
}

#[test]
fn a_machine_without_a_process() {
    let bench = Bench::new();
    let ran = bench.ppt(&["doctor"]);
    // These tests attach to their own processes: nothing prevents that here.
    assert_eq!(ran.code(), 0, "{ran:?}");
    for name in ["kernel", "/proc", "ptrace", "system calls", "shared memory", "clock"] {
        let says = |line: &str| {
            line.split_once("  ").is_some_and(|entry| entry.1.trim().starts_with(name))
        };
        assert!(ran.stdout.lines().any(says), "{name}: {}", ran.stdout);
    }
    assert!(!ran.stdout.contains('\x1b'), "no colour in a pipe");
}

/// This ppt has all commands, so nothing is said about those that a build may leave out (`tests/lean`).
#[test]
fn a_complete_ppt_lacks_no_commands() {
    let output = Bench::new().ppt(&["doctor", "--json"]).stdout;
    let report: Value = serde_json::from_str(&output).unwrap();
    assert!(checks(&report, "commands").is_empty(), "{report}");
}

#[test]
fn a_live_target_before_during_and_after_an_attach() {
    let bench = target();
    let mut target = bench.start("block", &[]);
    let (ran, report) = examine(&bench, target.pid());
    assert_eq!((ran.code(), &report["ready"]), (0, &Value::Bool(true)), "{ran:?}");
    assert_eq!(report["pid"], target.pid());
    let buffer = checks(&report, "buffer job");
    assert_eq!(buffer.len(), 1);
    assert!(buffer[0]["found"].as_str().unwrap().contains("found by symtab in"), "{buffer:?}");
    assert_eq!(checks(&report, "permission")[0]["verdict"], "ok");

    let attach = bench.attach(&target, &[]);
    let (ran, report) = examine(&bench, target.pid());
    assert_eq!((ran.code(), &report["ready"]), (1, &Value::Bool(false)));
    let said = checks(&report, "buffer job")[0];
    assert_eq!(said["verdict"], "problem");
    let holder = format!("attached by ppt with pid {}", attach.pid());
    assert!(said["found"].as_str().unwrap().contains(&holder), "{said}");
    assert_eq!(code_of_attach(&bench, target.pid()), "already-attached");
    assert_eq!(said["code"], "already-attached");

    // The checks did not disturb the capture.
    let written = target.run();
    attach.stop();
    crate::fixtures::support::Account::of(&bench.info("out.bin")).check(written);
    let (ran, _) = examine(&bench, target.pid());
    assert_eq!(ran.code(), 0, "{ran:?}");
    assert_eq!(segments_of(&[target.pid()]), 0);
    target.finish();
}

#[test]
fn a_holder_that_died_is_worth_a_note() {
    let bench = target();
    let mut target = bench.start("block", &[]);
    bench.attach(&target, &[]).kill();
    let (ran, report) = examine(&bench, target.pid());
    assert_eq!(ran.code(), 0, "{ran:?}");
    let buffer = checks(&report, "buffer job")[0];
    assert_eq!(buffer["verdict"], "note");
    assert!(buffer["found"].as_str().unwrap().contains("which died"), "{buffer}");
    target.run();
    target.finish();
}

#[test]
fn a_stopped_target_is_no_problem() {
    let bench = target();
    let mut target = bench.start("block", &[]);
    target.signal(libc::SIGSTOP);
    stopped(target.pid());
    assert_eq!(examine(&bench, target.pid()).0.code(), 0);
    target.signal(libc::SIGCONT);
    target.run();
    target.finish();
}

#[test]
fn processes_that_cannot_be_attached_to() {
    let bench = Bench::new();
    let problem = |pid: u32, code: &str, expected: &str| {
        assert_eq!(code_of_attach(&bench, pid), code);
        let (ran, report) = examine(&bench, pid);
        assert_eq!(ran.code(), 1, "{ran:?}");
        let problems = report["checks"].as_array().unwrap().iter();
        let problems: Vec<_> = problems.filter(|problem| problem["verdict"] == "problem").collect();
        let found =
            problems.iter().find(|problem| problem["found"].as_str().unwrap().contains(expected));
        let found = found.unwrap_or_else(|| panic!("{ran:?}"));
        assert_eq!(found["code"], code, "as an attach says it");
        let table = bench.ppt(&["doctor", &pid.to_string()]).stdout;
        assert!(table.contains(&format!("  more: ppt explain {code}\n")), "{table}");
        // Every finding with a code has an explanation.
        for code in
            report["checks"].as_array().unwrap().iter().filter_map(|value| value["code"].as_str())
        {
            assert_eq!(bench.ppt(&["explain", code]).code(), 0, "{code}");
        }
    };
    problem(0x3fff_fff0, "no-process", "it does not exist, or it has ended");
    problem(std::process::id(), "no-buffers", "has no ppt buffers");
    assert_eq!(bench.ppt(&["doctor", "--", "-1"]).code(), 1);
    for wrong in [&["doctor", "one"][..], &["doctor", "1", "-p", "1"], &["doctor", "1", "2"]] {
        assert_eq!(bench.ppt(wrong).code(), 2, "{wrong:?}");
    }
}
