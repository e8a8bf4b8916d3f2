//! Two commands write to one file, or to one series of files: the second is refused.

use std::fs::{self, OpenOptions};
use std::time::Duration;

use crate::fixtures::output::{files, numbers};
use crate::fixtures::steady::{assert_message, build, check_frames, start};
use crate::fixtures::support::{Account, Attach, ppt, record, rounds, segments_of};

#[test]
fn of_two_on_one_file_the_second_is_refused() {
    let bench = build(&[]);
    let (mut target, other) = (start(&bench), start(&bench));
    let attach = bench.attach(&target, &["-o", "out.bin"]);
    target.say("burst 100");
    target.written();
    let refusal = |name: &str| {
        let first = attach.pid();
        format!(
            "ppt: {name} is being written by process {first} (ppt); choose another name with -o\n"
        )
    };
    let pid = other.pid().to_string();
    for args in [
        &["attach", &pid, "-o", "out.bin"][..],
        &["attach", &pid, "-o", "out.bin", "--force"],
        &["run", "-o", "out.bin", "--force", "--", "true"],
        &["attach", "--wait-for", "no-such-name", "-o", "out.bin", "--force"],
        &["dump", "copy.bin", "-o", "out.bin", "--force"],
    ] {
        fs::copy(bench.path("out.bin"), bench.path("copy.bin")).unwrap();
        let ran = bench.ppt(args);
        assert_message(&ran.stderr, &refusal("out.bin"));
        assert_eq!(ran.code(), if args[0] == "run" { 125 } else { 1 }, "{args:?}");
    }
    // If it is another command's standard output.
    let stdout = OpenOptions::new().append(true).open(bench.path("out.bin")).unwrap();
    let mut command = bench.command(ppt());
    command.args(["attach", &pid, "-o", "-"]);
    let said = Attach::spawn_into(command, stdout.into()).ended(1);
    assert_message(&(said + "\n"), &refusal("standard output"));

    target.say("burst 100");
    target.written();
    let agent = attach.pid();
    attach.stop();
    target.finish();
    let info = bench.info("out.bin");
    let account = Account::of(&info);
    account.check(200);
    check_frames(&bench.table("out.bin", &[]), &info);
    record("-", "two on one file: the first", 200, account, &info, segments_of(&[agent]));
    // Now the file is free.
    bench.attach(&other, &["-o", "out.bin", "--force"]).stop();
    other.finish();
}

/// Names change while two commands wait for them: one of them gets the file, and both report the
/// truth.
#[test]
fn two_that_start_together_do_not_share_a_file() {
    let bench = build(&[]);
    let mut targets = [start(&bench), start(&bench)];
    let (mut both, mut one) = (0, 0);
    for round in 0..rounds(10, 200) {
        let force = round % 2 == 1;
        if !force {
            let _ = fs::remove_file(bench.path("out.bin"));
        }
        let attaches = targets.each_ref().map(|target| {
            let mut command = bench.command(ppt());
            command.args(["attach", &target.pid().to_string(), "-o", "out.bin", "-d", "300ms"]);
            command.args(force.then_some("--force"));
            Attach::spawn(command)
        });
        let said = attaches.map(|attach| {
            let said = attach.stderr.rest();
            (said.contains("attached: "), said)
        });
        let attached = said.iter().filter(|entry| entry.0).count();
        assert!(attached >= 1 || force, "{said:?}");
        both += usize::from(attached == 2);
        one += usize::from(attached == 1);
        for (_, said) in said.iter().filter(|entry| !entry.0) {
            assert!(said.contains(" is being written by ") || said.contains(" exists; "), "{said}");
        }
        assert_eq!(files(&bench), ["out.bin"]);
        numbers(&bench, "out.bin");
    }
    // Running one after the other is allowed: the first may have ended by then.
    assert!(one > 0, "{one} of one, {both} of both");
    for target in &mut targets {
        target.close();
        target.wait();
    }
}

#[test]
fn files_of_a_series_that_is_being_written_are_not_overwritten() {
    let bench = build(&[]);
    let (mut target, other) = (start(&bench), start(&bench));
    let rotating = ["-o", "out.bin", "--rotate", "1s"];
    let attach = bench.attach(&target, &rotating);
    let mut written = 0;
    while !bench.path("out.000003.bin").exists() {
        target.say("burst 10");
        written = target.written();
        std::thread::sleep(Duration::from_millis(20));
    }
    let pid = other.pid().to_string();
    let ran = bench.ppt(&[&["attach", &pid, "--force"], &rotating[..]].concat());
    let expected = format!(
        "ppt: out.00000{{}}.bin is being written by process {} (ppt); choose another name with -o\n",
        attach.pid()
    );
    assert_message(&ran.stderr, &expected);
    assert_eq!(ran.code(), 1);
    attach.stop();
    let parts: Vec<_> = files(&bench);
    let all: Vec<i64> = parts.iter().flat_map(|part| numbers(&bench, part)).collect();
    assert_eq!(all, (0..written as i64).collect::<Vec<_>>());
    target.finish();
    other.finish();
}
