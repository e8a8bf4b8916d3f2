//! `ppt run` in the place of its program: as the child of a supervisor, in a terminal, and as
//! process 1.

use std::fs;
use std::fs::File;
use std::io::Write;
use std::os::fd::AsRawFd;
use std::os::unix::fs::OpenOptionsExt;
use std::os::unix::process::CommandExt;
use std::process::{self, Command, Stdio};

use nix::fcntl::OFlag;
use nix::pty::{PtyMaster, Winsize, grantpt, posix_openpt, ptsname_r, unlockpt};
use nix::sys::socket::{
    AddressFamily, Backlog, SockFlag, SockType, UnixAddr, bind, connect, listen, socket,
};

use crate::fixtures::first::{build, written};
use crate::fixtures::flood;
use crate::fixtures::preloaded::python;
use crate::fixtures::rust::program;
use crate::fixtures::support::{
    Account, Bench, Ran, Target, available, child_of, ppt, send, status, stopped, wait_until,
};

/// Arguments of unshare(1) that make ppt process 1.
const FIRST: [&str; 4] = ["--pid", "--fork", "--mount-proc", "--kill-child"];

/// What a supervisor may send; the first ones end a program that does not expect them.
fn sent() -> Vec<i32> {
    use libc::*;
    let ending = [SIGINT, SIGQUIT, SIGTERM, SIGHUP, SIGUSR1, SIGUSR2, SIGALRM, SIGABRT, SIGPWR];
    let others = [SIGCONT, SIGWINCH, SIGURG, SIGTSTP, SIGTTIN, SIGTTOU];
    [&ending[..], &[SIGRTMIN(), SIGRTMAX()], &others].concat()
}

/// Whether ppt can be process 1 here.
fn can_be_first(bench: &Bench) -> bool {
    let probe = bench.command("unshare").args(FIRST).arg("true").status();
    let can = probe.is_ok_and(|status| status.success());
    if !can {
        eprintln!("skipped: no pid namespaces are made here");
    }
    can
}

/// `ppt run -- ./signalled_main HOW`, which is ready, and the pid of ppt.
fn start(bench: &Bench, how: &str, first: bool) -> (Target, u32) {
    // Whoever started this test may ignore SIGHUP, as nohup(1) does.
    let mut command = bench.command("env");
    command.arg("--default-signal");
    if first {
        command.arg("unshare").args(FIRST);
    }
    command.arg(ppt()).args(["run", "-q", "--force", "--", "./signalled_main", how]);
    // The kernel stops no group without a parent in its session, which this test may be in.
    command.process_group(0);
    let run = Target::start(command);
    let pid = if first { child_of(run.pid()) } else { run.pid() };
    (run, pid)
}

#[test]
fn each_signal_reaches_the_program_once() {
    let bench = flood::build_with("signalled_main.c");
    for first in [false, true].into_iter().filter(|first| !first || can_be_first(&bench)) {
        let (mut run, pid) = start(&bench, "handle", first);
        for number in sent() {
            for _ in 0..2 {
                send(pid, number);
                run.stdout.wait_for(&format!("signal {number} 0."));
            }
        }
        for value in 1..4 {
            let sigval = libc::sigval { sival_ptr: value as *mut _ };
            // SAFETY: no pointer is looked at.
            assert_eq!(unsafe { libc::sigqueue(pid as i32, libc::SIGRTMIN(), sigval) }, 0);
        }
        for value in 1..4 {
            run.stdout.wait_for(&format!("signal {} {value}.", libc::SIGRTMIN()));
        }
        run.close();
        let said = run.stdout.rest();
        assert_eq!(run.wait().code(), Some(7));
        assert_eq!(said.matches("signal ").count(), 2 * sent().len() + 3, "{said}");
        assert_eq!(Account::of(&bench.info("out.bin")).captured, 5);
    }
}

#[test]
fn a_signal_that_ends_the_program_ends_ppt_after_it() {
    let bench = flood::build_with("signalled_main.c");
    for first in [false, true].into_iter().filter(|first| !first || can_be_first(&bench)) {
        for number in sent().into_iter().take(11) {
            let (mut run, pid) = start(&bench, "default", first);
            send(pid, number);
            assert_eq!(run.wait().code(), Some(128 + number));
            assert_eq!(Account::of(&bench.info("out.bin")).captured, 5, "{number}");
        }
    }
}

#[test]
fn a_program_that_ignores_signals_goes_on_and_so_does_ppt() {
    let bench = flood::build_with("signalled_main.c");
    for first in [false, true].into_iter().filter(|first| !first || can_be_first(&bench)) {
        let (mut run, pid) = start(&bench, "ignore", first);
        sent().into_iter().for_each(|number| send(pid, number));
        run.close();
        assert_eq!(run.wait().code(), Some(7));
        assert_eq!(Account::of(&bench.info("out.bin")).captured, 5);
    }
}

/// exec(2) keeps timers: a limit of time that was set before it is meant for the program.
#[test]
fn a_timer_from_before_ends_the_program() {
    let bench = flood::build_with("signalled_main.c");
    let mut command = bench.command("env");
    command.args(["--default-signal", ppt(), "run", "-q", "--", "./signalled_main", "default"]);
    // SAFETY: one system call.
    unsafe {
        command.pre_exec(|| {
            libc::alarm(1);
            Ok(())
        });
    }
    assert_eq!(Target::spawn(command).wait().code(), Some(128 + libc::SIGALRM));
}

/// What a program sends to its parent, or to its process group, is not sent back.
#[test]
fn a_program_gets_no_signal_of_its_own_back() {
    let bench = flood::build_with("signalled_main.c");
    let script = "trap 'echo back' USR1; kill -USR1 $PPID; echo sent; read line; exit 3";
    let mut command = bench.command(ppt());
    command.args(["run", "-q", "--", "sh", "-c", script]);
    let mut run = Target::spawn(command);
    run.stdout.wait_for("sent");
    // Signals of one process come in the order of their numbers: this one after that.
    run.signal(libc::SIGCONT);
    run.close();
    assert_eq!(run.wait().code(), Some(3));
    assert!(!run.stdout.rest().contains("back"));
}

#[test]
fn a_stopped_program_stops_ppt_and_continues_with_it() {
    let bench = flood::build_with("signalled_main.c");
    let (mut run, pid) = start(&bench, "default", false);
    let program = child_of(pid);
    let is_stopped = |pid| status(pid, "State:").is_some_and(|state| state.starts_with('T'));
    for number in [libc::SIGTSTP, libc::SIGTTIN, libc::SIGTTOU] {
        run.signal(number);
        stopped(program);
        stopped(pid);
        run.signal(libc::SIGCONT);
        wait_until("both continue", || !is_stopped(program) && !is_stopped(pid));
    }
    // Somebody who stops the program to look at it does not know of ppt.
    send(program, libc::SIGSTOP);
    stopped(program);
    send(program, libc::SIGCONT);
    run.close();
    assert_eq!(run.wait().code(), Some(7));
}

/// A killed ppt leaves the program alone.
#[test]
fn a_killed_ppt_leaves_the_program() {
    let bench = flood::build_with("signalled_main.c");
    let (mut run, pid) = start(&bench, "default", false);
    let program = child_of(pid);
    run.signal(libc::SIGKILL);
    run.wait();
    assert!(status(program, "State:").is_some_and(|state| !state.starts_with('Z')));
    run.close();
    wait_until("the program has ended", || {
        status(program, "State:").is_none_or(|state| state.starts_with('Z'))
    });
}

/// A command in a session of its own, with a terminal: its keys, and what the command prints.
fn in_terminal(mut command: Command) -> (PtyMaster, Target) {
    // No other process may keep the terminal.
    let flags = OFlag::O_RDWR | OFlag::O_NOCTTY | OFlag::O_CLOEXEC;
    let keys = posix_openpt(flags).unwrap();
    grantpt(&keys).unwrap();
    unlockpt(&keys).unwrap();
    let name = ptsname_r(&keys).unwrap();
    let terminal = || {
        let mut options = File::options();
        options.read(true).write(true).custom_flags(libc::O_NOCTTY).open(&name).unwrap()
    };
    command.stdin(terminal()).stdout(Stdio::piped()).stderr(terminal());
    (keys, Target::of(command.spawn().unwrap()))
}

#[test]
fn keys_of_a_terminal_reach_the_program_once() {
    if !available("bash") {
        return;
    }
    let bench = flood::build_with("signalled_main.c");
    let script = format!(
        "set -m; {} run -q -- ./signalled_main job; echo stopped $?; fg; echo ended $?",
        ppt()
    );
    let mut command = bench.command("setsid");
    command.args(["--ctty", "env", "--default-signal", "bash", "-c", &script]);
    let (mut keys, mut shell) = in_terminal(command);
    shell.stdout.wait_for("ready");
    for (key, number) in [(b"\x03", libc::SIGINT), (b"\x1c", libc::SIGQUIT)] {
        keys.write_all(key).unwrap();
        shell.stdout.wait_for(&format!("signal {number} 0."));
    }
    let size = Winsize { ws_row: 30, ws_col: 90, ws_xpixel: 0, ws_ypixel: 0 };
    // SAFETY: the call reads the size.
    assert_eq!(unsafe { libc::ioctl(keys.as_raw_fd(), libc::TIOCSWINSZ, &size) }, 0);
    shell.stdout.wait_for(&format!("signal {} 0.", libc::SIGWINCH));
    keys.write_all(b"\x1a").unwrap();
    shell.stdout.wait_for(&format!("stopped {}", 128 + libc::SIGTSTP));
    shell.stdout.wait_for(&format!("signal {} 0.", libc::SIGCONT));
    keys.write_all(b"\x04").unwrap();
    shell.stdout.wait_for("ended 7");
    assert!(shell.wait().success());
    let said = shell.stdout.rest();
    assert_eq!(said.matches("signal ").count(), 4, "{said}");
}

/// The kernel tells the end of a terminal to the first process of the session alone.
#[test]
fn the_end_of_a_terminal_reaches_the_program() {
    let bench = Bench::new();
    let script = "trap 'echo told; exit 3' HUP; echo ready; while sleep 0.05; do :; done";
    let mut command = bench.command("setsid");
    command.args(["--ctty", "env", "--default-signal", ppt(), "run", "-q", "--", "sh"]);
    command.args(["-c", script]);
    let (keys, mut run) = in_terminal(command);
    run.stdout.wait_for("ready");
    drop(keys);
    run.stdout.wait_for("told");
    assert_eq!(run.wait().code(), Some(3));
}

#[test]
fn process_1_collects_orphans() {
    let bench = Bench::new();
    if !can_be_first(&bench) {
        return;
    }
    let script = "( sh -c 'kill -35 $$' & ); for i in $(seq 10); do for j in $(seq 100); do ( (exit 0) & ); done; done
        echo left; while cat /proc/[0-9]*/stat 2>/dev/null | grep -q ') Z 1 '; do sleep 0.05; done
        echo none; read line; exit 5";
    let mut command = bench.command("unshare");
    command.args(FIRST).args([ppt(), "run", "-q", "--", "sh", "-c", script]);
    command.stderr(Stdio::null());
    let mut run = Target::spawn(command);
    run.stdout.wait_for("none");
    run.close();
    assert_eq!(run.wait().code(), Some(5), "the status of the program itself");
}

/// ppt collects all children, but not those that it has started for itself.
#[test]
fn the_status_of_a_helper_is_its_own() {
    let bench = flood::build_with("signalled_main.c");
    let mut command = bench.command(ppt());
    command.args(["run", "--metrics", "127.0.0.1:0", "--", "./signalled_main", "default"]);
    let (mut run, stderr) = Target::spawn_loud(command);
    run.stdout.wait_for("ready");
    let children = format!("/proc/{0}/task/{0}/children", run.pid());
    let children = fs::read_to_string(children).unwrap();
    let is_helper = |pid: &&str| {
        fs::read(format!("/proc/{pid}/cmdline")).unwrap().windows(5).any(|it| it == b"serve")
    };
    let helper = children.split_whitespace().find(is_helper).expect("a server of metrics");
    send(helper.parse().unwrap(), libc::SIGKILL);
    let how = stderr.wait_for("ppt: metrics are no longer served: their process has ended ");
    assert!(how.starts_with("with signal: 9"), "{how}");
    run.close();
    assert_eq!(run.wait().code(), Some(7));
}

/// The variables by which a supervisor names the process that it starts.
#[test]
fn variables_that_name_ppt_name_the_program() {
    let bench = Bench::new();
    let run = |variables: &str| {
        let script = format!(
            "unset LISTEN_PID LISTEN_PIDFDID WATCHDOG_PID SYSTEMD_EXEC_PID; {variables} exec {} run \
             -q -- sh -c 'echo $LISTEN_PID,$LISTEN_FDS,$LISTEN_PIDFDID,$WATCHDOG_PID,\
             $SYSTEMD_EXEC_PID,$$'",
            ppt()
        );
        let output = bench.command("sh").args(["-c", &script]).output().unwrap();
        let said = String::from_utf8(output.stdout).unwrap();
        let (names, own) = said.trim().rsplit_once(',').unwrap();
        names.replace(own, "own")
    };
    let all = "LISTEN_PID=$$ LISTEN_FDS=2 LISTEN_PIDFDID=9 WATCHDOG_PID=$$ SYSTEMD_EXEC_PID=$$";
    assert_eq!(run(all), "own,2,,own,own");
    let of_another = "LISTEN_PID=1 LISTEN_FDS=2 LISTEN_PIDFDID=9 WATCHDOG_PID= SYSTEMD_EXEC_PID=x";
    assert_eq!(run(of_another), "1,2,9,,x");
    assert_eq!(run(""), ",,,,");
}

/// ppt does not spin when nobody can say hello on the inherited socket any more.
#[test]
fn a_program_that_closes_all_descriptors_costs_no_cpu() {
    let bench = flood::build_with("signalled_main.c");
    let ticks = |pid| {
        let stat = fs::read_to_string(format!("/proc/{pid}/stat")).unwrap();
        let fields: Vec<_> = stat.rsplit(") ").next().unwrap().split(' ').collect();
        fields[11].parse::<u64>().unwrap() + fields[12].parse::<u64>().unwrap()
    };
    let (mut run, pid) = start(&bench, "burn", false);
    // As both have had the CPU when they wanted it, their shares are comparable on a busy machine.
    let (ppts, programs) = (ticks(pid), ticks(child_of(pid)));
    assert!(ppts < programs / 2, "{ppts} of ppt, {programs} of the program");
    run.close();
    assert_eq!(run.wait().code(), Some(7));
}

#[test]
fn a_socket_that_was_shut_down_keeps_no_program_from_reporting() {
    let bench = build();
    let flood = flood::build_with("signalled_main.c");
    let shut = flood.path("signalled_main");
    for way in [libc::SHUT_RD, libc::SHUT_WR, libc::SHUT_RDWR] {
        let script = format!(
            "./first_main 20; {} shutdown {way}; ./first_main 30; ./first_main 40",
            shut.display()
        );
        let ran = bench.ppt(&["run", "--force", "--", "sh", "-c", &script]);
        assert_eq!(ran.code(), 0, "{ran:?}");
        assert_eq!(written(&ran.stdout), 90);
        let info = bench.info("out.bin");
        assert_eq!(Account::of(&info).captured, 90, "{ran:?}");
        let sources = info["buffers"].as_array().unwrap();
        assert_eq!(sources.iter().filter(|it| it["from_start"] == true).count(), 4, "{info}");
        let rust = program("first");
        let script = format!("{} shutdown {way}; {} 20", shut.display(), rust.display());
        let ran = bench.ppt(&["run", "--force", "--", "sh", "-c", &script]);
        assert_eq!(Account::of(&bench.info("out.bin")).captured, 20, "{ran:?}");
    }
}

/// Once ppt has ended, anybody may take the name of its socket, and answer nobody.
#[test]
fn a_program_does_not_wait_for_whoever_took_the_name_of_a_socket() {
    let bench = build();
    let name = 0x7070_7400_0000_0000 | u64::from(process::id());
    let address = UnixAddr::new_abstract(format!("ppt-{name:016x}").as_bytes()).unwrap();
    let flags = SockFlag::SOCK_CLOEXEC | SockFlag::SOCK_NONBLOCK;
    let new = || socket(AddressFamily::Unix, SockType::SeqPacket, flags, None).unwrap();
    let taken = new();
    bind(taken.as_raw_fd(), &address).unwrap();
    listen(&taken, Backlog::new(0).unwrap()).unwrap();
    let waiting = std::iter::repeat_with(|| {
        let one = new();
        connect(one.as_raw_fd(), &address).map(|()| one)
    });
    let waiting: Vec<_> = waiting.take(100).map_while(Result::ok).collect();
    assert!(waiting.len() < 100, "the queue is full");
    for first in [bench.path("first_main"), program("first")] {
        let mut command = bench.command(first);
        command.arg("20").env("PPT_HELLO", format!("{name}:1"));
        assert_eq!(Ran::of(command.output().unwrap()).code(), 0);
    }
}

/// ppt keeps none of the descriptors that a process sends on the inherited socket.
#[test]
fn descriptors_that_a_process_sends_are_closed() {
    let Some(python) = python() else { return };
    let bench = build();
    bench.write(
        "send.py",
        "import os, socket\n\
         s = socket.socket(fileno=os.dup(int(os.environ['PPT_RUN'].split(':')[0])))\n\
         for i in range(100): socket.send_fds(s, [b'x'], [0] * 10)\n",
    );
    let count = "ls /proc/$PPID/fd | wc -l";
    let script = format!("{count}; {python} send.py; ./first_main 20; {count}");
    let ran = bench.ppt(&["run", "--", "sh", "-c", &script]);
    assert_eq!(Account::of(&bench.info("out.bin")).captured, 20, "{ran:?}");
    let counts: Vec<u32> = ran.stdout.lines().filter_map(|it| it.trim().parse().ok()).collect();
    assert!(counts[1] < counts[0] + 100, "{counts:?}");
}
