//! `ppt run`: captures from the first frame, whatever the command does with what it inherits.

use std::os::fd::AsRawFd;
use std::os::unix::net::UnixStream;

use crate::fixtures::first::{all_captured, all_captured_in_order, build, build_cpp, written};
use crate::fixtures::ledger::{Ledger, captures};
use crate::fixtures::rust::program;
use crate::fixtures::support::{
    Account, Bench, Ran, Target, available, ppt, record, segments_of, wait_until,
};

/// `ppt run -o out.bin` of a shell command; the file may exist.
fn sh(bench: &Bench, script: &str) -> (Ran, u32) {
    bench.ppt_and_pid(&["run", "--force", "--", "sh", "-c", script])
}

#[test]
fn from_the_first_frame() {
    let bench = build();
    let build = |compiler: &str, name: &str, flags: &[&str]| {
        let files = ["-DNO_PLUGIN", "first_main.c", "flood.c", "-o", name, "-lpthread"];
        bench.compile(compiler, &[flags, &files].concat());
    };
    build("gcc", "static", &["-static"]);
    build("gcc", "static-pie", &["-static-pie", "-fPIE"]);
    build("gcc", "no-pie", &["-no-pie", "-fno-pie"]);
    let mut programs = vec!["first_main", "static", "static-pie", "no-pie"];
    if available("musl-gcc") {
        build("musl-gcc", "musl", &["-static"]);
        programs.push("musl");
    }
    for program in programs {
        let args = ["run", "--force", "--", &format!("./{program}"), "1000", "7"];
        let (ran, agent) = bench.ppt_and_pid(&args);
        assert_eq!(ran.code(), 7, "{program}: {ran:?}");
        all_captured(&bench, (&ran, agent), 1000, &format!("C, {program}"));
        assert!(ran.stderr.starts_with("attached: pid "), "{ran:?}");
    }
}

#[test]
fn from_the_first_frame_of_a_static_in_cpp() {
    if !available("g++") {
        return;
    }
    let bench = build_cpp();
    let (ran, agent) = bench.ppt_and_pid(&["run", "--", "./first", "1000", "7"]);
    assert_eq!(ran.code(), 7, "{ran:?}");
    all_captured_in_order(&bench, (&ran, agent), 1000, "C++");
}

#[test]
fn from_the_first_frame_in_rust() {
    let bench = Bench::new();
    let first = program("first");
    let command = ["run", "--", first.to_str().unwrap(), "1000", "7"];
    let (ran, agent) = bench.ppt_and_pid(&command);
    assert_eq!(ran.code(), 7, "{ran:?}");
    all_captured_in_order(&bench, (&ran, agent), 1000, "Rust");
}

#[test]
fn for_as_long_as_was_asked_for() {
    if !available("g++") {
        return;
    }
    let bench = build_cpp();
    let mut command = bench.command(ppt());
    command.args(["run", "-d", "1s", "--", "./first", "5", "wait"]);
    let (mut run, stderr) = Target::spawn_loud(command);
    assert_eq!(run.written(), 5);
    stderr.wait_for("ppt: captured 5 frames");
    let said = stderr.wait_for("ppt: process ");
    assert!(said.contains("continues without being captured"), "{said}");
    let info = bench.info("out.bin");
    assert_eq!(info["end"]["reason"], "duration");
    let account = Account::of(&info);
    assert_eq!((account.captured, account.lost, account.dropped), (5, 0, 0));
    record("-", "ppt run: for a second", 5, account, &info, segments_of(&[run.pid()]));
    run.close();
    assert!(run.wait().success(), "the command's own status");
    assert_eq!(segments_of(&[run.pid()]), 0);
}

/// Many short processes in many files: each file mentions those that lived while it was written.
#[test]
fn short_processes_in_many_files() {
    const PROCESSES: usize = 120;
    let bench = build();
    let script = format!("for i in $(seq {PROCESSES}); do ./first_main 20; done; sleep 1.1");
    let command = ["run", "--rotate", "1s", "--", "sh", "-c", &script];
    let (ran, agent) = bench.ppt_and_pid(&command);
    assert_eq!(ran.code(), 0, "{ran:?}");
    let names = captures(&bench, "out");
    let (mut sources, mut sum) = (0, Account::default());
    for name in &names {
        let info = bench.info(name);
        assert_eq!(info["complete"], true, "{name}");
        let account = Account::of(&info);
        sum.captured += account.captured;
        sum.lost += account.lost;
        sources += info["buffers"].as_array().unwrap().len();
    }
    assert_eq!((written(&ran.stdout), sum.captured, sum.lost), (2400, 2400, 0));
    // At a change of files, both may mention a living process.
    assert!(names.len() > 1 && sources < PROCESSES + 2 * names.len(), "{sources} in {names:?}");
    let info = bench.info(names.last().unwrap());
    record("-", "ppt run: short ones in many files", 2400, sum, &info, segments_of(&[agent]));
}

#[test]
fn in_many_files() {
    let bench = build();
    let command = ["run", "--rotate", "1M", "--slots", "65536", "--", "./first_main", "60000"];
    let (ran, agent) = bench.ppt_and_pid(&command);
    assert_eq!(ran.code(), 0, "{ran:?}");
    assert!(ran.stderr.contains("out.*.bin"), "{ran:?}");
    let names = captures(&bench, "out");
    let mut ledger = Ledger::default();
    for (at, name) in names.iter().enumerate() {
        let info = ledger.take(&bench, name);
        let last = at + 1 == names.len();
        assert_eq!(info["end"]["reason"], if last { "exited" } else { "rotated" }, "{info}");
    }
    assert!(names.len() > 1, "{names:?}");
    assert_eq!((written(&ran.stdout), ledger.total()), (60_000, 60_000), "{ledger:?}");
    let mut info = bench.info(names.last().unwrap());
    let account = ledger.sum_up(&mut info);
    record("-", "ppt run: in many files", 60_000, account, &info, segments_of(&[agent]));
}

#[test]
fn a_plugin_that_is_loaded_later() {
    let bench = build();
    std::fs::create_dir(bench.path("left")).unwrap();
    bench.copy("left/example.frame");
    bench.copy("plugin.c");
    bench.pptc(&["example.frame"]);
    bench.cc(&["-shared", "-fPIC", "plugin.c", "example.c", "-o", "plugin.so"]);
    let ran = bench.ppt(&["run", "--", "./first_main", "5", "load", "./plugin.so"]);
    assert_eq!(ran.code(), 0, "{ran:?}");
    let account = Account::of(&bench.info("out.bin"));
    assert_eq!((account.captured, account.lost, account.dropped), (15, 0, 0), "{}", ran.stderr);
    assert_eq!(ran.stderr.matches("attached: pid ").count(), 2, "{}", ran.stderr);
    assert_eq!(bench.table("out.bin", &["-b", "example"]).rows.len(), 10);
}

/// Each time, it is loaded at its former address, but as another instance.
#[test]
fn a_plugin_that_comes_and_goes() {
    let bench = Bench::new();
    bench.write("guest.frame", "buffer guest 1024; frame visit { u32 n; }");
    bench.write(
        "guest_plugin.c",
        r#"#include "guest.h"
void visit(unsigned first) {
    for (unsigned n = first; n < first + 10; n++)
        PPT_WRITE_VISIT(f) f.n = n;
}
"#,
    );
    bench.write(
        "guest_main.c",
        r#"#include <dlfcn.h>
int main(void) {
    for (unsigned n = 0; n < 6; n++) {
        void *guest = dlopen("./guest.so", RTLD_NOW | RTLD_LOCAL);
        void (*visit)(unsigned) = 0;
        if (guest == 0)
            return 99;
        *(void **)&visit = dlsym(guest, "visit");
        visit(n * 10);
        dlclose(guest);
    }
    return 0;
}
"#,
    );
    bench.pptc(&["guest.frame"]);
    bench.cc(&["-shared", "-fPIC", "guest_plugin.c", "guest.c", "-o", "guest.so"]);
    bench.cc(&["guest_main.c", "-o", "guest_main", "-ldl"]);
    let ran = bench.ppt(&["run", "--", "./guest_main"]);
    assert_eq!(ran.code(), 0, "{ran:?}");
    let account = Account::of(&bench.info("out.bin"));
    assert_eq!((account.captured, account.lost, account.dropped), (60, 0, 0), "{}", ran.stderr);
    let mut numbers = bench.table("out.bin", &[]).numbers("n");
    numbers.sort_unstable();
    assert_eq!(numbers, (0..60).collect::<Vec<_>>());
    assert_eq!(ran.stderr.matches("attached: pid ").count(), 6, "{}", ran.stderr);
    assert!(!ran.stderr.contains("no longer captured"), "{}", ran.stderr);
}

#[test]
fn processes_that_a_command_starts() {
    let bench = build();
    for (case, script, expected) in [
        ("child of a shell", "./first_main 20", 20),
        ("exec of a shell", "exec ./first_main 20", 20),
        ("one after the other", "env X=1 ./first_main 20; timeout 60 ./first_main 30", 50),
        ("three at once", "./first_main 20 & ./first_main 30 & ./first_main 40 & wait", 90),
        ("exec of itself", "./first_main 20 exec", 40),
        ("ten in turn", "for i in 1 2 3 4 5 6 7 8 9 10; do ./first_main 3; done", 30),
    ] {
        let (ran, agent) = sh(&bench, script);
        assert_eq!(ran.code(), 0, "{script}: {ran:?}");
        all_captured(&bench, (&ran, agent), expected, case);
    }
}

#[test]
fn what_takes_away_what_it_should_hand_down() {
    let bench = build();
    for script in [
        "unset PPT_RUN; ./first_main 20",
        "unset PPT_HELLO; ./first_main 20",
        "eval \"exec ${PPT_RUN%%:*}>&-\"; ./first_main 20",
    ] {
        // dash knows descriptors of one digit only.
        if !available("bash") {
            return;
        }
        let (ran, agent) = sh(&bench, &format!("bash -c '{script}'"));
        assert_eq!(ran.code(), 0, "{script}: {ran:?}");
        all_captured(&bench, (&ran, agent), 20, script.split(';').next().unwrap());
    }
    for script in [
        "env -i ./first_main 1",
        "unset PPT_RUN PPT_HELLO; ./first_main 1",
        "unset PPT_HELLO; eval \"exec ${PPT_RUN%%:*}>&-\"; ./first_main 1",
    ] {
        std::fs::remove_file(bench.path("out.bin")).unwrap_or_default();
        let (ran, _) = sh(&bench, &format!("bash -c '{script}'"));
        assert_eq!(ran.code(), 0, "{script}: {ran:?}");
        assert_eq!(written(&ran.stdout), 0, "nobody was attached");
        assert!(ran.stderr.contains("nothing was captured"), "{ran:?}");
        assert!(!bench.path("out.bin").exists());
    }
    let ran = bench.ppt(&["run", "--", "true"]);
    assert_eq!(ran.code(), 0);
    assert!(ran.stderr.contains("no program that it ran reported to ppt"), "{ran:?}");
}

#[test]
fn the_status_is_the_commands() {
    let bench = build();
    let code = |args: &[&str]| bench.ppt(&[&["run", "--force"], args].concat()).code();
    assert_eq!(code(&["--", "./first_main", "10", "abort"]), 128 + libc::SIGABRT);
    assert_eq!(Account::of(&bench.info("out.bin")).captured, 10, "what was published is kept");
    assert_eq!(code(&["--", "./first_main", "1", "3"]), 3);
    assert_eq!(code(&["--", "./nonsense"]), 127);
    assert_eq!(code(&["--", "./first_main.c"]), 126);
    assert_eq!(code(&[]), 125);
    assert_eq!(code(&["--no-such-option", "true"]), 125);
    assert_eq!(code(&["-o", "-", "true"]), 125);
    assert_eq!(code(&["-o", "/no/such/folder/out.bin", "true"]), 125);
    let ran = bench.ppt(&["run", "--force", "-b", "other", "--", "./first_main", "1"]);
    assert_eq!(ran.code(), 125);
    assert!(ran.stderr.contains("has only flood"), "{ran:?}");
}

#[test]
fn a_name_that_names_no_socket_is_ignored() {
    let bench = build();
    for name in [
        "",
        ":",
        "x",
        "3",
        "3:",
        "1:1",
        "0:0",
        "-1:4",
        "99999999999999999999:1",
        "2147483648:1",
        "3:18446744073709551616",
        "77:1",
        "1:1:1",
        " 1:1",
    ] {
        for variable in ["PPT_RUN", "PPT_HELLO"] {
            let mut command = bench.command(bench.path("first_main"));
            let output = command.env(variable, name).output().unwrap();
            assert!(output.status.success(), "{variable}={name}");
        }
    }
}

#[test]
fn a_dead_agent_releases_who_waits() {
    let bench = build();
    let (agent, guest) = UnixStream::pair().unwrap();
    // SAFETY: a new descriptor, which the target inherits, and which is closed below.
    let inherited = unsafe { libc::dup(guest.as_raw_fd()) };
    assert!(inherited >= 0);
    // SAFETY: an all-zero stat is one.
    let mut found: libc::stat = unsafe { std::mem::zeroed() };
    // SAFETY: `found` is ours, for the call to fill.
    assert_eq!(unsafe { libc::fstat(inherited, &mut found) }, 0);
    let mut command = bench.command(bench.path("first_main"));
    command.env("PPT_RUN", format!("{inherited}:{}", found.st_ino));
    let mut target = Target::spawn(command);
    // SAFETY: our descriptor, closed once.
    unsafe { libc::close(inherited) };
    drop(guest);
    let mut waits = libc::pollfd { fd: agent.as_raw_fd(), events: libc::POLLIN, revents: 0 };
    // SAFETY: one descriptor.
    assert_eq!(unsafe { libc::poll(&mut waits, 1, 60_000) }, 1, "it says hello");
    let wchan = || std::fs::read_to_string(format!("/proc/{}/stat", target.pid())).unwrap();
    wait_until("it waits", || wchan().contains(") S "));
    drop(agent);
    assert_eq!(target.written(), 0, "it goes on, and nobody is attached");
    assert!(target.wait().success());
}

/// A quiet `ppt run` prints nothing about its processes, however many there are.
#[test]
fn a_quiet_run_says_nothing_of_its_processes() {
    let bench = crate::fixtures::flood::build_with("first_main.c");
    let script = "for i in 1 2 3; do ./first_main 5; done";
    let ran = bench.ppt(&["run", "-q", "--", "sh", "-c", script]);
    assert_eq!((ran.code(), ran.stderr.as_str()), (0, ""));
    assert_eq!(Account::of(&bench.info("out.bin")).captured, 15);
}
