//! Starts the command as a shell would, and reports its end.

use std::cell::RefCell;
use std::ffi::{OsStr, OsString, c_char};
use std::io::{self, ErrorKind, Write};
use std::os::fd::AsFd;
use std::os::unix::ffi::OsStringExt;
use std::os::unix::process::{CommandExt, ExitStatusExt};
use std::process::{self, Child, ExitStatus};
use std::sync::atomic::AtomicPtr;
use std::{env, fs};

use nix::libc;
use nix::poll::{PollFd, PollFlags, PollTimeout, poll};
use nix::sys::signal::Signal;
use nix::sys::wait::{Id, WaitPidFlag, WaitStatus, waitid, waitpid};
use nix::unistd::Pid;
use ppt_agent::escaped;

use crate::failure::{Failure, failed};
use crate::live::InheritedSocket;
use crate::preload;
use crate::signals::{Before, ReceivedSignal, Signals};

/// Variables by which a supervisor tells the process that it started: this is for you.
const OF_PID: [&str; 3] = ["LISTEN_PID=", "WATCHDOG_PID=", "SYSTEMD_EXEC_PID="];

/// A started command.
pub(super) struct ChildCommand {
    child: RefCell<Child>,
    name: String,
}

/// Why the command could not be started.
#[derive(Debug, thiserror::Error)]
#[error("cannot run {name}: {cause}")]
pub(super) struct StartError {
    name: String,
    cause: io::Error,
}

impl StartError {
    /// The exit code, as env(1) chooses it.
    pub(super) fn code(&self) -> u8 {
        if self.cause.kind() == ErrorKind::NotFound { 127 } else { 126 }
    }
}

/// The end of the command.
#[derive(Clone, Copy)]
pub(super) struct CommandEnd(ExitStatus);

impl CommandEnd {
    /// The exit code that a shell would return.
    pub(super) fn code(self) -> u8 {
        let signal = || self.0.signal().unwrap_or_default() as u8;
        self.0.code().map_or_else(|| 128 + signal(), |code| code as u8)
    }

    pub(super) fn message(self, name: &str) -> String {
        match (self.0.code(), self.0.signal().map(Signal::try_from)) {
            (Some(code), _) => format!("{name} ended with status {code}"),
            (None, Some(Ok(signal))) => format!("{name} was ended by {signal}"),
            (None, _) => format!("{name} was ended by {}", self.0),
        }
    }
}

impl ChildCommand {
    /// Starts `words` (at least one) with `inherited` as the socket to say hello on, and `preload` as
    /// `LD_PRELOAD`. Signals are handled as ppt itself inherited them.
    pub(super) fn start(
        words: &[OsString],
        inherited: &InheritedSocket,
        preload: Option<&OsStr>,
        before: Before,
    ) -> Result<Self, StartError> {
        let (program, arguments) = words.split_first().expect("clap asks for one");
        let mut command = process::Command::new(program);
        command.args(arguments);
        let changes = inherited.variables().map(|(name, value)| (name, value.into()));
        let preload = preload.map(|value| (preload::VARIABLE, value.to_owned()));
        let mut environment = Environment::new(changes.into_iter().chain(preload).collect());
        let prepare = move || {
            environment.enter();
            before.restore()
        };
        // SAFETY: between fork and exec, the child makes only system calls, and changes memory of
        // its own.
        unsafe { command.pre_exec(prepare) };
        let name = escaped(&program.to_string_lossy());
        match command.spawn() {
            Ok(child) => Ok(Self { child: RefCell::new(child), name }),
            Err(cause) => Err(StartError { name, cause }),
        }
    }

    pub(super) fn pid(&self) -> i32 {
        self.child.borrow().id() as i32
    }

    pub(super) fn name(&self) -> &str {
        &self.name
    }

    /// How the command ended, if it has.
    pub(super) fn ended(&self) -> Option<CommandEnd> {
        self.child.borrow_mut().try_wait().ok().flatten().map(CommandEnd)
    }

    /// The signal by which the command has stopped, if it has just done so as a job does.
    pub(super) fn stopped(&self) -> Option<i32> {
        let flags = WaitPidFlag::WSTOPPED | WaitPidFlag::WNOHANG;
        match waitid(Id::Pid(Pid::from_raw(self.pid())), flags) {
            Ok(WaitStatus::Stopped(
                _,
                by @ (Signal::SIGTSTP | Signal::SIGTTIN | Signal::SIGTTOU),
            )) => Some(by as i32),
            _ => None,
        }
    }

    /// Whether the command is stopped now.
    pub(super) fn is_stopped(&self) -> bool {
        let stat = fs::read_to_string(format!("/proc/{}/stat", self.pid())).unwrap_or_default();
        stat.rsplit(") ").next().is_some_and(|rest| rest.starts_with('T'))
    }

    /// Sends the command a signal unless it has ended.
    pub(super) fn send(&self, signal: ReceivedSignal) {
        // Until ppt has waited for the command, no other process gets its pid.
        if self.ended().is_none() {
            signal.pass_to(self.pid());
        }
    }

    /// Collects children that ended and that ppt did not start: orphans, if ppt is process 1 or a
    /// subreaper, and children of the program that became ppt by exec. `helpers` are left to those
    /// who started them.
    pub(super) fn collect_others(&self, helpers: [Option<i32>; 2]) {
        let ended = self.ended().is_some();
        while let Some(pid) = ended_child()
            && !helpers.contains(&Some(pid))
            && (ended || pid != self.pid())
        {
            let _ = waitpid(Pid::from_raw(pid), Some(WaitPidFlag::WNOHANG));
        }
    }
}

/// A child that has ended and is still to be collected. (nix fails if a real-time signal ended it.)
fn ended_child() -> Option<i32> {
    let flags = libc::WEXITED | libc::WNOHANG | libc::WNOWAIT;
    // SAFETY: an all-zero siginfo is valid, and the call fills it.
    let pid = unsafe {
        let mut info: libc::siginfo_t = std::mem::zeroed();
        (libc::waitid(libc::P_ALL, 0, &mut info, flags) == 0).then(|| info.si_pid())
    };
    pid.filter(|&pid| pid > 0)
}

/// The environment of the command, with room for a pid that is known only after the fork.
struct Environment {
    /// `NAME=VALUE`, each with its end.
    variables: Vec<Vec<u8>>,
    /// Indices and lengths of `NAME=`, where the value is to be the command's own pid.
    own: Vec<(usize, usize)>,
    pointers: Vec<AtomicPtr<c_char>>,
}

unsafe extern "C" {
    static mut environ: *const AtomicPtr<c_char>;
}

impl Environment {
    /// ppt's own environment with `changes`. Where it tells ppt its own pid, it tells the command
    /// the command's: a supervisor means the process that it started.
    fn new(changes: Vec<(&str, OsString)>) -> Self {
        let pid = process::id().to_string();
        let listens = env::var("LISTEN_PID").is_ok_and(|value| value == pid);
        // LISTEN_PIDFDID says the same by the number of a pidfd, and is optional.
        let kept = env::vars_os().filter(|(name, _)| {
            let is_changed = changes.iter().any(|(changed, _)| name == changed);
            !is_changed && (!listens || name != "LISTEN_PIDFDID")
        });
        let (mut variables, mut own) = (Vec::new(), Vec::new());
        let changes = changes.iter().map(|(name, value)| (name.into(), value.clone()));
        for (mut name, value) in kept.chain(changes) {
            name.push("=");
            if OF_PID.iter().any(|&known| name == known) && value == *pid {
                own.push((variables.len(), name.len()));
            }
            name.push(value);
            let mut variable = name.into_vec();
            // Room for any pid.
            variable.resize(variable.len() + 11, 0);
            variables.push(variable);
        }
        let pointers = (0..=variables.len()).map(|_| AtomicPtr::default()).collect();
        Self { variables, own, pointers }
    }

    /// Makes it that of this process, a child between fork and exec.
    fn enter(&mut self) {
        for &(index, at) in &self.own {
            let _ = write!(&mut self.variables[index][at..], "{}\0", process::id());
        }
        for (pointer, variable) in self.pointers.iter_mut().zip(&mut self.variables) {
            *pointer.get_mut() = variable.as_mut_ptr().cast();
        }
        // SAFETY: a list of strings that ends with a null pointer and lives until exec; no other
        // thread is in this process.
        unsafe { environ = self.pointers.as_ptr() };
    }
}

/// Waits for a signal: without a capture, there is no other event.
pub(super) fn wait_for(signals: &Signals) -> Result<(), Failure> {
    let mut fds = [PollFd::new(signals.as_fd(), PollFlags::POLLIN)];
    match poll(&mut fds, PollTimeout::NONE) {
        Ok(_) | Err(nix::Error::EINTR) => Ok(()),
        Err(error) => Err(failed("wait")(error)),
    }
}
