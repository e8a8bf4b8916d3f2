//! Segments that targets make: when they are chosen, what they leave behind, and targets that
//! misuse them.

use std::fs;
use std::os::unix::fs::MetadataExt;

use crate::fixtures::flood::{self, count, frames, gaps};
use crate::fixtures::steady::is_root;
use crate::fixtures::support::{
    Account, Attach, Kind, Target, available, child_of, copy_program, fetched, of_both_kinds, ppt,
    record, segments_mapped, segments_of, stopped, wait_until,
};

/// Sends `command` to `failing_main`. Returns the number of frames begun.
fn tell(target: &mut Target, command: &str) -> u64 {
    target.say(command);
    target.written()
}

/// Writes until the segment has been fetched. Returns the number of frames begun.
fn write_until_fetched(target: &mut Target, attach: &Attach) -> u64 {
    let mut written = 0;
    while segments_mapped(target.pid()) == 0 {
        written += tell(target, "go");
    }
    fetched(attach, 1);
    written + tell(target, "go")
}

/// If shmat(2) is refused, the target makes the segment itself; nothing is lost from there on.
fn falls_over(reason: &str, before: bool, row: &str) {
    let bench = flood::build_with("failing_main.c");
    let mut target = bench.start("failing_main", &["1000"]);
    if before {
        tell(&mut target, reason);
    }
    let attach = bench.attach(&target, &["-v", "--allow", "seccomp"]);
    if !before {
        tell(&mut target, reason);
    }
    let agent = attach.pid();
    let written = write_until_fetched(&mut target, &attach);
    let stderr = attach.stop();
    assert!(stderr.contains("; the program makes its segment itself\n"), "{stderr}");
    target.finish();
    let info = bench.info("out.bin");
    let account = Account::of(&info);
    account.check(written);
    assert!(account.captured >= 1000, "{account:?}");
    assert_eq!(count(&info, "dropped", "not_mapped"), account.dropped);
    assert_eq!(frames(&bench, "out.bin").len() as u64, account.captured);
    let case = format!("memfd instead: {reason}");
    record(row, &case, written, account, &info, segments_of(&[agent]));
}

#[test]
fn a_filter_of_shmat() {
    falls_over("seccomp", true, "24");
}

#[test]
fn another_user_since_it_was_attached() {
    if is_root() {
        falls_over("user", false, "38");
    }
}

/// A shell under a filter starts both.
#[test]
fn under_the_same_filter_the_agents_own_calls_are_the_proof() {
    let bench = flood::build_with("failing_main.c");
    let name = format!("same-{}", std::process::id());
    copy_program(bench.path("failing_main"), bench.path(&name));
    let script =
        format!("\"$0\" attach --wait-for {name} -v 2> said & echo agent $!; exec ./{name} 1000");
    let mut command = bench.command(bench.path("failing_main"));
    command.args(["0", "/bin/sh", "-c", &script, ppt()]);
    let mut target = Target::spawn(command);
    let agent: i32 = target.stdout.wait_for("agent ").parse().unwrap();
    let said = || fs::read_to_string(bench.path("said")).unwrap_or_default();
    wait_until("ppt is attached", || said().contains("attached:"));
    let written = tell(&mut target, "go");
    // SAFETY: no pointers; the process has not been waited for.
    assert_eq!(unsafe { libc::kill(agent, libc::SIGINT) }, 0);
    wait_until("ppt has ended", || said().contains("ppt: captured "));
    target.finish();
    assert!(said().contains("; awaiting memfd segment "), "{}", said());
    let account = Account::of(&bench.info("out.bin"));
    assert_eq!((account.captured, account.lost, account.dropped), (written, 0, 0));
}

/// A target that can neither attach nor make a segment.
fn fails(reason: &str, args: &[&str], message: &str, row: &str) {
    let bench = flood::build_with("failing_main.c");
    let mut target = bench.start("failing_main", &["1000"]);
    tell(&mut target, reason);
    let mut attach = bench.attach(&target, args);
    let mut written = 0;
    while !attach.has_ended() {
        written += tell(&mut target, "go");
    }
    let agent = attach.pid();
    let stderr = attach.ended(1);
    let expected = format!("ppt: flood: the target could not map the segment: {message}\n");
    assert!(stderr.contains(&expected), "{stderr}");
    assert_eq!(tell(&mut target, "go"), 0, "off");
    assert_eq!(segments_mapped(target.pid()), 0);
    target.finish();
    let info = bench.info("out.bin");
    let account = Account::of(&info);
    assert_eq!((account.captured, account.lost), (0, 0));
    // The frame during which the gate was closed may have found it open, but no other.
    assert!((written - 1..=written).contains(&account.dropped), "{account:?} of {written}");
    record(row, reason, account.dropped, account, &info, segments_of(&[agent]));
}

#[test]
fn a_filter_of_both() {
    let why = "its system call filter (seccomp) refuses memfd_create(2)";
    let message = format!("EPERM: Operation not permitted\n  {why}");
    fails("seccomp both", &["--allow", "seccomp"], &message, "24");
}

#[test]
fn no_descriptor_left() {
    let message = "EMFILE: Too many open files\n  it has too many open files: see ulimit -n";
    fails("descriptors", &["--segment", "memfd"], message, "27");
}

#[test]
fn a_limit_of_file_size() {
    let message = "EFBIG: File too large\n  the segment is larger than its files may be: see ulimit \
                   -f; ask for less by --memory";
    fails("files", &["--segment", "memfd"], message, "27");
}

#[test]
fn a_filter_that_kills() {
    let bench = flood::build_with("failing_main.c");
    let mut target = bench.start("failing_main", &["1000"]);
    tell(&mut target, "seccomp kill");
    let pid = target.pid().to_string();
    for args in [&[][..], &["--segment", "memfd"]] {
        let ran = bench.ppt(&[&["attach", &pid], args].concat());
        assert_eq!(ran.code(), 1);
        let expected =
            format!("ppt: process {pid} filters its system calls (seccomp), and the filter might");
        assert!(ran.stderr.starts_with(&expected), "{}", ran.stderr);
        assert!(!bench.path("out.bin").exists());
        assert_eq!(tell(&mut target, "go"), 0, "nothing was written");
    }
    // A user who accepts the risk can continue.
    let attach = bench.attach(&target, &["--segment", "memfd", "--allow", "seccomp"]);
    let agent = attach.pid();
    let written = write_until_fetched(&mut target, &attach);
    let stderr = attach.stop();
    assert!(stderr.starts_with("ppt: the program filters its system calls (seccomp)"), "{stderr}");
    target.finish();
    let info = bench.info("out.bin");
    let account = Account::of(&info);
    account.check(written);
    record("25", "seccomp kill", written, account, &info, segments_of(&[agent]));
}

#[test]
fn the_target_ends_before_its_segment_is_fetched() {
    let bench = flood::build_with("failing_main.c").of(Kind::Memfd);
    let mut target = bench.start("failing_main", &["1000"]);
    let attach = bench.attach(&target, &[]);
    attach.signal(libc::SIGSTOP);
    stopped(attach.pid());
    assert_eq!(tell(&mut target, "go"), 1000);
    target.say("quit");
    assert!(target.wait().success());
    attach.signal(libc::SIGCONT);
    let stderr = attach.ended(0);
    let expected = "ppt: flood: the program ended before its segment was fetched: the frames of \
                    its last moments, if any, are not in the capture\n";
    assert!(stderr.contains(expected), "{stderr}");
    assert_eq!(Account::of(&bench.info("out.bin")), Account::default());
}

#[test]
fn the_agent_dies_before_it_fetches() {
    let bench = flood::build_with("failing_main.c").of(Kind::Memfd);
    let mut target = bench.start("failing_main", &["1000"]);
    let attach = bench.attach(&target, &["-o", "dead.bin"]);
    attach.signal(libc::SIGSTOP);
    stopped(attach.pid());
    assert_eq!(tell(&mut target, "go"), 1000);
    attach.kill();
    let attach = bench.attach(&target, &["-v"]);
    assert_eq!(tell(&mut target, "go"), 1000);
    let stderr = attach.stop();
    assert!(stderr.contains("; adopted memfd segment "), "{stderr}");
    assert_eq!(segments_mapped(target.pid()), 1);
    target.finish();
    let account = Account::of(&bench.info("out.bin"));
    assert_eq!((account.captured, account.lost, account.dropped), (1000, 0, 0));
    let gaps: Vec<_> = gaps(&bench, "out.bin").into_iter().map(|gap| (gap.2, gap.3)).collect();
    assert_eq!(gaps, [(1000, "unattended".to_owned())]);
}

/// A program that closes unknown descriptors keeps its segment, but no other process can reach it.
#[test]
fn a_target_that_closes_the_descriptor() {
    let bench = flood::build_with("failing_main.c").of(Kind::Memfd);
    let mut target = bench.start("failing_main", &["1000"]);
    let session = |target: &mut Target, capture: &str| {
        let attach = bench.attach(target, &["-v", "-o", capture]);
        assert_eq!(tell(target, "go"), 1000);
        fetched(&attach, 1);
        tell(target, "close");
        assert_eq!(tell(target, "go"), 1000);
        let stderr = attach.stop();
        assert!(stderr.contains("; awaiting memfd segment "), "{stderr}");
        let account = Account::of(&bench.info(capture));
        assert_eq!((account.captured, account.lost, account.dropped), (2000, 0, 0));
    };
    session(&mut target, "1.bin");
    session(&mut target, "2.bin");
    assert_eq!(segments_mapped(target.pid()), 2);
    target.finish();
}

#[test]
fn children_that_inherit_the_descriptor_pin_no_memory() {
    let bench = flood::build_with("forks_main.c").of(Kind::Memfd);
    let mut target = bench.start("forks_main", &[]);
    let attach = bench.attach(&target, &[]);
    target.say("write");
    assert_eq!(target.written(), 1000);
    fetched(&attach, 1);
    target.say("fork");
    let child = target.stdout.wait_for("forked ");
    let descriptor = || {
        let all = fs::read_dir(format!("/proc/{child}/fd")).unwrap().map(Result::unwrap);
        let is_ours = |path: &std::path::Path| {
            fs::read_link(path).is_ok_and(|to| to.to_string_lossy().starts_with("/memfd:ppt"))
        };
        all.map(|entry| entry.path())
            .find(|path| is_ours(path))
            .expect("it inherits the descriptor")
    };
    let resident = || fs::metadata(descriptor()).unwrap().blocks() * 512;
    let before = resident();
    target.say("quit");
    assert!(target.wait().success());
    attach.ended(0);
    let after = resident();
    // ppt may have given back memory that it has read before this point.
    assert!(after < 128 << 10 && after <= before, "{before} bytes, then {after}");
    drop(target);
}

fn holes(target: &mut Target, what: &str) -> String {
    target.say(what);
    target.stdout.wait_for(&format!("{what} "))
}

fn a_target_that_punches_holes(kind: Kind) {
    let bench = flood::build_with("holes_main.c").of(kind);
    let mut target = bench.start("holes_main", &[]);
    let attach = bench.attach(&target, &[]);
    let agent = attach.pid();
    let mut written = target.run();
    fetched(&attach, 1);
    // If memory is released during the copy of a frame, its sequence number is followed by zeros.
    let captured = || fs::metadata(bench.path("out.bin")).unwrap().len() > written * 48;
    wait_until("the first round is in the capture", captured);
    attach.signal(libc::SIGSTOP);
    stopped(agent);
    written += target.run();
    assert_eq!(holes(&mut target, "punch"), "done");
    attach.signal(libc::SIGCONT);
    written += target.run();
    attach.stop();
    target.finish();
    let info = bench.info("out.bin");
    let account = Account::of(&info);
    account.check(written);
    assert_eq!(written, 3000);
    let corrupt = count(&info, "lost_by", "corrupt");
    assert!(corrupt == 1000 && corrupt == account.lost, "{account:?} {corrupt}");
    assert_eq!(frames(&bench, "out.bin").len() as u64, account.captured);
    let case = kind.case("holes punched");
    record("32", &case, written, account, &info, segments_of(&[agent]));
}

#[test]
fn a_target_that_truncates_what_ppt_made() {
    if !is_root() {
        eprintln!("skipped: only root can truncate a System V segment");
        return;
    }
    let bench = flood::build_with("holes_main.c");
    let mut target = bench.start("holes_main", &[]);
    let attach = bench.attach(&target, &[]);
    let agent = attach.pid();
    let written = target.run();
    attach.signal(libc::SIGSTOP);
    stopped(agent);
    assert_eq!(holes(&mut target, "truncate"), "done");
    attach.signal(libc::SIGCONT);
    let stderr = attach.ended(1);
    let expected = "ppt: flood: its segment was truncated by somebody, and ppt gave it up\n  the \
                    frames captured before that are in the file\n";
    assert!(stderr.contains(expected), "{stderr}");
    target.finish();
    let info = bench.info("out.bin");
    assert_eq!(info["complete"], true);
    let account = Account::of(&info);
    // Frames that were not drained before the memory was released cannot even be counted.
    assert!(account.captured + account.lost <= written, "{account:?}");
    let accounted = account.captured + account.lost;
    record("32", "segment truncated", accounted, account, &info, segments_of(&[agent]));
}

#[test]
fn a_sealed_segment_cannot_be_truncated() {
    if !is_root() {
        eprintln!("skipped: only root can open what is mapped");
        return;
    }
    let bench = flood::build_with("holes_main.c").of(Kind::Memfd);
    let mut target = bench.start("holes_main", &[]);
    let attach = bench.attach(&target, &[]);
    let mut written = target.run();
    fetched(&attach, 1);
    assert_eq!(holes(&mut target, "truncate"), "Operation not permitted");
    written += target.run();
    attach.stop();
    target.finish();
    let account = Account::of(&bench.info("out.bin"));
    assert_eq!((account.captured, written), (2000, 2000));
}

/// A target in other namespaces; `prefix` runs it and ppt as another user.
fn apart(flags: &[&str], prefix: &[&str], forks: bool, case: &str) {
    if !is_root() || !available("unshare") || !available("setpriv") {
        return;
    }
    let bench = flood::build_with("holes_main.c");
    fs::set_permissions(bench.path("."), std::os::unix::fs::PermissionsExt::from_mode(0o755))
        .unwrap();
    if !prefix.is_empty() {
        std::os::unix::fs::chown(bench.path("."), Some(65534), Some(65534)).unwrap();
    }
    let program = bench.path("holes_main");
    let words = [prefix, &["unshare"], flags, &[program.to_str().unwrap()]].concat();
    let probe = [prefix, &["unshare"], flags, &["true"]].concat();
    if !bench.command(probe[0]).args(&probe[1..]).status().is_ok_and(|status| status.success()) {
        eprintln!("skipped: this system makes no such namespaces: {flags:?}");
        return;
    }
    let mut command = bench.command(words[0]);
    command.args(&words[1..]);
    let mut target = Target::start(command);
    let pid = if forks { child_of(target.pid()) } else { target.pid() };
    let pid = pid.to_string();
    let words = [prefix, &["env", ppt(), "attach", &pid, "-v", "-o", "out.bin"]].concat();
    let mut command = bench.command(words[0]);
    command.args(&words[1..]);
    let attach = Attach::start(command);
    let agent = attach.pid();
    let written = target.run();
    let stderr = attach.stop();
    let other_ipc = flags.contains(&"--ipc");
    assert_eq!(stderr.contains("; awaiting memfd segment "), other_ipc, "{stderr}");
    target.finish();
    let info = bench.info("out.bin");
    let account = Account::of(&info);
    account.check(written);
    assert_eq!((account.captured, written), (1000, 1000));
    record("23", case, written, account, &info, segments_of(&[agent]));
}

const ALL: &[&str] =
    &["--user", "--map-root-user", "--ipc", "--mount", "--pid", "--fork", "--net", "--uts"];
const NOBODY: &[&str] = &["setpriv", "--reuid", "65534", "--regid", "65534", "--clear-groups"];

#[test]
fn in_another_ipc_namespace() {
    apart(&["--ipc"], &[], false, "other ipc namespace");
}

#[test]
fn in_another_mount_namespace() {
    apart(&["--mount"], &[], false, "other mount namespace");
}

#[test]
fn in_another_pid_namespace() {
    apart(&["--pid", "--fork"], &[], true, "other pid namespace");
}

#[test]
fn in_another_user_namespace() {
    apart(&["--user", "--map-root-user"], &[], false, "other user namespace");
}

#[test]
fn in_other_namespaces_all_together() {
    apart(ALL, &[], true, "other namespaces, all together");
}

#[test]
fn in_other_namespaces_all_together_unprivileged() {
    apart(ALL, NOBODY, true, "other namespaces, all together, unprivileged");
}

#[test]
fn where_memory_must_not_be_executed() {
    if !is_root() || !available("unshare") {
        return;
    }
    let bench = flood::build_with("holes_main.c").of(Kind::Memfd);
    let mut command = bench.command("unshare");
    // The strictest setting, which belongs to the pid namespace.
    let script = "echo 2 > /proc/sys/vm/memfd_noexec; exec ./holes_main";
    command.args(["--pid", "--fork", "sh", "-c", script]);
    let mut target = Target::start(command);
    let pid = child_of(target.pid()).to_string();
    let mut command = bench.command(ppt());
    command.args(["attach", &pid]).args(bench.kind_args());
    let attach = Attach::start(command);
    let written = target.run();
    attach.stop();
    target.finish();
    let account = Account::of(&bench.info("out.bin"));
    assert_eq!((account.captured, written), (1000, 1000));
}

of_both_kinds! {
    a_target_that_punches_holes
}
