//! `ppt run -- COMMAND`: captures the frames of a command from the very first one.
//!
//! ```text
//! $ ppt run -- ./server --port 4000
//! attached: pid 4711, buffers example
//! ppt: ./server ended with status 0
//! ppt: captured 25,310 frames in 10.0 s (2,531/s), lost 0, dropped 0; out.bin: 1.6 MiB
//! ```
//!
//! Whatever of the command holds buffers says hello when it is loaded and waits for the answer
//! ([`hello`]): each process, each plugin. All of them go into one capture, which ends with the
//! command.

mod command;
mod hello;

use std::os::fd::AsFd;
use std::process::ExitCode;

use nix::sys::signal::Signal;
use ppt_agent::{AgentError, Buffer, Session, System, Target};
use ppt_listener::EndReason;

use crate::cmd::run::command::{Command, Ended};
use crate::cmd::run::hello::{Hello, Reception};
use crate::code::Code;
use crate::failure::Failure;
use crate::live::{End, Kind, Live, Outputs, attach_options, check_size};
use crate::signals::Signals;
use crate::{args, exit, report};

pub(crate) fn run(args: &args::Run) -> ExitCode {
    match capture(args) {
        Ok(code) => ExitCode::from(code),
        Err(failure) => {
            failure.report();
            exit::run_failed()
        }
    }
}

/// The exit code.
fn capture(args: &args::Run) -> Result<u8, Failure> {
    let options = &args.capture;
    if options.to_stdout() {
        return Err(Failure::usage(
            Code::StdoutTaken,
            "stdout is the command's: choose a file for the capture with -o",
        ));
    }
    let wanted =
        [Signal::SIGINT, Signal::SIGQUIT, Signal::SIGTERM, Signal::SIGHUP, Signal::SIGCHLD];
    let signals = Signals::take(&wanted)?;
    check_size(options, [])?;
    let live = Live::start(options, Kind::Command, Vec::new(), Outputs::open(options)?)?;
    let (reception, guest) = Reception::open()?;
    let command = match Command::start(&args.command, &guest, signals.before()) {
        Ok(command) => command,
        Err(error) => {
            report::error(Code::CannotRun, &error);
            return Ok(error.code());
        }
    };
    drop(guest);
    let mut run = Run {
        args,
        live: Some(live),
        reception: Some(reception),
        missing: None,
        looked: false,
        ok: true,
    };
    let ended = run.until_end(&command, &signals)?;
    Ok(match ended.code() {
        0 if !run.ok => 125,
        code => code,
    })
}

/// A command that runs, and its capture while there is one.
struct Run<'a> {
    args: &'a args::Run,
    live: Option<Live<'a>>,
    reception: Option<Reception>,
    /// A buffer that was asked for, and that a process did not have.
    missing: Option<String>,
    /// Whether it has been looked whether somebody said no hello.
    looked: bool,
    ok: bool,
}

impl Run<'_> {
    /// Until the command has ended. Whatever becomes of the capture, the command goes on.
    fn until_end(&mut self, command: &Command, signals: &Signals) -> Result<Ended, Failure> {
        loop {
            let turned = self.turn(command, signals);
            let end = match turned {
                Ok(end) => end,
                Err(failure) => Some(Err(failure)),
            };
            if let Some(ended) = command.ended() {
                let name = command.name();
                self.finish(
                    end.unwrap_or_else(|| Ok(End::new(EndReason::Exited, ended.message(name)))),
                );
                return Ok(ended);
            }
            if let Some(end) = end {
                self.finish(end);
            }
        }
    }

    /// Waits for one thing to do, and does it; says why the capture ends, if it does.
    fn turn(
        &mut self,
        command: &Command,
        signals: &Signals,
    ) -> Result<Option<Result<End, Failure>>, Failure> {
        let mut fds = vec![signals.as_fd()];
        fds.extend(self.reception.as_ref().map(|it| it.as_fd()));
        let Some(live) = &mut self.live else {
            command::wait_for(signals)?;
            pass_on(command, signals);
            return Ok(None);
        };
        let ready = live.wait(&fds)?;
        if ready.others[0] {
            pass_on(command, signals);
        }
        if ready.others.get(1) == Some(&true) {
            self.receive();
        }
        let end = self.live.as_mut().and_then(|live| live.turn(&ready));
        if !self.looked && self.live.as_ref().is_some_and(Live::is_under_way) {
            self.looked = true;
            self.look_for_strays(command);
        }
        Ok(end.map(Ok))
    }

    fn receive(&mut self) {
        let Some(reception) = &self.reception else { return };
        match reception.next() {
            Ok(Some(hello)) => {
                if let Err(failure) = self.welcome(&hello) {
                    failure.report();
                    if let Some(live) = &mut self.live {
                        live.blemish();
                    }
                }
                hello.answer();
            }
            Ok(None) => {}
            Err(failure) => {
                failure.report();
                self.reception = None;
            }
        }
    }

    /// Attaches to what a process has and is not captured yet.
    fn welcome(&mut self, hello: &Hello) -> Result<(), Failure> {
        let Some(live) = &mut self.live else { return Ok(()) };
        let options = &self.args.capture;
        let pid = hello.pid;
        let target = Target::open(&System::default(), pid)?;
        if !hello.is_waiting() {
            return Ok(()); // it has been killed: the number may be another process's
        }
        // What it was before an exec has ended.
        live.look_at(pid);
        let found = target.buffers()?;
        if options.buffers.is_empty() {
            found.refused.iter().for_each(|it| report::warning(Code::BufferRefused, it));
        }
        let there: Vec<Buffer> = match target.choose(found, &[]) {
            Ok(there) => there,
            // What is to be said of them has been said.
            Err(AgentError::BufferRefused { .. } | AgentError::NoBuffers { .. }) => return Ok(()),
            Err(error) => return Err(error.into()),
        };
        let names: Vec<_> = there.iter().map(|it| it.name.clone()).collect();
        let chosen = |it: &Buffer| {
            let wanted = &options.buffers;
            wanted.is_empty() || wanted.iter().any(|name| it.answers_to(name))
        };
        let chosen: Vec<_> = there.into_iter().filter(chosen).collect();
        if chosen.is_empty() {
            self.missing = Some(format!("process {pid} has only {}", names.join(", ")));
            return Ok(());
        }
        let new: Vec<_> = chosen.into_iter().filter(|it| !live.holds(pid, it)).collect();
        if new.is_empty() {
            return Ok(());
        }
        live.add(Session::attach(target, new, &attach_options(options))?)
    }

    /// A program may have buffers and say no hello: it was built with an older pptc, or what it
    /// should have inherited was taken away.
    fn look_for_strays(&self, command: &Command) {
        let Some(live) = &self.live else { return };
        for pid in ppt_agent::descendants(&System::default(), command.pid()) {
            if live.has(pid) {
                continue;
            }
            let Ok(target) = Target::open(&System::default(), pid) else { continue };
            let there = target.buffers().and_then(|found| target.choose(found, &[]));
            if there.is_ok_and(|there| self.args.capture.buffers.is_empty() && !there.is_empty()) {
                report::warning(
                    Code::NotCaptured,
                    format_args!(
                        "process {pid} ({}) has ppt buffers, but is not captured: it said no hello when \
                     it was loaded\n  it was forked without an exec, started without PPT_RUN in its \
                     environment or with its descriptors closed, or built with an older pptc\n  \
                     `ppt attach {pid}` captures it from now on",
                        target.comm()
                    ),
                );
            }
        }
    }

    fn finish(&mut self, end: Result<End, Failure>) {
        // Whoever waits for an answer, or will, goes on.
        self.reception = None;
        let Some(live) = self.live.take() else { return };
        if live.is_empty() && end.is_ok() {
            self.ok &= live.discard();
            let why = self.missing.take().map_or_else(
                || {
                    "no program that it ran said hello\n  a program does that if it has ppt \
                     buffers, was built with a pptc that knows `ppt run`, and inherits PPT_RUN and \
                     the socket that it names; `ppt attach` needs none of that"
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
        let (ok, left) = live.finish(end);
        self.ok &= ok;
        for (pid, comm) in left {
            report::note(format_args!(
                "process {pid} ({comm}) goes on without being captured: `ppt attach {pid}`"
            ));
        }
    }
}

/// What is sent to us is meant for the command. Keys reach it by themselves.
fn pass_on(command: &Command, signals: &Signals) {
    while let Some((signal, sent)) = signals.next() {
        if sent && matches!(signal, Signal::SIGTERM | Signal::SIGHUP) {
            command.send(signal);
        }
    }
}
