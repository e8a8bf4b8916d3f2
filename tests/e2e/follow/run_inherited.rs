//! A command of `ppt run` inherits the same as without ppt: descriptors, signals, and in addition
//! the socket for its report.

use std::collections::BTreeMap;
use std::fs;
use std::os::unix::process::CommandExt;
use std::path::PathBuf;
use std::process::Command;

use crate::fixtures::rust::program;
use crate::fixtures::support::{Bench, Target, available, ppt};

/// Starts it with only the descriptors 0, 1 and 2, and with an unusual signal state.
fn start(mut command: Command, sigpipe: libc::sighandler_t) -> Target {
    let prepare = move || {
        // SAFETY: system calls on the child's own state; no handler is installed.
        unsafe {
            libc::syscall(libc::SYS_close_range, 3, u32::MAX, libc::CLOSE_RANGE_CLOEXEC);
            libc::signal(libc::SIGPIPE, sigpipe);
            for ignored in [libc::SIGUSR1, libc::SIGQUIT, libc::SIGCHLD] {
                libc::signal(ignored, libc::SIG_IGN);
            }
            let mut blocked: libc::sigset_t = std::mem::zeroed();
            for signal in [libc::SIGUSR2, libc::SIGTERM, libc::SIGRTMIN()] {
                libc::sigaddset(&mut blocked, signal);
            }
            libc::sigprocmask(libc::SIG_SETMASK, &blocked, std::ptr::null_mut());
        }
        Ok(())
    };
    // SAFETY: only system calls between fork and exec.
    unsafe { command.pre_exec(prepare) };
    Target::spawn(command)
}

/// The open descriptors, by number. Descriptors closed during the scan are ignored.
fn descriptors(pid: u32) -> BTreeMap<u32, PathBuf> {
    let open = fs::read_dir(format!("/proc/{pid}/fd")).unwrap().map(Result::unwrap);
    open.filter_map(|entry| {
        Some((entry.file_name().to_str()?.parse().unwrap(), fs::read_link(entry.path()).ok()?))
    })
    .collect()
}

/// Masks of signals: pending, blocked, ignored and caught.
fn signals(pid: u32) -> String {
    let status = fs::read_to_string(format!("/proc/{pid}/status")).unwrap();
    status.lines().filter(|line| line.starts_with("Sig") && !line.starts_with("SigQ")).collect()
}

fn variable(pid: u32, name: &str) -> Option<String> {
    let environment = fs::read(format!("/proc/{pid}/environ")).unwrap();
    let mut variables = environment.split(|&byte| byte == 0);
    variables.find_map(|variable| {
        Some(str::from_utf8(variable).ok()?.strip_prefix(name)?.strip_prefix('=')?.into())
    })
}

/// The only child of a process.
fn child(pid: u32) -> u32 {
    let children = fs::read_to_string(format!("/proc/{pid}/task/{pid}/children")).unwrap();
    children.trim().parse().expect("one child")
}

/// `program` has written its frames and waits.
fn inherits(bench: &Bench, program: PathBuf, sigpipe: libc::sighandler_t) {
    let mut plain = bench.command(&program);
    plain.args(["5", "wait"]);
    let plain = start(plain, sigpipe);
    plain.written();
    let mut command = bench.command(ppt());
    command.args(["run", "-q", "--force", "--"]).arg(&program).args(["5", "wait"]);
    let run = start(command, sigpipe);
    assert_eq!(run.written(), 5);
    let pid = child(run.pid());
    assert_eq!(signals(pid), signals(plain.pid()), "SIGPIPE was {sigpipe}");
    let mut open = descriptors(pid);
    let name = variable(pid, "PPT_RUN").expect("PPT_RUN");
    let (socket, inode) = name.split_once(':').unwrap();
    let found = open.remove(&socket.parse().unwrap()).expect("the socket");
    assert_eq!(found.to_str(), Some(&*format!("socket:[{inode}]")));
    assert_eq!(open.keys().collect::<Vec<_>>(), [&0, &1, &2], "{open:?}");
    assert_eq!(open, descriptors(run.pid()).into_iter().filter(|it| it.0 <= 2).collect());
    assert_eq!(variable(plain.pid(), "PPT_RUN"), None);
    run.finish();
    plain.finish();
    assert_eq!(bench.table("out.bin", &[]).rows.len(), 5);
}

#[test]
fn a_command_in_c() {
    let bench = crate::fixtures::flood::build_with("first_main.c");
    for sigpipe in [libc::SIG_DFL, libc::SIG_IGN] {
        inherits(&bench, bench.path("first_main"), sigpipe);
    }
}

#[test]
fn a_command_in_cpp() {
    if !available("g++") {
        return;
    }
    let bench = crate::fixtures::first::build_cpp();
    inherits(&bench, bench.path("first"), libc::SIG_DFL);
}

#[test]
fn a_command_in_rust() {
    inherits(&Bench::new(), program("first"), libc::SIG_DFL);
}
