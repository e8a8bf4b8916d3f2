//! `ppt run -- COMMAND`: starts a command and captures its frames from the very first one.
//!
//! ```text
//! $ ppt run -- ./server --port 4000
//! attached: pid 4711, buffers example
//! ppt: ./server ended with status 0
//! ppt: captured 25,310 frames in 10.0 s (2,531/s), lost 0, dropped 0; out.bin: 1.6 MiB
//! ```
//!
//! Every program and plugin with buffers says hello when it is loaded or forked, and waits for the
//! answer ([`crate::live::Follow`]). All processes of the command go into one capture, which ends
//! with the last of them.

mod command;

use std::os::fd::AsFd;

use nix::libc::{SIGALRM, SIGCHLD, SIGCONT, SIGHUP, SIGPROF, SIGVTALRM};
use nix::unistd::{getpid, getsid};
use ppt_listener::EndReason;
use ppt_text::exit::ExitStatus;

use crate::cmd::run::command::{ChildCommand, CommandEnd};
use crate::code::Code;
use crate::descriptors;
use crate::failure::{CommandResult, Failure};
use crate::live::{
    CaptureEnd, CaptureForm, Follow, KernelWatch, Live, Outputs, check_flight, check_size,
    check_where,
};
use crate::metrics::MetricsListener;
use crate::preload::Library;
use crate::signals::{ReceivedSignal, Signals};
use crate::{args, report};

pub(crate) fn run(args: &args::RunArgs) -> CommandResult {
    capture(args).map_err(Failure::of_run)
}

/// Captures the command. Returns the command's own status if the capture succeeded.
fn capture(args: &args::RunArgs) -> CommandResult {
    let options = &args.capture;
    if options.to_stdout() {
        return Err(Failure::usage(
            Code::StdoutTaken,
            "the command uses stdout; choose a file for the capture with -o",
        ));
    }
    let signals = Signals::take_all()?;
    let library = Library::wanted(&args.with)?;
    check_size(options, [])?;
    check_where(options, [])?;
    check_flight(options, [])?;
    let metrics = MetricsListener::open(options)?;
    let outputs = Outputs::open(options)?;
    let (follow, inherited) = Follow::command(&args.with)?;
    let watched = (Some(follow), KernelWatch::wanted(options));
    let mut live = Live::start(options, CaptureForm::Command, Vec::new(), watched, outputs)?;
    live.publish(metrics)?;
    let is_named = library.as_ref().is_some_and(|it| it.warn_if_unloadable(&args.command[0]));
    let preload = library.map(|library| library.variable());
    let start =
        ChildCommand::start(&args.command, &inherited, preload.as_deref(), signals.before());
    let command = match start {
        Ok(command) => command,
        Err(error) => {
            report::error(Code::CannotRun, &error);
            return Ok(ExitStatus(error.code()));
        }
    };
    drop(inherited);
    descriptors::raise_limit();
    live.began(command.pid(), is_named);
    let mut run = RunningCommand { args, live: Some(live), ok: true };
    let ended = run.until_end(&command, &signals)?;
    Ok(match ended.code() {
        0 if !run.ok => ExitStatus::RUN_FAILED,
        code => ExitStatus(code),
    })
}

/// A running command, and its capture until that ends.
struct RunningCommand<'a> {
    args: &'a args::RunArgs,
    live: Option<Live<'a>>,
    ok: bool,
}

impl RunningCommand<'_> {
    /// Runs until the command and all its captured processes have ended. If the capture fails, the
    /// command continues.
    fn until_end(
        &mut self,
        command: &ChildCommand,
        signals: &Signals,
    ) -> Result<CommandEnd, Failure> {
        let mut ended = None;
        let mut continues = false;
        loop {
            if let Some(end) =
                self.turn(command, signals, ended).unwrap_or_else(|why| Some(Err(why)))
            {
                self.finish(end);
            }
            ended = ended.or_else(|| command.ended());
            let of_metrics = self.live.as_mut().and_then(Live::helper);
            command.collect_others([of_metrics, ppt_foreign::helper()]);
            let Some(how) = ended else { continue };
            let message = how.message(command.name());
            let processes = self.live.as_mut().map_or(0, Live::processes);
            if processes == 0 {
                if self.live.as_mut().is_some_and(Live::awaits_hellos) {
                    continue;
                }
                let end = match self.live.as_mut().filter(|_| continues).map(Live::deserted) {
                    // ppt has just attached to a further process.
                    Some(None) => continue,
                    Some(Some(end)) => end,
                    None => CaptureEnd::new(EndReason::Exited, message),
                };
                self.finish(Ok(end));
                return Ok(how);
            }
            if !std::mem::replace(&mut continues, true) && !self.args.capture.quiet {
                let its = match processes {
                    1 => "one of its processes continues, captured until its end",
                    _ => "its processes continue, captured until their end",
                };
                report::note(format_args!("{message}; {its} or Ctrl-C"));
            }
        }
    }

    /// Waits for one event and handles it; returns the reason if the capture ends.
    fn turn(
        &mut self,
        command: &ChildCommand,
        signals: &Signals,
        ended: Option<CommandEnd>,
    ) -> Result<Option<Result<CaptureEnd, Failure>>, Failure> {
        let Some(live) = &mut self.live else {
            command::wait_for(signals)?;
            pass_on(command, signals);
            return Ok(None);
        };
        let ready = live.wait(&[signals.as_fd()])?;
        if ready.others[0] && ended.is_none() {
            pass_on(command, signals);
        } else if ready.others[0] && signals.ask_to_end() {
            return Ok(Some(Ok(CaptureEnd::new(EndReason::Stopped, ""))));
        }
        Ok(live.turn(&ready).map(Ok))
    }

    fn finish(&mut self, end: Result<CaptureEnd, Failure>) {
        let Some(mut live) = self.live.take() else { return };
        // Processes that wait for an answer continue, now and later.
        live.close_reception();
        if live.is_empty() && end.is_ok() {
            let without = live.without();
            self.ok &= live.discard();
            let why = without.map_or_else(
                || {
                    "no program that it ran reported to ppt\n  a program reports if it has ppt \
                     buffers, was built with a pptc that supports `ppt run`, and inherits PPT_RUN \
                     or PPT_HELLO; `ppt attach` needs none of these"
                        .into()
                },
                |missing| {
                    self.ok = false;
                    missing
                },
            );
            report::warning(Code::NothingCaptured, format_args!("nothing was captured: {why}"));
            return;
        }
        let finished = live.finish(end);
        self.ok &= finished.ok;
        for (pid, comm) in finished.still_running {
            report::note(format_args!(
                "process {pid} ({comm}) continues without being captured; to capture it: `ppt \
                 attach {pid}`"
            ));
        }
    }
}

/// Passes signals on to the running command, and stops with it.
fn pass_on(command: &ChildCommand, signals: &Signals) {
    let mut has_stopped = false;
    while let Some(signal) = signals.next() {
        match signal.number {
            SIGCHLD => {
                if let Some(by) = command.stopped() {
                    signals.stop(by);
                    has_stopped = true;
                }
            }
            // A shell continues all processes of a job.
            SIGCONT if has_stopped && !command.is_stopped() => {}
            _ if is_for(command, signal) => command.send(signal),
            _ => {}
        }
    }
}

/// Whether only ppt got a signal that is meant for the command. The terminal sends the signals of
/// its keys to the command itself, but the end of the terminal is told to the first process of the
/// session alone. What the command sends to its parent, or to its process group, is not for itself.
fn is_for(command: &ChildCommand, signal: ReceivedSignal) -> bool {
    match signal.sender {
        Some(sender) => sender != command.pid(),
        // A timer may have been set before the program became ppt.
        None if [SIGALRM, SIGVTALRM, SIGPROF].contains(&signal.number) => true,
        None => signal.number == SIGHUP && getsid(None) == Ok(getpid()),
    }
}
