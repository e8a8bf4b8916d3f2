//! The process that shows a capture while ppt writes it: another `ppt view`, without any privileges.

use std::ffi::OsString;
use std::io::{self, Write};
use std::os::fd::AsFd;
use std::os::unix::process::CommandExt;
use std::path::Path;
use std::process::{Child, ChildStdin, Command, ExitStatus as Status, Stdio};
use std::time::{Duration, Instant};

use nix::poll::{PollFd, PollFlags, PollTimeout, poll};
use ppt_text::exit::ExitStatus;

use crate::code::Code;
use crate::failure::{Failure, failed};
use crate::report;
use crate::signals::Signals;

fn cannot(what: &'static str) -> impl Fn(io::Error) -> Failure {
    move |error| Failure::failed(Code::System, format!("cannot {what}: {error}"))
}

/// The time that the view gets to end.
const TO_END: Duration = Duration::from_secs(5);

/// The view of a capture.
pub(crate) struct Viewer {
    words: Vec<OsString>,
    child: Option<Child>,
    /// The writing end of its standard input. The view ends when that closes, also if ppt is killed. Signals
    /// would not do, because ppt may send none to a program of the user who called sudo.
    input: Option<ChildStdin>,
    ended: Option<Status>,
    /// The time at which a signal first asked the view to end.
    asked: Option<Instant>,
    /// The exit code for the way in which the view ended.
    pub(crate) status: ExitStatus,
}

impl Viewer {
    /// A view of `capture` that has not started. It has the arguments of this `ppt view`.
    pub(crate) fn new(capture: &Path) -> Self {
        let mut written = OsString::from("--written=");
        written.push(capture);
        let words =
            ["view".into(), written].into_iter().chain(std::env::args_os().skip(2)).collect();
        let (child, input, ended, asked) = (None, None, None, None);
        Self { words, child, input, ended, asked, status: ExitStatus::DONE }
    }

    /// Starts the view while ppt can still become the user who called sudo. The view waits for
    /// [`Self::show`].
    pub(crate) fn start(&mut self) -> Result<(), Failure> {
        let mut command = Command::new("/proc/self/exe");
        command.arg0("ppt").args(&self.words).stdin(Stdio::piped());
        let child = self.child.insert(command.spawn().map_err(cannot("start the view"))?);
        self.input = child.stdin.take();
        Ok(())
    }

    /// Lets the view read the capture, which has begun.
    pub(crate) fn show(&mut self) {
        if let Some(input) = &mut self.input {
            // If the view has ended, it has reported why, and SIGCHLD follows.
            let _ = input.write_all(b"\n");
        }
    }

    /// Handles the signals that have arrived; returns whether the capture ends.
    pub(crate) fn is_over(&mut self, signals: &Signals) -> Result<bool, Failure> {
        let asked = signals.ask_to_end();
        if let (None, Some(child)) = (self.ended, &mut self.child) {
            self.ended = child.try_wait().map_err(cannot("wait for the view"))?;
        }
        if asked {
            self.end();
        }
        Ok(asked || self.ended.is_some())
    }

    /// Lets the view end. A second request kills it, if ppt may do so.
    pub(crate) fn end(&mut self) {
        self.input = None;
        match (self.asked, self.ended, &mut self.child) {
            (None, ..) => self.asked = Some(Instant::now()),
            (Some(_), None, Some(child)) => drop(child.kill()),
            _ => {}
        }
    }

    /// Waits for the view's end. The view shows the capture until a signal asks it to end.
    ///
    /// # Errors
    /// The view does not end in time.
    pub(crate) fn wait(&mut self, signals: &Signals) -> Result<(), Failure> {
        let Some(pid) = self.child.as_ref().map(Child::id) else { return Ok(()) };
        if self.ended.is_none() && self.asked.is_none() {
            report::note("the capture has ended, and is still shown; Ctrl-C ends that");
        }
        while self.ended.is_none() {
            let left = self.asked.map(|since| TO_END.saturating_sub(since.elapsed()));
            if left == Some(Duration::ZERO) {
                let message = format!(
                    "cannot end the view: process {pid} still runs; `kill -9 {pid}` ends it"
                );
                return Err(Failure::failed(Code::System, message));
            }
            let left = left.map_or(PollTimeout::NONE, |left| {
                PollTimeout::try_from(left).unwrap_or(PollTimeout::MAX)
            });
            let mut fds = [PollFd::new(signals.as_fd(), PollFlags::POLLIN)];
            match poll(&mut fds, left) {
                Ok(_) | Err(nix::Error::EINTR) => {}
                Err(error) => return Err(failed("wait")(error)),
            }
            self.is_over(signals)?;
        }
        self.status = match self.ended.and_then(|status| status.code()) {
            Some(0) => ExitStatus::DONE,
            Some(code) => ExitStatus(code as u8),
            // A signal killed it: that of a second request, or another one.
            None => ExitStatus::FAILED,
        };
        Ok(())
    }
}
