//! Runs a question in a process of its own, and ends it.
//!
//! The engine that answers questions cannot be interrupted at every point, and its allocations cannot
//! all be bounded. So this program starts itself again ([`question`](crate::question)), with the
//! same arguments and standard streams, and waits. It passes the limit of memory on, which the question
//! keeps itself ([`heap`](crate::heap)). It ends the question soon after the first signal, reports why
//! a question ended, for instance at that limit, and removes its temporary files.

mod end;
mod terminal;

use std::env;
use std::io;
use std::os::fd::BorrowedFd;
use std::os::unix::process::CommandExt;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use ppt_signals::SignalPipe;
use rustix::process::{Pid, Signal, kill_process};
use rustix::thread::set_no_new_privs;

pub(crate) use self::end::ChildEnd;
use self::terminal::Terminal;
use crate::error::AnswerError;
use crate::question_settings::{self, QuestionSettings};
use crate::scratch::Scratch;

/// Time that a question gets to end by itself after a signal.
const GRACE: Duration = Duration::from_millis(300);
/// Time that a command gets to finish its work after a signal. A second signal ends it at once.
const CLEANUP_TIMEOUT: Duration = Duration::from_secs(30);

/// A process that answers.
pub(crate) struct ChildProcess {
    child: Child,
    /// Time that the process gets to end by itself after a signal.
    grace: Duration,
    /// The time of the signal that was sent to the process, and its number.
    stopping: Option<(Instant, i32)>,
    pub(crate) terminal: Terminal,
    /// Removed after the process has ended.
    scratch: Scratch,
}

/// Result of [`ChildProcess::wait_or_read`].
pub(crate) enum Waited {
    /// The process has ended.
    Ended(ChildEnd),
    /// The input is readable.
    Readable,
}

impl ChildProcess {
    /// Starts a process with these settings.
    pub(crate) fn start(
        settings: QuestionSettings,
        stdin: Stdio,
    ) -> Result<ChildProcess, AnswerError> {
        // `setcap` may have given this program rights, which its process has given up.
        set_no_new_privs(true)
            .map_err(|error| AnswerError::System("give up privileges", error.into()))?;
        let (scratch, terminal) = (Scratch::new(), Terminal::now());
        // This path starts the same program, even if its file was replaced in the meantime.
        let mut command = Command::new("/proc/self/exe");
        command.arg0(question_settings::NAME).args(env::args_os().skip(1)).stdin(stdin);
        settings.hand(&mut command);
        scratch.hand(&mut command);
        let child =
            command.spawn().map_err(|error| AnswerError::System("start a process", error))?;
        Ok(ChildProcess { child, grace: GRACE, stopping: None, terminal, scratch })
    }

    /// Gives the process time to finish its work.
    pub(crate) fn be_patient(&mut self) {
        self.grace = CLEANUP_TIMEOUT;
    }

    /// Waits until the process ends, and ends it after a signal.
    pub(crate) fn wait(&mut self, wakes: &SignalPipe) -> ChildEnd {
        loop {
            if let Waited::Ended(end) = self.wait_or_read(wakes, None) {
                return end;
            }
        }
    }

    /// Waits until the process ends, or until `input` is readable.
    pub(crate) fn wait_or_read(
        &mut self,
        wakes: &SignalPipe,
        input: Option<BorrowedFd<'_>>,
    ) -> Waited {
        loop {
            match self.child.try_wait() {
                Ok(None) => {}
                Ok(Some(status)) => return Waited::Ended(self.ended(status)),
                Err(_) => return Waited::Ended(ChildEnd::Exited(1)),
            }
            match (wakes.stop(), self.stopping) {
                (Some(signal), None) => {
                    self.stopping = Some((Instant::now(), signal));
                    self.send(signal);
                }
                // A second signal: the user does not want to wait.
                (Some(_), Some(_)) => return Waited::Ended(self.kill()),
                (None, _) => {}
            }
            let left = self.stopping.map(|(since, _)| self.grace.saturating_sub(since.elapsed()));
            if left == Some(Duration::ZERO) {
                return Waited::Ended(self.kill());
            }
            if wakes.wait(input, left) {
                return Waited::Readable;
            }
        }
    }

    /// Returns and clears the signal that was sent to the process. Call it when the process has ended the
    /// question and continues.
    pub(crate) fn stopped(&mut self) -> Option<i32> {
        self.stopping.take().map(|(_, signal)| signal)
    }

    fn send(&self, signal: i32) {
        if let Some(signal) = Signal::from_named_raw(signal) {
            // The process may have ended just now.
            let _ = kill_process(Pid::from_child(&self.child), signal);
        }
    }

    fn kill(&mut self) -> ChildEnd {
        let _ = self.child.kill();
        match self.child.wait() {
            Ok(status) => self.ended(status),
            Err(_) => ChildEnd::Exited(1),
        }
    }

    fn ended(&self, status: std::process::ExitStatus) -> ChildEnd {
        ChildEnd::new(status, self.stopping.map(|(_, signal)| signal))
    }
}

impl Drop for ChildProcess {
    fn drop(&mut self) {
        if !matches!(self.child.try_wait(), Ok(Some(_))) {
            let _ = self.child.kill();
            let _ = self.child.wait();
        }
        self.scratch.remove();
    }
}

/// A pair of connected sockets: one is the standard input of a process, which answers through it.
pub(crate) fn channel() -> io::Result<(std::os::unix::net::UnixStream, Stdio)> {
    let (ours, theirs) = std::os::unix::net::UnixStream::pair()?;
    Ok((ours, Stdio::from(std::os::fd::OwnedFd::from(theirs))))
}
