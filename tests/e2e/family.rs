//! A child is off until it is attached to, in every language and by every way to fork: it says so,
//! and its frames cost what they cost where nobody was ever attached.

use nix::sys::ptrace::{self, Options};
use nix::sys::signal::{Signal, kill};
use nix::sys::wait::{WaitStatus, waitpid};
use nix::unistd::Pid;

use crate::flood;
use crate::python;
use crate::rust::program;
use crate::support::{Account, Bench, Target, record, segments_of};

/// A child, which lives as long as its parent's stdin is open.
struct Child {
    pid: Pid,
    kind: &'static str,
    was_on: bool,
}

/// `PID ON`.
fn said(rest: &str) -> (Pid, bool) {
    let (pid, on) = rest.split_once(' ').unwrap();
    (Pid::from_raw(pid.parse().unwrap()), on != "0")
}

/// Has `target` make a child.
fn make(target: &mut Target, kind: &'static str) -> Child {
    target.say(kind);
    let (pid, was_on) = said(&target.stdout.wait_for("child "));
    Child { pid, kind, was_on }
}

fn write(target: &mut Target, count: u64) -> u64 {
    target.say(&format!("write {count}"));
    target.written()
}

/// Instructions that 100 frames of a child take, from one SIGUSR1 to the next, and whether it says
/// that it is on afterwards.
fn round(target: &Target, child: &Child) -> (u64, bool) {
    let pid = child.pid;
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
    let (round, on) = said(&target.stdout.wait_for("round "));
    assert_eq!(round, pid);
    (steps, on)
}

/// What a child costs that was forked where nobody is attached.
fn off(bench: &Bench, start: &dyn Fn(&Bench) -> Target) -> u64 {
    let mut target = start(bench);
    let child = make(&mut target, "fork");
    let (steps, on) = round(&target, &child);
    assert!(!child.was_on && !on);
    // An interpreter would take more; a system call or a slow path, too.
    assert!((200..4000).contains(&steps), "{steps}");
    assert_eq!(round(&target, &child), (steps, false), "it is the same each time");
    target.finish();
    steps
}

fn children_are_off(
    bench: &Bench,
    start: &dyn Fn(&Bench) -> Target,
    kinds: &[&'static str],
    case: &str,
) {
    let cost = off(bench, start);
    let mut target = start(bench);
    let mut children = vec![make(&mut target, "fork")];
    let attach = bench.attach(&target, &["--allow", "seccomp"]);
    children.extend(kinds.iter().map(|kind| make(&mut target, kind)));
    let early = children.len();
    let mut written = write(&mut target, 1000);
    children.extend(kinds.iter().map(|kind| make(&mut target, kind)));
    let check = |target: &Target, moment: &str| {
        for (index, child) in children.iter().enumerate() {
            let when = if index < early { "before" } else { "after" };
            let what = format!("{case}: {}, {when} the first frame, {moment}", child.kind);
            assert!(!child.was_on, "{what}: on with its first breath");
            assert_eq!(round(target, child), (cost, false), "{what}");
        }
    };
    check(&target, "while its parent is attached");
    written += write(&mut target, 1000);
    let agent = attach.pid();
    attach.stop();
    check(&target, "after that");
    target.finish();
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
/// Those that a program in C may have on top.
const C_KINDS: &[&str] = &["fork", "thread", "grandchild", "daemon", "exec", "clone"];

#[test]
fn off_from_the_first_instruction_in_c() {
    let bench = flood::build_with("family_main.c");
    children_are_off(&bench, &family, C_KINDS, "C");
}

#[test]
fn off_from_the_first_instruction_in_cpp() {
    let bench = Bench::new();
    bench.copy_all(&["flood.frame", "family_main.c", "pattern.h"]);
    bench.pptc(&["--emit", "cpp", "flood.frame"]);
    let pattern = std::fs::read_to_string(bench.path("pattern.h")).unwrap();
    bench.write("pattern.h", &pattern.replace("pptframe_beat_t", "ppt::flood::beat"));
    let files = ["-x", "c++", "family_main.c", "-x", "none", "flood.cpp", "-o", "family_main"];
    bench.compile("g++", &[&["-std=c++17"], &files[..]].concat());
    children_are_off(&bench, &family, C_KINDS, "C++");
}

#[test]
fn off_from_the_first_instruction_in_rust() {
    let start = |bench: &Bench| Target::start(bench.command(program("family")));
    children_are_off(&Bench::new(), &start, KINDS, "Rust");
}

/// Where the kernel cannot empty the control page, here because a filter does not let it.
#[test]
fn off_without_help_of_the_kernel() {
    let bench = flood::build_with("family_main.c");
    bench.copy("filtered_main.c");
    bench.cc(&["filtered_main.c", "-o", "filtered"]);
    let start = |bench: &Bench| {
        let mut command = bench.command(bench.path("filtered"));
        let advice = libc::MADV_WIPEONFORK.to_string();
        command.args([&libc::SYS_madvise.to_string(), "2", &advice, "./family_main"]);
        Target::start(command)
    };
    children_are_off(&bench, &start, KINDS, "no MADV_WIPEONFORK");

    // Without a fork handler, a child finds out at its first frame.
    let cost = off(&bench, &start);
    let mut target = start(&bench);
    let attach = bench.attach(&target, &["--allow", "seccomp", "--force"]);
    let child = make(&mut target, "clone");
    assert!(child.was_on, "nothing has emptied its page");
    let pid = child.pid.as_raw().to_string();
    assert!(listed(&bench, &pid).contains("left open by a fork"), "{}", listed(&bench, &pid));
    let (steps, on) = round(&target, &child);
    assert!(steps > cost && !on, "{steps}");
    assert_eq!(round(&target, &child), (cost, false));
    assert!(listed(&bench, &pid).contains(" off "));
    let child = make(&mut target, "clone");
    let pid = child.pid.as_raw().to_string();
    let ran = bench.ppt(&["detach", &pid, "--allow", "seccomp"]);
    assert_eq!(ran.code(), 0, "{ran:?}");
    assert_eq!(round(&target, &child), (cost, false), "closed from outside");
    let written = write(&mut target, 1000);
    attach.stop();
    target.finish();
    let account = Account::of(&bench.info("out.bin"));
    assert_eq!((written, account.captured), (1000, 1000));
}

/// What `ppt list` says of a process.
fn listed(bench: &Bench, pid: &str) -> String {
    let ran = bench.ppt(&["list", pid]);
    assert_eq!(ran.code(), 0, "{ran:?}");
    ran.stdout
}

/// A child of vfork(2) is the parent's thread for a while: what it writes is refused where that
/// thread has no ring yet, and the parent is none the worse for it.
#[test]
fn a_child_of_vfork_leaves_its_parent_on() {
    let bench = flood::build_with("family_main.c");
    bench.copy("filtered_main.c");
    bench.cc(&["filtered_main.c", "-o", "filtered"]);
    for advice in [0, libc::MADV_WIPEONFORK] {
        let mut command = bench.command(bench.path("filtered"));
        let advice = advice.to_string();
        command.args([&libc::SYS_madvise.to_string(), "2", &advice, "./family_main"]);
        let mut target = Target::start(command);
        let attach = bench.attach(&target, &["--allow", "seccomp", "--force"]);
        target.say("vfork");
        let (_, on) = said(&target.stdout.wait_for("made "));
        assert!(on, "the parent is on");
        let written = write(&mut target, 1000);
        attach.stop();
        target.finish();
        let account = Account::of(&bench.info("out.bin"));
        assert_eq!((written, account.captured), (1000, 1000), "{advice}");
    }
}

const FAMILY: &str = r#"
import multiprocessing, os, sys, threading
import flood

def say(what):
    os.write(1, f"{what} {os.getpid()} {int(flood.on())}\n".encode())

def child():
    say("child")
    for n in range(100):
        flood.beat(thread=1, n=n)
    say("round")

def forks(deeper=lambda: None):
    if os.fork() == 0:
        deeper()
        child()
        os._exit(0)
    os.wait()

def daemon():
    if os.fork() != 0:
        os._exit(0)

def grandchild():
    forks()
    os._exit(0)

multiprocessing.set_start_method("fork")
print("ready", flush=True)
for line in sys.stdin:
    kind = line.strip()
    if kind == "fork":
        forks()
    elif kind == "daemon":
        forks(daemon)
    elif kind == "grandchild":
        forks(grandchild)
    elif kind == "thread":
        thread = threading.Thread(target=forks)
        thread.start()
        thread.join()
    elif kind == "multiprocessing":
        process = multiprocessing.Process(target=child)
        process.start()
        process.join()
    else:
        for n in range(1000):
            flood.beat(thread=0, n=n)
        print("written 1000", flush=True)
"#;

#[test]
fn off_from_the_first_instruction_in_python() {
    let bench = Bench::new();
    bench.copy("flood.frame");
    bench.write("family.py", FAMILY);
    if !python::modules(&bench, &["flood"]) {
        return;
    }
    let mut command = bench.command("python3");
    command.arg("family.py");
    let mut target = Target::start(command);
    let attach = bench.attach(&target, &[]);
    let kinds = ["fork", "thread", "grandchild", "daemon", "multiprocessing"];
    let families = |target: &mut Target, when: &str| {
        for kind in kinds {
            let child = make(target, kind);
            let (_, on) = said(&target.stdout.wait_for("round "));
            assert!(!child.was_on && !on, "{kind}, {when}");
        }
    };
    families(&mut target, "before the first frame");
    let mut written = write(&mut target, 1000);
    families(&mut target, "after it");
    written += write(&mut target, 1000);
    let agent = attach.pid();
    attach.stop();
    families(&mut target, "after that");
    target.finish();
    let info = bench.info("out.bin");
    let account = Account::of(&info);
    account.check(written);
    assert_eq!((written, account.captured), (2000, 2000), "the parent's alone");
    let case = "children of every kind, Python";
    record("36", case, written, account, &info, segments_of(&[agent]));
}
