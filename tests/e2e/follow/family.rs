//! A child is off until it is attached to, in every language and by every way to fork: it reports
//! that, and its frames cost the same as without any session.

use nix::sys::ptrace::{self, Options};
use nix::sys::signal::{Signal, kill};
use nix::sys::wait::{WaitStatus, waitpid};
use nix::unistd::Pid;

use crate::fixtures::family::{Child, Family, IN_PYTHON, build_cpp};
use crate::fixtures::python;
use crate::fixtures::rust::program;
use crate::fixtures::support::{Account, Bench, Target, available, record, segments_of};

/// Number of instructions that 100 frames of a child take, between two SIGUSR1, and whether one of
/// them, or the child afterwards, was on.
fn stepped(family: &mut Family, child: Child) -> (u64, bool) {
    let pid = Pid::from_raw(child.pid.cast_signed());
    ptrace::seize(pid, Options::empty()).unwrap();
    kill(pid, Signal::SIGUSR2).unwrap();
    let stop = || match waitpid(pid, None).unwrap() {
        WaitStatus::Stopped(_, signal) => signal,
        other => panic!("{other:?}"),
    };
    let mut steps = 0;
    let mut counts = false;
    loop {
        match stop() {
            Signal::SIGUSR1 if counts => break,
            Signal::SIGUSR1 => counts = true,
            Signal::SIGTRAP => steps += 1,
            other => {
                ptrace::cont(pid, other).unwrap();
                continue;
            }
        }
        ptrace::step(pid, None).unwrap();
    }
    ptrace::detach(pid, None).unwrap();
    let (written, on) = family.ended(child);
    (steps, written > 0 || on)
}

/// The cost in a child that was forked without a session.
fn off(bench: &Bench, start: &dyn Fn(&Bench) -> Target) -> u64 {
    let mut family = Family::new(start(bench));
    let child = family.make("fork");
    let (steps, on) = stepped(&mut family, child);
    assert!(!child.was_on && !on);
    // A slow path or a system call per frame would take more.
    assert!((200..4000).contains(&steps), "{steps}");
    assert_eq!(stepped(&mut family, child), (steps, false), "it is the same each time");
    family.target.finish();
    steps
}

fn children_are_off(
    bench: &Bench,
    start: &dyn Fn(&Bench) -> Target,
    kinds: &[&'static str],
    case: &str,
) {
    let cost = off(bench, start);
    let mut family = Family::new(start(bench));
    let mut children = vec![family.make("fork")];
    let attach = bench.attach(&family.target, &["--allow", "seccomp"]);
    children.extend(kinds.iter().map(|kind| family.make(kind)));
    let early = children.len();
    family.write(1000);
    children.extend(kinds.iter().map(|kind| family.make(kind)));
    let check = |family: &mut Family, moment: &str| {
        for (index, &child) in children.iter().enumerate() {
            let when = if index < early { "before" } else { "after" };
            let what = format!("{case}: {}, {when} the first frame, {moment}", child.kind);
            assert!(!child.was_on, "{what}: on with its first breath");
            assert_eq!(stepped(family, child), (cost, false), "{what}");
        }
    };
    check(&mut family, "while its parent is attached");
    family.write(1000);
    let agent = attach.pid();
    attach.stop();
    check(&mut family, "after that");
    let written = family.written;
    family.target.finish();
    let info = bench.info("out.bin");
    let account = Account::of(&info);
    account.check(written);
    assert_eq!((written, account.captured), (2000, 2000), "the parent's alone");
    let case = format!("children of every kind, {case}");
    record("36", &case, written, account, &info, segments_of(&[agent]));
}

fn family(bench: &Bench) -> Target {
    bench.start("family_main", &[])
}

const KINDS: &[&str] = &["fork", "thread", "grandchild", "daemon", "exec"];

/// Additional kinds for programs in C.
const C_KINDS: &[&str] = &["fork", "thread", "grandchild", "daemon", "exec", "clone"];

#[test]
fn off_from_the_first_instruction_in_c() {
    children_are_off(&Family::build(), &family, C_KINDS, "C");
}

#[test]
fn off_from_the_first_instruction_in_cpp() {
    if !available("g++") {
        return;
    }
    children_are_off(&build_cpp(), &family, C_KINDS, "C++");
}

#[test]
fn off_from_the_first_instruction_in_rust() {
    let start = |bench: &Bench| Target::start(bench.command(program("family")));
    children_are_off(&Bench::new(), &start, KINDS, "Rust");
}

/// The kernel cannot empty the control page, here because a filter prevents it.
#[test]
fn off_without_help_of_the_kernel() {
    let bench = Family::build();
    let start = |bench: &Bench| {
        let mut command = bench.command(bench.path("refused"));
        let advice = libc::MADV_WIPEONFORK.to_string();
        command.args([&libc::SYS_madvise.to_string(), "2", &advice, "./family_main"]);
        Target::start(command)
    };
    children_are_off(&bench, &start, KINDS, "no MADV_WIPEONFORK");

    // Without a fork handler, a child detects the fork at its first frame.
    let cost = off(&bench, &start);
    let mut family = Family::new(start(&bench));
    let attach = bench.attach(&family.target, &["--allow", "seccomp", "--force"]);
    let child = family.make("clone");
    assert!(child.was_on, "nothing has emptied its page");
    assert!(listed(&bench, child).contains("left open by a fork"), "{}", listed(&bench, child));
    let (steps, _) = stepped(&mut family, child);
    assert!(steps > cost, "{steps}");
    assert_eq!(stepped(&mut family, child), (cost, false));
    assert!(listed(&bench, child).contains(" off "));
    let child = family.make("clone");
    let ran = bench.ppt(&["detach", &child.pid.to_string(), "--allow", "seccomp"]);
    assert_eq!(ran.code(), 0, "{ran:?}");
    assert_eq!(stepped(&mut family, child), (cost, false), "closed from outside");
    family.written = 0;
    family.write(1000);
    attach.stop();
    family.target.finish();
    assert_eq!(Account::of(&bench.info("out.bin")).captured, 1000);
}

/// The line of `ppt list` for a process.
fn listed(bench: &Bench, child: Child) -> String {
    let ran = bench.ppt(&["list", &child.pid.to_string()]);
    assert_eq!(ran.code(), 0, "{ran:?}");
    ran.stdout
}

/// A child of vfork(2) temporarily runs in the parent's thread: its frames are refused if that
/// thread has no ring yet, and the parent is not affected.
#[test]
fn a_child_of_vfork_leaves_its_parent_on() {
    let bench = Family::build();
    for advice in [0, libc::MADV_WIPEONFORK] {
        let mut command = bench.command(bench.path("refused"));
        let advice = advice.to_string();
        command.args([&libc::SYS_madvise.to_string(), "2", &advice, "./family_main"]);
        let mut family = Family::new(Target::start(command));
        let attach = bench.attach(&family.target, &["--allow", "seccomp", "--force"]);
        assert!(family.asks("vfork"), "the parent is on");
        family.write(1000);
        attach.stop();
        family.target.finish();
        assert_eq!(Account::of(&bench.info("out.bin")).captured, 1000, "{advice}");
    }
}

#[test]
fn off_from_the_first_instruction_in_python() {
    let bench = Bench::new();
    bench.copy("flood.frame");
    bench.write("family.py", IN_PYTHON);
    if !python::modules(&bench, &["flood"]) {
        return;
    }
    let mut command = bench.command("python3");
    command.arg("family.py");
    let mut family = Family::new(Target::start(command));
    let attach = bench.attach(&family.target, &[]);
    let kinds = ["fork", "thread", "grandchild", "daemon", "multiprocessing"];
    let families = |family: &mut Family, when: &str| {
        for kind in kinds {
            let child = family.make(kind);
            let ended = family.ended(child);
            assert_eq!((child.was_on, ended), (false, (0, false)), "{kind}, {when}");
        }
    };
    families(&mut family, "before the first frame");
    family.write(1000);
    families(&mut family, "after it");
    family.write(1000);
    let agent = attach.pid();
    attach.stop();
    families(&mut family, "after that");
    let written = family.written;
    family.target.finish();
    let info = bench.info("out.bin");
    let account = Account::of(&info);
    account.check(written);
    assert_eq!((written, account.captured), (2000, 2000), "the parent's alone");
    let case = "children of every kind, Python";
    record("36", case, written, account, &info, segments_of(&[agent]));
}
