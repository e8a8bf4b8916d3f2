//! `ppt top PID`: shows what a running program does now.
//!
//! ppt attaches and writes the capture into a pipe. At the other end, another `ppt top` reads it without
//! any privileges and draws on the terminal. When that process ends for any reason, ppt detaches.
//! `ppt top CAPTURE` only reads.

use std::io::{self, IsTerminal, PipeReader, PipeWriter, pipe};
use std::os::fd::{AsFd, OwnedFd};
use std::os::unix::process::{CommandExt, ExitStatusExt};
use std::path::Path;
use std::process::{Child, Command, ExitStatus as Status, Stdio};

use clap::error::ErrorKind;
use nix::fcntl::{FcntlArg, fcntl};
use nix::poll::{PollFd, PollFlags, PollTimeout, poll};
use nix::sys::signal::{SigSet, Signal, kill};
use nix::unistd::{Pid, dup2_stdout};
use ppt_agent::Session;
use ppt_listener::EndReason;
use ppt_text::exit::ExitStatus;
use rustix::termios::{OptionalActions, Termios, tcgetattr, tcsetattr};

use crate::args::{self, ProcessChoice};
use crate::cmd::select;
use crate::code::Code;
use crate::failure::{CommandResult, Failure, failed};
use crate::live::{CaptureEnd, CaptureForm, Live, Outputs, attach_options, end_at_once};
use crate::signals::Signals;
use crate::{answers, help, privileges, report, weights};

/// Size of the pipe in bytes. It holds the frames that arrive while the view draws.
const PIPE: i32 = 1 << 20;

pub(crate) fn run(args: &args::Top) -> CommandResult {
    let pids = match args.pids() {
        _ if args.on_stdin => return show("-".as_ref(), args),
        Some(pids) => pids,
        None => match &args.targets[..] {
            [capture] => return show(capture, args),
            _ => {
                let text = "ppt top shows processes, all by their ids, or one capture";
                return Ok(help::wrong("top", ErrorKind::TooManyValues, text));
            }
        },
    };
    if !args.shown.once && !io::stdout().is_terminal() {
        return Err(Failure::usage(
            Code::NoTerminal,
            "`ppt top` draws on a terminal, and standard output is none: --once prints a table",
        ));
    }
    let signals =
        Signals::take(&[Signal::SIGINT, Signal::SIGTERM, Signal::SIGHUP, Signal::SIGCHLD])?;
    let capture = args.capture();
    let sessions = sessions(&pids, &capture)?;
    let kind = if pids.len() == 1 { CaptureForm::One } else { CaptureForm::Several };
    let (view, stdout) = match TopProgram::start() {
        Ok(started) => started,
        Err(failure) => {
            sessions.into_iter().for_each(end_at_once);
            return Err(failure);
        }
    };
    // Messages wait until the view has given back the terminal.
    report::hold();
    let done = capture_into(view, &capture, kind, sessions, &signals, stdout);
    report::release();
    done
}

/// Shows a capture.
fn show(capture: &Path, args: &args::Top) -> CommandResult {
    // The `ppt top` that starts a view has blocked signals, because it waits for them.
    let _ = SigSet::empty().thread_set_mask();
    answers::top(capture, &args.shown)
}

fn sessions(pids: &[i32], capture: &args::CaptureArgs) -> Result<Vec<Session>, Failure> {
    let mut chosen = Vec::new();
    for &pid in pids {
        chosen.extend(select::processes(ProcessChoice::Pid(pid), &capture.buffers, false)?);
    }
    let options = attach_options(capture, None);
    let mut sessions = Vec::new();
    for chosen in chosen {
        let attached = Session::attach(chosen.target, chosen.buffers, &options);
        match attached.inspect(weights::restore_after_death) {
            Ok(session) => sessions.push(session),
            Err(error) => {
                sessions.into_iter().for_each(end_at_once);
                return Err(error.into());
            }
        }
    }
    Ok(sessions)
}

/// Captures into the pipe, which is now stdout, until the view has ended.
fn capture_into(
    mut view: TopProgram,
    capture: &args::CaptureArgs,
    kind: CaptureForm,
    sessions: Vec<Session>,
    signals: &Signals,
    stdout: OwnedFd,
) -> CommandResult {
    let given_up = privileges::give_up(false).map_err(|error| {
        Failure::failed(Code::System, format!("cannot give up privileges: {error}"))
    });
    let outputs = given_up.and_then(|()| Outputs::open(capture));
    let outputs = match outputs {
        Ok(outputs) => outputs,
        Err(failure) => {
            sessions.into_iter().for_each(end_at_once);
            return Err(failure);
        }
    };
    let mut live = Live::start(capture, kind, sessions, (None, None), outputs)?;
    let end = until_end(&mut live, &mut view, signals);
    let finished = live.finish(end);
    // The view reads the end of the pipe, and shows its last picture until the user ends it.
    dup2_stdout(stdout).map_err(failed("have our standard output back"))?;
    let status = view.wait(signals)?;
    Ok(match status.code() {
        Some(0) if finished.ok => ExitStatus::DONE,
        Some(0) | None => ExitStatus::FAILED,
        Some(code) => ExitStatus(code as u8),
    })
}

/// Runs the capture until there is a reason to end it.
fn until_end(
    live: &mut Live,
    view: &mut TopProgram,
    signals: &Signals,
) -> Result<CaptureEnd, Failure> {
    loop {
        let ready = live.wait(&[signals.as_fd()])?;
        if ready.others[0] && view.is_over(signals)? {
            return Ok(CaptureEnd::new(EndReason::Stopped, ""));
        }
        if let Some(end) = live.turn(&ready).or_else(|| live.deserted()) {
            return Ok(end);
        }
    }
}

fn cannot(what: &'static str) -> impl Fn(io::Error) -> Failure {
    move |error| Failure::failed(Code::System, format!("cannot {what}: {error}"))
}

/// The program that draws.
struct TopProgram {
    child: Child,
    ended: Option<Status>,
    asked: bool,
    /// The former settings of the terminal, which a killed view does not restore.
    terminal: Option<Termios>,
}

impl TopProgram {
    /// Starts the view with a pipe whose other end becomes stdout; returns the former stdout.
    fn start() -> Result<(Self, OwnedFd), Failure> {
        let (reader, writer): (PipeReader, PipeWriter) = pipe().map_err(cannot("make a pipe"))?;
        // The system may allow less.
        let _ = fcntl(&writer, FcntlArg::F_SETPIPE_SZ(PIPE));
        let terminal = tcgetattr(io::stdout()).ok();
        let mut command = Command::new("/proc/self/exe");
        command.arg0("ppt").args(["top", "--on-stdin"]).args(std::env::args_os().skip(2));
        command.stdin(Stdio::from(reader));
        let child = command.spawn().map_err(cannot("start the view"))?;
        // This closes our copy of the reading end.
        drop(command);
        let view = TopProgram { child, ended: None, asked: false, terminal };
        let ours = io::stdout().as_fd().try_clone_to_owned();
        let former = ours.and_then(|ours| Ok(dup2_stdout(writer).map(|()| ours)?));
        former.map(|former| (view, former)).map_err(cannot("write into a pipe"))
    }

    /// Handles the signals that have arrived; returns whether the capture ends.
    fn is_over(&mut self, signals: &Signals) -> Result<bool, Failure> {
        let asked = signals.ask_to_end();
        if self.ended.is_none() {
            self.ended = self.child.try_wait().map_err(cannot("wait for the view"))?;
        }
        if asked {
            self.end();
        }
        Ok(asked || self.ended.is_some())
    }

    /// Asks the view to end. A second request kills it.
    fn end(&mut self) {
        let signal = if self.asked { Signal::SIGKILL } else { Signal::SIGTERM };
        self.asked = true;
        if self.ended.is_none() {
            let _ = kill(Pid::from_raw(self.child.id() as i32), signal);
        }
    }

    /// Waits for the view's end, and restores the terminal.
    fn wait(mut self, signals: &Signals) -> Result<Status, Failure> {
        let status = loop {
            if let Some(status) = self.ended {
                break status;
            }
            let mut fds = [PollFd::new(signals.as_fd(), PollFlags::POLLIN)];
            match poll(&mut fds, PollTimeout::NONE) {
                Ok(_) | Err(nix::Error::EINTR) => {}
                Err(error) => return Err(failed("wait")(error)),
            }
            self.is_over(signals)?;
        };
        if let (Some(terminal), Some(_)) = (&self.terminal, status.signal()) {
            // A killed view leaves the alternate screen on and the cursor hidden.
            report::raw("\x1b[?1049l\x1b[?25h");
            let _ = tcsetattr(io::stdout(), OptionalActions::Drain, terminal);
        }
        Ok(status)
    }
}
