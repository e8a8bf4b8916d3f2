//! A command that is refused, interrupted or killed leaves the old file, or a new one that is
//! readable.

use std::fs::{self};
use std::process::Stdio;

use crate::fixtures::limits::limit_file_size;
use crate::fixtures::output::{burst, files, numbers, whole, without_nameless_files};
use crate::fixtures::steady::{build, start};
use crate::fixtures::stepped::{self, end};
use crate::fixtures::support::{Account, Attach, ppt, record, rounds, segments_of, text};

/// Refused, interrupted or failed commands: with `--force` the existing file stays, and without it
/// no file is left.
#[test]
fn what_comes_to_nothing_leaves_what_was_there() {
    let bench = build(&[]);
    let mut target = start(&bench);
    let before = whole(&bench, &mut target, "good.bin");
    let pid = target.pid().to_string();
    let none = i32::MAX.to_string();
    let us = std::process::id().to_string();
    let other = bench.attach(&target, &["-o", "other.bin"]);
    for (args, code) in [
        (&["attach", &none][..], 1),
        (&["attach", &us], 1),
        (&["attach", &pid], 1), // another ppt is attached
        (&["attach", &pid, "-b", "nothing"], 2),
        (&["attach", "--name", "no-such-name"], 1),
        (&["attach", &pid, "--max-size", "1K"], 2),
        (&["run", "--", "./no-such-command"], 127),
        (&["run", "--", "./counters"], 126),
        (&["run", "--", "true"], 0),
        (&["run", "--", "sh", "-c", "kill -9 $$"], 137),
    ] {
        let to = |name: &str, force: &[&str]| {
            let (command, rest) = args.split_first().unwrap();
            bench.ppt(&[&[*command, "-o", name][..], force, rest].concat())
        };
        let ran = to("good.bin", &["--force"]);
        assert_eq!(ran.code(), code, "{args:?}: {}", ran.stderr);
        assert!(fs::read(bench.path("good.bin")).unwrap() == before, "{args:?}");
        assert_eq!(to("new.bin", &[]).code(), code, "{args:?}");
        assert_eq!(files(&bench), ["good.bin", "other.bin"], "{args:?}");
    }
    other.stop();

    for signal in [libc::SIGINT, libc::SIGTERM, libc::SIGKILL] {
        for output in [&["-o", "good.bin", "--force"][..], &["-o", "new.bin"]] {
            let mut command = bench.command(ppt());
            command.args(["attach", "--wait-for", "no-such-name"]).args(output);
            let attach = Attach::spawn(command);
            attach.stderr.wait_for("ppt: waiting for a process called no-such-name");
            attach.signal(signal);
            match signal {
                libc::SIGKILL => attach.kill(),
                _ => _ = attach.ended(128 + signal),
            }
            assert!(fs::read(bench.path("good.bin")).unwrap() == before, "{output:?}");
            assert_eq!(files(&bench), ["good.bin", "other.bin"], "{output:?}");
        }
    }
    target.finish();
}

/// A disk without room even for the first bytes.
#[test]
fn without_room_for_the_first_bytes_what_was_there_stays() {
    let bench = build(&[]);
    let mut target = start(&bench);
    let before = whole(&bench, &mut target, "good.bin");
    let (pid, agent) = (target.pid().to_string(), std::cell::RefCell::new(Vec::new()));
    for command in [&["attach", &pid, "-o"][..], &["dump", "other.bin", "-o"]] {
        fs::copy(bench.path("good.bin"), bench.path("other.bin")).unwrap();
        for room in [0, 100, 300] {
            let mut limited = bench.command(ppt());
            limited.args(command).args(["good.bin", "--force"]).stderr(Stdio::piped());
            limit_file_size(&mut limited, room);
            let child = limited.spawn().unwrap();
            agent.borrow_mut().push(child.id());
            let output = child.wait_with_output().unwrap();
            let stderr = text(&output.stderr);
            assert_eq!(output.status.code(), Some(1), "{stderr}");
            assert!(stderr.contains("File too large (os error 27)"), "{stderr}");
            assert!(fs::read(bench.path("good.bin")).unwrap() == before, "{command:?}");
        }
    }
    assert_eq!(files(&bench), ["good.bin", "other.bin"]);
    assert_eq!(segments_of(&agent.borrow()), 0);
    target.finish();
}

/// On such file systems, a file has a hidden name until it has its own.
#[test]
fn where_there_are_no_files_without_names() {
    let bench = build(&[]);
    let mut target = start(&bench);
    let before = whole(&bench, &mut target, "good.bin");
    let pid = target.pid().to_string();
    let command = |args: &[&str]| {
        let mut command = bench.command(ppt());
        command.args(args);
        without_nameless_files(&mut command);
        command
    };
    let hidden = || files(&bench).into_iter().find(|file| file.starts_with(".ppt-"));
    let waiting = |output: &[&str]| {
        let attach = [&["attach", "--wait-for", "no-such-name"], output].concat();
        let attach = Attach::spawn(command(&attach));
        attach.stderr.wait_for("ppt: waiting for");
        assert!(hidden().is_some(), "{:?}", files(&bench));
        attach
    };
    // An interrupted command removes its file; a killed one leaves it, and the next command removes
    // it.
    let attach = waiting(&["-o", "new.bin"]);
    attach.signal(libc::SIGINT);
    attach.ended(128 + libc::SIGINT);
    assert_eq!(files(&bench), ["good.bin"]);
    waiting(&["-o", "good.bin", "--force"]).kill();
    assert!(fs::read(bench.path("good.bin")).unwrap() == before);
    let left = hidden().expect("it is left");
    // A file that is being written stays.
    let attach = waiting(&["-o", "other.bin"]);
    let kept = hidden().expect("it is there");
    assert_ne!(kept, left);
    let dump = |output: &str, force: &[&str]| {
        let args = [&["dump", "good.bin", "-o", output], force].concat();
        let output = command(&args).output().unwrap();
        assert_eq!(text(&output.stderr), "");
    };
    dump("table.tsv", &[]);
    dump("table.tsv", &["--force"]);
    assert_eq!(files(&bench), [&kept, "good.bin", "table.tsv"]);
    attach.kill();

    for output in [&["-o", "new.bin"][..], &["-o", "good.bin", "--force"]] {
        let attach = Attach::start(command(&[&["attach", &pid], output].concat()));
        burst(&mut target, 10, &bench, output[1]);
        attach.kill();
        assert_eq!(numbers(&bench, output[1]).len(), 10);
    }
    assert_eq!(files(&bench), ["good.bin", "new.bin", "table.tsv"]);
    target.finish();
}

/// kill -9 between any two system calls: the result is the old capture, byte for byte, or the new
/// one, readable, and the next command removes leftover files.
#[test]
fn killed_at_any_system_call_there_is_the_old_capture_or_the_new_one() {
    let bench = build(&[]);
    let mut target = start(&bench);
    let before = whole(&bench, &mut target, "good.bin");
    let pid = target.pid().to_string();
    let attach = |name: &str, at: usize| {
        let mut command = bench.command(ppt());
        command.args(["attach", &pid, "--force", "-o", name]);
        stepped::run(command, at, end)
    };
    let calls = attach("good.bin", usize::MAX).calls;
    let (mut agents, mut kept, mut replaced) = (Vec::new(), 0, 0);
    // All calls around the change of the name, where the threads are started.
    for at in (1..calls).step_by(rounds(11, 1)) {
        fs::write(bench.path("good.bin"), &before).unwrap();
        let killed = attach("good.bin", at);
        agents.push(killed.pid);
        if fs::read(bench.path("good.bin")).unwrap() == before {
            assert!(!killed.attached, "{}", killed.said);
            kept += 1;
        } else {
            numbers(&bench, "good.bin");
            replaced += 1;
        }
        let others = files(&bench).into_iter().filter(|file| file != "good.bin");
        let others: Vec<_> = others.collect();
        assert!(others.iter().all(|it| it.starts_with(".ppt-")) && others.len() <= 1, "{others:?}");
        // Without --force there is no file, or a capture.
        let killed = attach("new.bin", at);
        agents.push(killed.pid);
        assert!(killed.attached <= bench.path("new.bin").exists(), "{}", killed.said);
        if bench.path("new.bin").exists() {
            numbers(&bench, "new.bin");
            fs::remove_file(bench.path("new.bin")).unwrap();
        }
        assert!(files(&bench).len() <= 2, "{:?}", files(&bench));
    }
    assert!(kept > 10 && replaced > 2, "{kept} kept, {replaced} replaced");
    // The next command cleans up.
    let attach = bench.attach(&target, &["-o", "good.bin", "--force"]);
    agents.push(attach.pid());
    target.say("burst 10");
    let written = 10;
    target.written();
    attach.stop();
    assert_eq!(files(&bench), ["good.bin"]);
    let info = bench.info("good.bin");
    let account = Account::of(&info);
    account.check(written);
    let case =
        format!("killed {} times while a capture is replaced: the one after", kept + replaced);
    record("-", &case, written, account, &info, segments_of(&agents));
    target.finish();
}

/// From `attached:` on, captured frames are in the file with its name.
#[test]
fn a_capture_that_is_killed_is_under_its_name() {
    let bench = build(&[]);
    let mut target = start(&bench);
    whole(&bench, &mut target, "out.bin");
    for round in 0..3 {
        let attach = bench.attach(&target, &["-o", "out.bin", "--force"]);
        if round > 0 {
            burst(&mut target, 20, &bench, "out.bin");
        }
        attach.kill();
        assert_eq!(numbers(&bench, "out.bin").len(), if round > 0 { 20 } else { 0 });
        assert_eq!(files(&bench), ["out.bin"]);
    }
    target.finish();
}
