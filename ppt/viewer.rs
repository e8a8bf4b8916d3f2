//! The program that shows a capture while ppt writes it: `ppt-analysis view`, without any privileges.

use std::ffi::OsString;
use std::io;
use std::os::fd::AsFd;
use std::process::{Child, Command, ExitStatus as Status};

use nix::poll::{PollFd, PollFlags, PollTimeout, poll};
use nix::sys::signal::{Signal, kill};
use nix::unistd::{Pid, getppid};
use rustix::process::set_parent_process_death_signal;

use crate::code::Code;
use crate::exit::ExitStatus;
use crate::failure::{Failure, failed};
use crate::report;
use crate::signals::Signals;

fn cannot(what: &'static str) -> impl Fn(io::Error) -> Failure {
    move |error| Failure::failed(Code::System, format!("cannot {what}: {error}"))
}

/// The variable that says which ppt a view belongs to.
const VIEW_OF: &str = "PPT_VIEW_OF";

/// If a ppt has started this view, it ends with that ppt, however that ends.
pub(crate) fn end_with_parent() {
    let of = std::env::var(VIEW_OF).ok().and_then(|pid| pid.parse().ok());
    let is_ours = |of: i32| getppid().as_raw() == of;
    if of.is_some_and(is_ours) {
        // The worst that can happen is a view that Ctrl-C ends.
        let _ = set_parent_process_death_signal(Some(rustix::process::Signal::TERM));
    }
}

/// That program.
pub(crate) struct Viewer {
    words: Vec<OsString>,
    child: Option<Child>,
    ended: Option<Status>,
    /// Somebody wants it to end.
    asked: bool,
    /// How it ended.
    pub(crate) status: ExitStatus,
}

impl Viewer {
    /// Of a capture; `options` are those of `ppt view`.
    pub(crate) fn new(capture: OsString, options: Vec<OsString>) -> Self {
        // A name may begin with a dash.
        let words = ["view".into()].into_iter().chain(options).chain(["--".into(), capture]);
        let (child, ended, asked) = (None, None, false);
        Self { words: words.collect(), child, ended, asked, status: ExitStatus::DONE }
    }

    /// Starts it; the capture is there.
    pub(crate) fn start(&mut self) -> Result<(), Failure> {
        let exe = std::env::current_exe().map_err(cannot("find ppt"))?;
        let mut command = Command::new(exe);
        command.args(&self.words).env(VIEW_OF, std::process::id().to_string());
        self.child = Some(command.spawn().map_err(cannot("start the view"))?);
        Ok(())
    }

    /// Handles the signals that have arrived; returns whether the capture ends.
    pub(crate) fn is_over(&mut self, signals: &Signals) -> Result<bool, Failure> {
        let mut asked = false;
        while let Some((signal, _)) = signals.next() {
            asked |= signal != Signal::SIGCHLD;
        }
        if let (None, Some(child)) = (self.ended, &mut self.child) {
            self.ended = child.try_wait().map_err(cannot("wait for the view"))?;
        }
        if asked {
            self.end();
        }
        Ok(asked || self.ended.is_some())
    }

    /// Asks the view to end. A second request kills it.
    pub(crate) fn end(&mut self) {
        let signal = if self.asked { Signal::SIGKILL } else { Signal::SIGTERM };
        self.asked = true;
        if let (None, Some(child)) = (self.ended, &self.child) {
            let _ = kill(Pid::from_raw(child.id() as i32), signal);
        }
    }

    /// Waits for its end; until then, it shows what has been captured.
    pub(crate) fn wait(&mut self, signals: &Signals) -> Result<(), Failure> {
        if self.child.is_some() && self.ended.is_none() && !self.asked {
            report::note("the capture has ended, and is still shown; Ctrl-C ends that");
        }
        while self.child.is_some() && self.ended.is_none() {
            let mut fds = [PollFd::new(signals.as_fd(), PollFlags::POLLIN)];
            match poll(&mut fds, PollTimeout::NONE) {
                Ok(_) | Err(nix::Error::EINTR) => {}
                Err(error) => return Err(failed("wait")(error)),
            }
            self.is_over(signals)?;
        }
        self.status = match self.ended.and_then(|status| status.code()) {
            Some(0) => ExitStatus::DONE,
            Some(code) => ExitStatus(code as u8),
            // It was killed, because somebody asked twice, or by somebody else.
            None => ExitStatus::FAILED,
        };
        Ok(())
    }
}
