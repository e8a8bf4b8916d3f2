//! Starts the command as a shell would, and reports its end.

use std::cell::RefCell;
use std::ffi::{OsStr, OsString};
use std::io::{self, ErrorKind};
use std::os::fd::AsFd;
use std::os::unix::process::{CommandExt, ExitStatusExt};
use std::process::{self, Child, ExitStatus};

use nix::poll::{PollFd, PollFlags, PollTimeout, poll};
use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;
use ppt_agent::escaped;

use crate::failure::{Failure, failed};
use crate::live::InheritedSocket;
use crate::preload;
use crate::signals::{Before, Signals};

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
        command.args(arguments).envs(inherited.variables());
        command.envs(preload.map(|value| (preload::VARIABLE, value)));
        // SAFETY: between fork and exec, the child makes only system calls.
        unsafe { command.pre_exec(move || before.restore()) };
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

    /// Sends the command a signal unless it has ended.
    pub(super) fn send(&self, signal: Signal) {
        // Until ppt has waited for the command, no other process gets its pid.
        if self.ended().is_none() {
            let _ = kill(Pid::from_raw(self.pid()), signal);
        }
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
