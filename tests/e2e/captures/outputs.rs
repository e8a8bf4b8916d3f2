//! What is in a file already is never lost, whatever a command is told, and whatever becomes of it
//! or of its files meanwhile.
//!
//! The same in any order: `sequences.rs`. What may be written at all: `hostile_user.rs`, rule (i).

use std::fs::{self, File, OpenOptions};
use std::os::unix::fs::{MetadataExt, PermissionsExt, symlink};
use std::os::unix::process::CommandExt;
use std::path::Path;
use std::process::{Command, Stdio};
use std::time::Duration;

use crate::fixtures::steady::{
    as_nobody, assert_said, build, check_frames, is_root, open_to_nobody, start,
};
use crate::fixtures::stepped::{self, end};
use crate::fixtures::support::{
    Account, Attach, Bench, Target, ppt, record, rounds, segments_of, text, wait_until,
};

/// Bytes of a file that is a capture; those of one that was whole before.
fn whole(bench: &Bench, target: &mut Target, name: &str) -> Vec<u8> {
    let attach = bench.attach(target, &["-o", name]);
    target.say("burst 10");
    target.written();
    attach.stop();
    assert_eq!(numbers(bench, name).len(), 10);
    fs::read(bench.path(name)).unwrap()
}

/// The number of each frame of a capture, which is readable: each number comes once in the life of
/// a target.
pub fn numbers(bench: &Bench, name: &str) -> Vec<i64> {
    bench.table(name, &[]).numbers("n")
}

/// Everything in the folder but what a target needs, hidden files included.
pub fn files(bench: &Bench) -> Vec<String> {
    let entries = fs::read_dir(bench.path("")).unwrap();
    let names = entries.map(|it| it.unwrap().file_name().into_string().unwrap());
    let mut names: Vec<_> = names
        .filter(|it| !it.starts_with("steady") && !["counters", "ppt"].contains(&it.as_str()))
        .collect();
    names.sort();
    names
}

/// Waits until the capture is written up to the last frame of a burst.
fn burst(target: &mut Target, count: u32, bench: &Bench, capture: &str) {
    let before = numbers(bench, capture).len();
    target.say(&format!("burst {count}"));
    target.written();
    wait_until("the burst is in the file", || {
        let ran = bench.ppt(&["dump", capture]);
        ran.status.success() && ran.stdout.lines().count() > before + count as usize
    });
}

const READ: &str =
    "is also the input, and writing to it would destroy it; choose another name with -o";

#[test]
fn a_dump_does_not_overwrite_what_it_reads() {
    let bench = build(&[]);
    let mut target = start(&bench);
    let before = whole(&bench, &mut target, "in.bin");
    fs::hard_link(bench.path("in.bin"), bench.path("hard.bin")).unwrap();
    symlink("in.bin", bench.path("symbolic.bin")).unwrap();
    for (input, output) in [
        ("in.bin", "in.bin"),
        ("in.bin", "hard.bin"),
        ("hard.bin", "./in.bin"),
        ("symbolic.bin", "in.bin"),
    ] {
        for force in [&[][..], &["--force"]] {
            let ran = bench.ppt(&[&["dump", input, "-o", output][..], force].concat());
            assert_said(&ran.stderr, &format!("ppt: {output} {READ}\n"));
            assert_eq!(ran.code(), 1);
            assert!(fs::read(bench.path("in.bin")).unwrap() == before, "{input} to {output}");
        }
    }
    // Where the shell opens it.
    for command in ["dump", "info"] {
        for input in ["in.bin", "hard.bin", "-"] {
            let stdout = OpenOptions::new().append(true).open(bench.path("in.bin")).unwrap();
            let stdin = File::open(bench.path("in.bin")).unwrap();
            let mut child = bench.command(ppt());
            child.args([command, input]).stdin(stdin).stdout(stdout);
            let output = child.output().unwrap();
            assert_said(&text(&output.stderr), &format!("ppt: standard output {READ}\n"));
            assert_eq!(output.status.code(), Some(1));
            assert!(fs::read(bench.path("in.bin")).unwrap() == before, "{command} {input}");
        }
    }
    target.finish();
}

#[test]
fn a_dump_overwrites_nothing_by_itself() {
    let bench = build(&[]);
    let mut target = start(&bench);
    whole(&bench, &mut target, "in.bin");
    let table = bench.ppt(&["dump", "in.bin"]).stdout;
    let dump = |output: &str, more: &[&str]| {
        bench.ppt(&[&["dump", "in.bin", "-o", output], more].concat())
    };
    let said = |ran: &crate::fixtures::support::Ran, expected: &str| {
        assert_said(&ran.stderr, &format!("ppt: {expected}\n"));
        assert_eq!(ran.code(), 1);
    };
    bench.write("mine.tsv", "mine");
    let exists = "exists; choose another name with -o, or overwrite it with --force";
    said(&dump("mine.tsv", &[]), &format!("mine.tsv {exists}"));
    symlink("mine.tsv", bench.path("link.tsv")).unwrap();
    let link = "is a symbolic link, which ppt does not follow; choose another name with -o";
    said(&dump("link.tsv", &["--force"]), &format!("link.tsv {link}"));
    // What fails halfway leaves what is there.
    let ran = dump("mine.tsv", &["--force", "-b", "other"]);
    assert_eq!(ran.code(), 2, "{ran:?}");
    assert_eq!(fs::read_to_string(bench.path("mine.tsv")).unwrap(), "mine");
    // A new one has the mode that the umask leaves; `-` is stdout.
    assert_eq!((dump("new.tsv", &[]).code(), dump("mine.tsv", &["--force"]).code()), (0, 0));
    assert_eq!(dump("-", &[]).stdout, table);
    for name in ["new.tsv", "mine.tsv"] {
        assert_eq!(fs::read_to_string(bench.path(name)).unwrap(), table);
        let like = File::create(bench.path("like")).unwrap().metadata().unwrap().mode();
        assert_eq!(fs::metadata(bench.path(name)).unwrap().mode(), like);
    }
    assert_eq!(files(&bench), ["in.bin", "like", "link.tsv", "mine.tsv", "new.tsv"]);

    // A dump that is killed in the middle of it.
    assert!(Command::new("mkfifo").arg(bench.path("pipe")).status().unwrap().success());
    let mut command = bench.command(ppt());
    command.args(["dump", "pipe", "-o", "mine.tsv", "--force"]);
    let mut dump = command.spawn().unwrap();
    // It waits for the rest.
    let _half = {
        use std::io::Write;
        let mut pipe = OpenOptions::new().write(true).open(bench.path("pipe")).unwrap();
        let capture = fs::read(bench.path("in.bin")).unwrap();
        pipe.write_all(&capture[..capture.len() - 100]).unwrap();
        pipe
    };
    dump.kill().unwrap();
    dump.wait().unwrap();
    assert_eq!(fs::read_to_string(bench.path("mine.tsv")).unwrap(), table);
    assert_eq!(files(&bench), ["in.bin", "like", "link.tsv", "mine.tsv", "new.tsv", "pipe"]);
    target.finish();
}

/// Under sudo: what root reads is a stranger's, what it writes is the caller's.
#[test]
fn a_dump_belongs_to_the_caller_wherever_it_goes() {
    if !is_root() {
        return;
    }
    let bench = build(&[]);
    let mut target = start(&bench);
    whole(&bench, &mut target, "in.bin");
    fs::create_dir(bench.path("theirs")).unwrap();
    std::os::unix::fs::chown(bench.path("theirs"), Some(1234), Some(1234)).unwrap();
    for (folder, mode) in [("theirs", 0o700), ("theirs", 0o1777), ("", 0o700)] {
        fs::set_permissions(bench.path(folder), fs::Permissions::from_mode(mode)).unwrap();
        let path = Path::new(folder).join("table.tsv");
        for force in [&[][..], &["--force"]] {
            let mut command = bench.command(ppt());
            command.args(["dump", "in.bin", "-o"]).arg(&path).args(force);
            let output = command.env("SUDO_UID", "1234").env("SUDO_GID", "1234").output().unwrap();
            assert_eq!((output.status.code(), text(&output.stderr)), (Some(0), String::new()));
            let found = fs::metadata(bench.path(path.to_str().unwrap())).unwrap();
            assert_eq!((found.uid(), found.gid(), found.len() > 100), (1234, 1234, true));
        }
        fs::remove_file(bench.path(path.to_str().unwrap())).unwrap();
    }
    target.finish();
}

/// The same for captures, and for those that come one after the other.
#[test]
fn a_capture_belongs_to_the_caller_wherever_it_goes() {
    if !is_root() {
        return;
    }
    let bench = build(&[]);
    let mut target = start(&bench);
    fs::create_dir(bench.path("theirs")).unwrap();
    std::os::unix::fs::chown(bench.path("theirs"), Some(1234), Some(1234)).unwrap();
    for mode in [0o700, 0o1777] {
        fs::set_permissions(bench.path("theirs"), fs::Permissions::from_mode(mode)).unwrap();
        for (output, first, last, args) in [
            ("theirs/out.bin", "theirs/out.bin", "theirs/out.bin", &[][..]),
            (
                "theirs/parts.bin",
                "theirs/parts.000001.bin",
                "theirs/parts.000002.bin",
                &["--rotate", "1s", "--keep", "1"],
            ),
        ] {
            for force in [&[][..], &["--force"]] {
                let mut command = bench.command(ppt());
                command.args(["attach", &target.pid().to_string(), "-o", output]);
                command.args(args).args(force).env("SUDO_UID", "1234").env("SUDO_GID", "1234");
                let attach = Attach::start(command);
                target.say("burst 10");
                target.written();
                wait_until("the last one is there", || bench.path(last).exists());
                attach.stop();
                let found = fs::metadata(bench.path(last)).unwrap();
                assert_eq!((found.uid(), found.mode() & 0o777), (1234, 0o600), "{last}");
                assert_eq!(fs::read_dir(bench.path("theirs")).unwrap().count(), 1, "one is kept");
                fs::rename(bench.path(last), bench.path(first)).unwrap();
            }
            fs::remove_file(bench.path(first)).unwrap();
        }
    }
    assert_eq!(fs::read_dir(bench.path("theirs")).unwrap().count(), 0);
    target.finish();
}

/// Whatever is refused, interrupted, or comes to nothing: with `--force` what was there stays, and
/// without it there is nothing.
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
                _ => _ = attach.ended(0),
            }
            assert!(fs::read(bench.path("good.bin")).unwrap() == before, "{output:?}");
            assert_eq!(files(&bench), ["good.bin", "other.bin"], "{output:?}");
        }
    }
    target.finish();
}

/// A disk that has no room even for the first bytes.
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
            let said = text(&output.stderr);
            assert_eq!(output.status.code(), Some(1), "{said}");
            assert!(said.contains("File too large (os error 27)"), "{said}");
            assert!(fs::read(bench.path("good.bin")).unwrap() == before, "{command:?}");
        }
    }
    assert_eq!(files(&bench), ["good.bin", "other.bin"]);
    assert_eq!(segments_of(&agent.borrow()), 0);
    target.finish();
}

/// As `ulimit -f` does it, but by bytes.
pub fn limit_file_size(command: &mut Command, bytes: u64) {
    // SAFETY: between fork and exec, one system call.
    unsafe {
        command.pre_exec(move || {
            let limit = libc::rlimit { rlim_cur: bytes, rlim_max: bytes };
            libc::setrlimit(libc::RLIMIT_FSIZE, &limit);
            Ok(())
        })
    };
}

/// As on a file system that has no files without names, such as NFS.
pub fn without_nameless_files(command: &mut Command) {
    const O_TMPFILE: u32 = 0o20000000;
    let op = |code: u32, jt, jf, k| libc::sock_filter { code: code as u16, jt, jf, k };
    let (load, ret) = (libc::BPF_LD | libc::BPF_W | libc::BPF_ABS, libc::BPF_RET | libc::BPF_K);
    let jump = |how: u32| libc::BPF_JMP | how | libc::BPF_K;
    let filter = [
        op(load, 0, 0, 0), // the number of the call
        op(jump(libc::BPF_JEQ), 0, 3, libc::SYS_openat as u32),
        op(load, 0, 0, 16 + 2 * 8), // its flags
        op(jump(libc::BPF_JSET), 0, 1, O_TMPFILE),
        op(ret, 0, 0, libc::SECCOMP_RET_ERRNO | libc::EOPNOTSUPP as u32),
        op(ret, 0, 0, libc::SECCOMP_RET_ALLOW),
    ];
    // SAFETY: between fork and exec, system calls alone; the kernel copies the filter.
    unsafe {
        command.pre_exec(move || {
            let mut filter = filter;
            let program = libc::sock_fprog { len: 6, filter: filter.as_mut_ptr() };
            let done = libc::prctl(libc::PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) == 0
                && libc::prctl(libc::PR_SET_SECCOMP, libc::SECCOMP_MODE_FILTER, &program) == 0;
            if done { Ok(()) } else { Err(std::io::Error::last_os_error()) }
        })
    };
}

/// There, a file has a hidden name until it has its own.
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
    let hidden = || files(&bench).into_iter().find(|it| it.starts_with(".ppt-"));
    let waiting = |output: &[&str]| {
        let attach = [&["attach", "--wait-for", "no-such-name"], output].concat();
        let attach = Attach::spawn(command(&attach));
        attach.stderr.wait_for("ppt: waiting for");
        assert!(hidden().is_some(), "{:?}", files(&bench));
        attach
    };
    // Interrupted, it is gone; killed, it is left, and goes with the next.
    let attach = waiting(&["-o", "new.bin"]);
    attach.signal(libc::SIGINT);
    attach.ended(0);
    assert_eq!(files(&bench), ["good.bin"]);
    waiting(&["-o", "good.bin", "--force"]).kill();
    assert!(fs::read(bench.path("good.bin")).unwrap() == before);
    let left = hidden().expect("it is left");
    // One that is being written stays.
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

/// kill -9 between any two system calls: there is the old capture, byte for byte, or the new one,
/// readable, and what else may be left is removed by the next.
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
    // Where the name changes hands, all of them: that is where the threads are started.
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
        let others = files(&bench).into_iter().filter(|it| it != "good.bin");
        let others: Vec<_> = others.collect();
        assert!(others.iter().all(|it| it.starts_with(".ppt-")) && others.len() <= 1, "{others:?}");
        // Without --force there is nothing, or a capture.
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
    // The next one has it all in order.
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

/// What is captured is there under its name from `attached:` on.
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
        assert_said(&ran.stderr, &refusal("out.bin"));
        assert_eq!(ran.code(), if args[0] == "run" { 125 } else { 1 }, "{args:?}");
    }
    // Where it is somebody's standard output.
    let stdout = OpenOptions::new().append(true).open(bench.path("out.bin")).unwrap();
    let mut command = bench.command(ppt());
    command.args(["attach", &pid, "-o", "-"]);
    let said = Attach::spawn_into(command, stdout.into()).ended(1);
    assert_said(&(said + "\n"), &refusal("standard output"));

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
    // Now it can be had.
    bench.attach(&other, &["-o", "out.bin", "--force"]).stop();
    other.finish();
}

/// Names change hands while two wait for them: one of them has the file, and both say the truth.
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
        let attached = said.iter().filter(|it| it.0).count();
        assert!(attached >= 1 || force, "{said:?}");
        both += usize::from(attached == 2);
        one += usize::from(attached == 1);
        for (_, said) in said.iter().filter(|it| !it.0) {
            assert!(said.contains(" is being written by ") || said.contains(" exists; "), "{said}");
        }
        assert_eq!(files(&bench), ["out.bin"]);
        numbers(&bench, "out.bin");
    }
    // One after the other is no fault: the first may have ended by then.
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
    assert_said(&ran.stderr, &expected);
    assert_eq!(ran.code(), 1);
    attach.stop();
    let parts: Vec<_> = files(&bench);
    let all: Vec<i64> = parts.iter().flat_map(|it| numbers(&bench, it)).collect();
    assert_eq!(all, (0..written as i64).collect::<Vec<_>>());
    target.finish();
    other.finish();
}

/// What can happen to a file that is written.
struct Accident {
    name: &'static str,
    happens: fn(&Bench, &str),
    /// The code of what is said.
    said: &'static str,
    /// Files that are there afterwards, and which bursts are in them: before and after.
    files: &'static [(&'static str, Bursts)],
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Bursts {
    Before,
    After,
    Both,
}
use Bursts::{After, Before, Both};

const ACCIDENTS: [Accident; 9] = [
    Accident {
        name: "copied and truncated",
        happens: |bench, file| {
            fs::copy(bench.path(file), bench.path("copy.bin")).unwrap();
            File::create(bench.path(file)).unwrap();
        },
        said: "output-truncated",
        files: &[("copy.bin", Before), ("out.bin", After)],
    },
    Accident {
        name: "emptied",
        happens: |bench, file| drop(File::create(bench.path(file)).unwrap()),
        said: "output-truncated",
        files: &[("out.bin", After)],
    },
    Accident {
        name: "cut",
        happens: |bench, file| {
            let size = fs::metadata(bench.path(file)).unwrap().len();
            let file = OpenOptions::new().write(true).open(bench.path(file)).unwrap();
            file.set_len(size - 1).unwrap();
        },
        said: "output-changed",
        // The last chunk is not whole any more: that of the clocks, after the frames.
        files: &[("out.000002.bin", After), ("out.bin", Before)],
    },
    Accident {
        name: "cut, and longer than before",
        happens: |bench, file| {
            let size = fs::metadata(bench.path(file)).unwrap().len();
            let file = OpenOptions::new().write(true).open(bench.path(file)).unwrap();
            file.set_len(size - 1).unwrap();
            file.set_len(size + 1000).unwrap();
        },
        said: "output-changed",
        files: &[("out.000002.bin", After), ("out.bin", Before)],
    },
    Accident {
        name: "appended to",
        happens: |bench, file| {
            use std::io::Write;
            let mut file = OpenOptions::new().append(true).open(bench.path(file)).unwrap();
            file.write_all(&[0; 100]).unwrap();
        },
        said: "output-changed",
        files: &[("out.000002.bin", After), ("out.bin", Before)],
    },
    Accident {
        name: "removed",
        happens: |bench, file| fs::remove_file(bench.path(file)).unwrap(),
        said: "output-removed",
        files: &[("out.bin", After)],
    },
    Accident {
        name: "replaced",
        happens: |bench, file| {
            fs::copy(bench.path("in.bin"), bench.path("other.bin")).unwrap();
            fs::rename(bench.path("other.bin"), bench.path(file)).unwrap();
        },
        said: "output-removed",
        files: &[("out.000002.bin", After)],
    },
    Accident {
        name: "moved",
        happens: |bench, file| fs::rename(bench.path(file), bench.path("moved.bin")).unwrap(),
        said: "output-moved",
        files: &[("moved.bin", Both)],
    },
    Accident {
        name: "moved, and another put there",
        happens: |bench, file| {
            fs::rename(bench.path(file), bench.path("moved.bin")).unwrap();
            fs::copy(bench.path("in.bin"), bench.path(file)).unwrap();
        },
        said: "output-moved",
        files: &[("moved.bin", Both)],
    },
];

/// The program is told of; the capture goes on where it can be read; what others put there is whole.
#[test]
fn a_file_that_is_taken_away_while_it_is_written() {
    let bench = build(&[]);
    let mut target = start(&bench);
    let other = whole(&bench, &mut target, "in.bin");
    let mut agents = Vec::new();
    for args in [&[][..], &["--compress", "lz4"]] {
        for accident in &ACCIDENTS {
            happens(&bench, &mut target, accident, args, &mut agents);
            assert!(fs::read(bench.path("in.bin")).unwrap() == other);
            for file in files(&bench).iter().filter(|it| *it != "in.bin") {
                fs::remove_file(bench.path(file)).unwrap();
            }
        }
    }
    target.finish();
    assert_eq!(segments_of(&agents), 0);
}

fn happens(
    bench: &Bench,
    target: &mut Target,
    accident: &Accident,
    args: &[&str],
    agents: &mut Vec<u32>,
) {
    let name = accident.name;
    let attach = bench.attach(target, &[&["-o", "out.bin"], args].concat());
    agents.push(attach.pid());
    burst(target, 100, bench, "out.bin");
    let before = numbers(bench, "out.bin");
    // With clocks after them.
    settled(bench, "out.bin");
    (accident.happens)(bench, "out.bin");
    let first = before.last().unwrap() + 1;
    let after: Vec<_> = (first..first + 200).collect();
    target.say("burst 200");
    target.written();
    if accident.said != "output-moved" {
        // It is noticed while it goes on, not in the end.
        attach.stderr.wait_for(&format!("  more: ppt explain {}", accident.said));
    }
    attach.signal(libc::SIGINT);
    let said = attach.ended(1);
    crate::fixtures::explained::explained(&said);
    assert!(said.contains(&format!("ppt explain {}\n", accident.said)), "{name}: {said}");
    assert!(said.contains("ppt: captured 300 frames"), "{name}: {said}");
    // What the summary says of the file is so.
    let last = said.lines().rfind(|it| it.starts_with("ppt: captured ")).unwrap();
    let whole = accident.said == "output-moved";
    assert_eq!(last.ends_with(" does not hold all of them"), !whole, "{name}: {last}");
    for (file, bursts) in accident.files {
        let expected = match bursts {
            Before => before.clone(),
            After => after.clone(),
            Both => before.iter().chain(&after).copied().collect(),
        };
        assert!(damaged_at_most(bench, file, *bursts) == expected, "{name}: {file}");
    }
    let last = accident.files.iter().find(|it| it.1 != Before).unwrap().0;
    let info = bench.info(last);
    assert_eq!(info["complete"], true, "{name}");
    let account = Account::of(&info);
    assert_eq!((account.lost, account.dropped), (0, 0), "{name}");
    if args.is_empty() {
        let case = format!("{name} while it is written: the file after");
        // The target has it mapped, and lets it go in the end.
        record("-", &case, account.captured, account, &info, 0);
    }
}

/// Frames of a file; one that was spoilt by somebody else may have damage after them.
fn damaged_at_most(bench: &Bench, file: &str, bursts: Bursts) -> Vec<i64> {
    let ran = bench.ppt(&["dump", file]);
    assert!(ran.code() == 0 || bursts == Before, "{file}: {}", ran.stderr);
    let mut lines = ran.stdout.lines();
    let column = lines.next().unwrap().split('\t').position(|it| it == "n").unwrap();
    lines.map(|line| line.split('\t').nth(column).unwrap().parse().unwrap()).collect()
}

/// Waits until nothing has been written for a while, but the clocks of each second.
fn settled(bench: &Bench, file: &str) {
    let size = || fs::metadata(bench.path(file)).unwrap().len();
    let before = size();
    wait_until("the clocks are written", || size() > before);
}

/// Parts of a series, and what stdout is, fare no worse.
#[test]
fn a_part_that_is_taken_away_while_it_is_written() {
    let bench = build(&[]);
    let mut target = start(&bench);
    let attach = bench.attach(&target, &["-o", "out.bin", "--rotate", "1h"]);
    burst(&mut target, 10, &bench, "out.000001.bin");
    bench.write("out.000002.bin", "somebody else's");
    bench.write("theirs", "theirs, too");
    fs::rename(bench.path("theirs"), bench.path("out.000001.bin")).unwrap();
    target.say("burst 10");
    target.written();
    attach.stderr.wait_for("  the capture continues in out.000003.bin");
    burst(&mut target, 10, &bench, "out.000003.bin");
    File::create(bench.path("out.000003.bin")).unwrap();
    target.say("burst 10");
    target.written();
    attach.stderr.wait_for("  the capture continues from the start of the file");
    attach.signal(libc::SIGINT);
    attach.ended(1);
    assert_eq!(files(&bench), ["out.000001.bin", "out.000002.bin", "out.000003.bin"]);
    assert_eq!(fs::read_to_string(bench.path("out.000001.bin")).unwrap(), "theirs, too");
    assert_eq!(fs::read_to_string(bench.path("out.000002.bin")).unwrap(), "somebody else's");
    assert_eq!(numbers(&bench, "out.000003.bin"), (30..40).collect::<Vec<_>>());
    target.finish();
}

#[test]
fn standard_output_that_is_truncated_while_it_is_written() {
    let bench = build(&[]);
    let mut target = start(&bench);
    for append in [false, true] {
        let mut command = bench.command(ppt());
        command.args(["attach", "-o", "-", &target.pid().to_string()]);
        let mut options = OpenOptions::new();
        let file = options.create(true).write(true).append(append).open(bench.path("out.bin"));
        let attach = Attach::spawn_into(command, file.unwrap().into());
        attach.stderr.wait_for("attached:");
        burst(&mut target, 10, &bench, "out.bin");
        let before = numbers(&bench, "out.bin");
        File::create(bench.path("out.bin")).unwrap();
        target.say("burst 10");
        target.written();
        attach.stderr.wait_for("ppt: stdout was truncated while ppt wrote it");
        attach.signal(libc::SIGINT);
        attach.ended(1);
        let last = before.last().unwrap();
        assert_eq!(numbers(&bench, "out.bin"), (last + 1..=last + 10).collect::<Vec<_>>());
        fs::remove_file(bench.path("out.bin")).unwrap();
    }
    target.finish();
}

/// Where no other file can be made, that is said, and nobody writes on for nothing.
#[test]
fn a_file_that_is_removed_where_no_other_can_be_made() {
    if !is_root() {
        return;
    }
    let bench = build(&[]);
    open_to_nobody(&bench);
    let theirs = bench.path("theirs");
    fs::create_dir(&theirs).unwrap();
    let mode = |mode| fs::set_permissions(&theirs, fs::Permissions::from_mode(mode)).unwrap();
    mode(0o1777);
    let mut command = as_nobody(bench.command(bench.path("steady")));
    command.arg("counters");
    let mut target = Target::start(command);
    let mut command = as_nobody(bench.command(bench.path("ppt")));
    command.args(["attach", &target.pid().to_string(), "-o", "theirs/out.bin"]);
    let attach = Attach::start(command);
    target.say("burst 10");
    target.written();
    fs::remove_file(theirs.join("out.bin")).unwrap();
    mode(0o755);
    let said = attach.ended(1);
    let expected = "ppt: theirs/out.bin: it was removed or replaced while ppt wrote it, and there \
                    is no other file: cannot write theirs/out.";
    assert!(said.contains(expected), "{said}");
    assert!(!crate::fixtures::steady::gate(&mut target));
    target.finish();
}

/// A folder that is removed takes the capture with it: nothing is said to be in a file.
#[test]
fn a_folder_that_is_removed_while_a_capture_is_written_there() {
    let bench = build(&[]);
    let mut target = start(&bench);
    fs::create_dir(bench.path("q")).unwrap();
    let attach = bench.attach(&target, &["-o", "q/out.bin"]);
    burst(&mut target, 10, &bench, "q/out.bin");
    fs::remove_dir_all(bench.path("q")).unwrap();
    target.say("burst 10");
    target.written();
    let said = attach.ended(1);
    crate::fixtures::explained::explained(&said);
    assert!(!said.contains("are in the file") && !said.contains("out.bin: 1"), "{said}");
    assert!(said.contains("\n  there is no file any more: the frames captured"), "{said}");
    assert!(said.contains("; q/out.bin is gone, and they with it"), "{said}");

    // Where nothing is written after that, only the end finds out.
    fs::create_dir(bench.path("q")).unwrap();
    let attach = bench.attach(&target, &["-o", "q/out.bin", "-d", "2s"]);
    fs::remove_dir_all(bench.path("q")).unwrap();
    let said = attach.ended(1);
    assert!(said.contains("; q/out.bin is gone, and they with it"), "{said}");
    target.finish();
}

/// A shell's `>&-`: the runtime puts /dev/null there, which takes everything.
#[test]
fn a_closed_stdout_takes_no_capture_and_no_table() {
    let bench = build(&[]);
    let mut target = start(&bench);
    whole(&bench, &mut target, "in.bin");
    let pid = target.pid().to_string();
    for (args, what) in
        [(&["attach", &pid, "-d", "1s", "-o", "-"][..], "capture"), (&["dump", "in.bin"], "table")]
    {
        let mut command = bench.command("sh");
        command.args(["-c", "exec \"$0\" \"$@\" >&-", ppt()]).args(args);
        let output = command.output().unwrap();
        let expected = format!("ppt: stdout is closed; choose a file for the {what} with -o\n");
        assert_said(&text(&output.stderr), &expected);
        assert_eq!(output.status.code(), Some(2), "{what}");
        // What leads nowhere on purpose is none of that.
        let null = OpenOptions::new().read(true).write(true).open("/dev/null").unwrap();
        let mut command = bench.command(ppt());
        command.args(args).stdout(null).stderr(Stdio::null());
        assert_eq!(command.status().unwrap().code(), Some(0), "{what}");
    }
    target.finish();
}

/// How many processes a command has does not show in what a quiet `ppt run` says: nothing.
#[test]
fn a_quiet_run_says_nothing_of_its_processes() {
    let bench = crate::fixtures::flood::build_with("first_main.c");
    let script = "for i in 1 2 3; do ./first_main 5; done";
    let ran = bench.ppt(&["run", "-q", "--", "sh", "-c", script]);
    assert_eq!((ran.code(), ran.stderr.as_str()), (0, ""));
    assert_eq!(Account::of(&bench.info("out.bin")).captured, 15);
}

#[test]
fn a_size_without_room_for_one_frame_is_a_mistake_of_usage() {
    let bench = build(&[]);
    let mut target = start(&bench);
    let pid = target.pid().to_string();
    let page = crate::fixtures::steady::page(&mut target);
    let ran = bench.ppt(&["attach", &pid, "--max-size", "1"]);
    let expected = "ppt: --max-size 1 B is too small: a capture without any frame takes {} KiB\n";
    assert_said(&ran.stderr, expected);
    assert_eq!((ran.code(), files(&bench).len()), (2, 0));
    let ran = bench.ppt(&["run", "--max-size", "1K", "--", "true"]);
    assert_said(&ran.stderr, &expected.replace("1 B", "1.0 KiB"));
    assert_eq!((ran.code(), files(&bench).len()), (125, 0));
    // What it says is enough: the least size that is taken, to the byte.
    let mut least = 1..64 << 10;
    while least.len() > 1 {
        let middle = least.start + least.len() as u64 as usize / 2;
        let size = middle.to_string();
        let ran = bench.ppt(&["attach", &pid, "--max-size", &size, "-d", "1ms", "--force"]);
        match ran.code() {
            0 => least.end = middle,
            _ => least.start = middle,
        }
    }
    assert_eq!(
        crate::fixtures::steady::page(&mut target).split(' ').next(),
        page.split(' ').next()
    );
    let size = (least.end + 4096).to_string();
    let attach = bench.attach(&target, &["--force", "--max-size", &size]);
    target.say("burst 1000");
    target.written();
    attach.ended(0);
    let captured = numbers(&bench, "out.bin").len();
    assert!((1..1000).contains(&captured), "{captured}");
    assert!(fs::metadata(bench.path("out.bin")).unwrap().len() <= least.end as u64 + 4096);
    target.finish();
}
