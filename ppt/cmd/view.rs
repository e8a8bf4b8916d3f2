//! `ppt view PID`: a timeline of a process while it runs.
//!
//! ppt attaches and writes a capture, as `ppt attach` does. `ppt-analysis view` follows that file without any
//! privileges. Ctrl-C ends both, and the capture stays. If a ppt captures the process already, its capture is
//! shown instead, and goes on.

use std::ffi::OsString;
use std::io;
use std::os::fd::AsFd;
use std::path::Path;
use std::process::{Child, Command, ExitStatus as Status};

use nix::poll::{PollFd, PollFlags, PollTimeout, poll};
use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;
use ppt_text::escaped;

use crate::args::ProcessView;
use crate::cmd::{attach, other};
use crate::code::Code;
use crate::exit::ExitStatus;
use crate::failure::{Failure, Outcome, failed};
use crate::signals::Signals;
use crate::{report, session};

/// Shows a process.
pub(crate) fn run(view: &ProcessView) -> Outcome {
    let pid = view.pid;
    if let Some((ppt, output)) = captured(pid) {
        let own = match view.is_particular() {
            true => ", as it was told: -o, -b, --kernel, --stacks and --allow change nothing",
            false => "",
        };
        let name = escaped(&output);
        report::note(format_args!(
            "process {pid} is captured into {name} by ppt with pid {ppt}{own}"
        ));
        let mut words: Vec<OsString> = vec!["view".into(), output.into()];
        words.extend(view.of_view());
        return other::ask(&words);
    }
    // Nobody is attached to for a view that cannot be had.
    if !other::can_ask() {
        return other::ask(&["view".into()]);
    }
    let args = view.attach();
    let mut shown = Viewer::new(args.capture.output.as_os_str().into(), view.of_view());
    let captured = attach::capture(&args, Some(&mut shown))?;
    Ok(if captured == ExitStatus::DONE { shown.status } else { captured })
}

/// The capture that a ppt writes of a process, and the pid of that ppt.
fn captured(pid: i32) -> Option<(u32, String)> {
    let sessions = session::sessions();
    let has = |it: &&session::Session| it.answer.processes.iter().any(|one| one.pid == pid);
    let there = |it: &session::Session| {
        let output = it.answer.output.clone().filter(|output| Path::new(output).is_absolute())?;
        Some((it.answer.ppt, output))
    };
    sessions.iter().filter(has).find_map(there)
}

fn cannot(what: &'static str) -> impl Fn(io::Error) -> Failure {
    move |error| Failure::failed(Code::System, format!("cannot {what}: {error}"))
}

/// The program that shows a capture while it is written.
pub(crate) struct Viewer {
    words: Vec<OsString>,
    child: Option<Child>,
    ended: Option<Status>,
    /// Somebody wants it to end.
    asked: bool,
    status: ExitStatus,
}

impl Viewer {
    fn new(capture: OsString, options: Vec<OsString>) -> Self {
        // A name may begin with a dash.
        let words = ["view".into()].into_iter().chain(options).chain(["--".into(), capture]);
        let (child, ended, asked) = (None, None, false);
        Self { words: words.collect(), child, ended, asked, status: ExitStatus::DONE }
    }

    /// Starts it; the capture is there.
    pub(crate) fn start(&mut self) -> Result<(), Failure> {
        let exe = std::env::current_exe().map_err(cannot("find ppt"))?;
        let mut command = Command::new(exe);
        command.args(&self.words);
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
