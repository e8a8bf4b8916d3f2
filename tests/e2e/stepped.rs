//! `ppt` run one system call at a time, so that something can happen between any two of them.

use std::os::unix::process::CommandExt;
use std::process::{Command, Stdio};
use std::sync::mpsc::{RecvTimeoutError, Sender, channel};

use nix::sys::ptrace::{self, Options};
use nix::sys::signal::{Signal, kill};
use nix::sys::wait::{WaitPidFlag, WaitStatus, waitpid};
use nix::unistd::Pid;

use crate::support::{Lines, PATIENCE};

/// How a stepped `ppt` ended.
#[derive(Debug)]
pub struct Outcome {
    /// Its process id.
    pub pid: u32,
    /// System calls that it began, over all threads.
    pub calls: usize,
    /// Which of them was its first ptrace(2): the poke follows.
    pub held: usize,
    /// Exit code; none if it was killed.
    pub code: Option<i32>,
    /// Whether it said `attached:`.
    pub attached: bool,
    /// After how many system calls.
    pub attached_at: usize,
    /// Everything it said.
    pub said: String,
}

/// When an accident happens.
#[derive(Debug, Clone, Copy)]
pub enum Moment {
    /// Right before this system call, from 1. How many there are varies with what else runs.
    Call(usize),
    /// Right before the first ptrace(2): the target is not held yet.
    Hold,
    Never,
}

impl From<usize> for Moment {
    fn from(call: usize) -> Self {
        Moment::Call(call)
    }
}

/// Runs a `ppt attach`, sends it a Ctrl-C as soon as it is attached, and lets `accident` happen at
/// that moment; it is told the process id.
pub fn run(command: Command, at: impl Into<Moment>, accident: impl FnOnce(u32)) -> Outcome {
    run_until(command, at, accident, |said| said == b"attached")
}

/// The same with a Ctrl-C as soon as `enough` says so, which is told how each of its messages begins.
#[expect(clippy::zombie_processes, reason = "waited for by its process id")]
pub fn run_until(
    mut command: Command,
    at: impl Into<Moment>,
    accident: impl FnOnce(u32),
    mut enough: impl FnMut(&[u8; 8]) -> bool,
) -> Outcome {
    command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::piped());
    // SAFETY: ptrace is a system call, and nothing else happens between fork and exec.
    unsafe { command.pre_exec(|| Ok(ptrace::traceme()?)) };
    let mut child = command.spawn().unwrap();
    let pid = Pid::from_raw(child.id().cast_signed());
    let stderr = Lines::new(child.stderr.take().unwrap(), "ppt attach");
    let watched = watch(pid);

    // Stopped by its exec.
    assert!(matches!(waitpid(pid, None), Ok(WaitStatus::Stopped(_, Signal::SIGTRAP))));
    let options = Options::PTRACE_O_TRACESYSGOOD | Options::PTRACE_O_TRACECLONE;
    ptrace::setoptions(pid, options | Options::PTRACE_O_EXITKILL).unwrap();
    ptrace::syscall(pid, None).unwrap();

    let moment = at.into();
    let (mut calls, mut held, mut attached_at, mut over) = (0, 0, None, false);
    let mut accident = Some(accident);
    // Threads of other tests trace and start processes, too: only those of this thread are waited for.
    let flags = WaitPidFlag::__WALL | WaitPidFlag::__WNOTHREAD;
    let code = loop {
        let signal = match waitpid(None, Some(flags)).unwrap() {
            WaitStatus::Exited(it, code) if it == pid => break Some(code),
            WaitStatus::Signaled(it, ..) if it == pid => break None,
            WaitStatus::Exited(..) | WaitStatus::Signaled(..) => continue,
            WaitStatus::PtraceSyscall(it) => {
                if let Some(call) = begun(it) {
                    calls += 1;
                    if held == 0 && call[0] == libc::SYS_ptrace.cast_unsigned() {
                        held = calls;
                    }
                    let due = match moment {
                        Moment::Call(at) => calls == at,
                        Moment::Hold => calls == held,
                        Moment::Never => false,
                    };
                    if let Some(accident) = accident.take_if(|_| due) {
                        accident(child.id());
                    }
                    if let Some(said) = says(it, call).filter(|_| !over) {
                        if said == *b"attached" {
                            attached_at = Some(calls);
                        }
                        if enough(&said) {
                            over = true;
                            kill(pid, Signal::SIGINT).unwrap();
                        }
                    }
                }
                next(it, None);
                continue;
            }
            WaitStatus::PtraceEvent(it, ..) => (it, None),
            // A new thread begins with a stop that is not its own.
            WaitStatus::Stopped(it, Signal::SIGSTOP) => (it, None),
            WaitStatus::Stopped(it, signal) => (it, Some(signal)),
            other => panic!("{other:?}"),
        };
        next(signal.0, signal.1);
    };
    drop(watched);
    Outcome {
        pid: child.id(),
        calls,
        held,
        code,
        attached: attached_at.is_some(),
        attached_at: attached_at.unwrap_or(0),
        said: stderr.rest(),
    }
}

/// Lets a thread go on; one that was killed meanwhile is reported by the next wait.
fn next(thread: Pid, signal: Option<Signal>) {
    match ptrace::syscall(thread, signal) {
        Ok(()) | Err(nix::Error::ESRCH) => {}
        Err(error) => panic!("{thread}: {error}"),
    }
}

/// The system call that a stopped thread is about to make; none where it comes out of one.
fn begun(thread: Pid) -> Option<[u64; 3]> {
    let info = ptrace::syscall_info(thread).ok()?;
    if info.op != libc::PTRACE_SYSCALL_INFO_ENTRY {
        return None;
    }
    // SAFETY: `op` says which part of the union the kernel filled.
    let entry = unsafe { info.u.entry };
    Some([entry.nr, entry.args[0], entry.args[1]])
}

/// How a message begins that a call writes to stderr.
fn says(thread: Pid, [number, fd, address]: [u64; 3]) -> Option<[u8; 8]> {
    let is_message = number == libc::SYS_write.cast_unsigned() && fd == 2;
    let word = is_message.then(|| ptrace::read(thread, address as ptrace::AddressType));
    word?.ok().map(|word| word.to_le_bytes())
}

/// Ends what hangs, so that the test fails instead.
fn watch(pid: Pid) -> Sender<()> {
    let (ended, end) = channel();
    std::thread::spawn(move || {
        if end.recv_timeout(*PATIENCE) == Err(RecvTimeoutError::Timeout) {
            let _ = kill(pid, Signal::SIGKILL);
        }
    });
    ended
}

/// kill -9.
pub fn end(pid: u32) {
    kill(Pid::from_raw(pid.cast_signed()), Signal::SIGKILL).unwrap();
}
