//! `ppt whatif --live PID…`: a program under a hypothesis, while it runs.
//!
//! ppt attaches and captures, as `ppt attach` does, and slows intervals down in rounds, which it writes into the
//! capture, too. When the time is over, `ppt whatif CAPTURE` answers from the capture, now and later.

use std::ffi::OsString;
use std::os::fd::AsFd;

use clap::Parser;
use nix::sys::signal::Signal;
use ppt_agent::Session;
use ppt_kernel::{RoundLog, VirtualClockLog};
use ppt_listener::EndReason;
use ppt_text::exit::ExitStatus;

use crate::args::{CaptureArgs, LiveWhatIf, ProcessChoice};
use crate::cmd::select;
use crate::code::Code;
use crate::failure::{CommandResult, Failure};
use crate::live::{CaptureEnd, CaptureForm, Live, Outputs, attach_options, end_at_once};
use crate::privileges::WithRights;
use crate::rounds::{Experiment, RunningExperiment};
use crate::signals::Signals;
use crate::{answers, privileges, weights};

/// The experiment that `words`, those behind `ppt`, ask for, if they do.
///
/// # Errors
/// The words are wrong, or ask for help.
pub(crate) fn asked(words: &[OsString]) -> Result<Option<LiveWhatIf>, clap::Error> {
    let is_asked = words.first().is_some_and(|word| word == "whatif");
    (is_asked && LiveWhatIf::is_asked(words)).then(|| LiveWhatIf::try_parse_from(words)).transpose()
}

/// Runs an experiment, and answers from its capture.
pub(crate) fn run(args: &LiveWhatIf) -> CommandResult {
    let capture = args.capture();
    let mut words: Vec<OsString> = vec!["whatif".into()];
    words.extend(args.format.iter().flat_map(|format| ["--format".into(), format.into()]));
    words.extend(["--".into(), capture.output.clone().into()]);
    let signals = Signals::take(&[Signal::SIGINT, Signal::SIGTERM, Signal::SIGHUP])?;
    // Only with the rights of now can it become the user who called sudo.
    let answer = WithRights::keep(move || answers::become_answer(&words));
    let answer = answer.map_err(system("start a thread"))?;
    if experiment(args, &capture, &signals)? { answer.work() } else { Ok(ExitStatus::FAILED) }
}

/// Captures the processes while the rounds run. Returns whether all went well.
fn experiment(
    args: &LiveWhatIf,
    capture: &CaptureArgs,
    signals: &Signals,
) -> Result<bool, Failure> {
    let mut chosen = Vec::new();
    for &pid in &args.pids {
        chosen.extend(select::processes(ProcessChoice::Pid(pid), &[], false)?);
    }
    let mut outputs = Outputs::open(capture)?;
    outputs.keep_rights()?;
    let options = attach_options(capture, None);
    let mut sessions = Vec::new();
    for select::Chosen { target, buffers } in chosen {
        match Session::attach(target, buffers, &options).inspect(weights::restore_after_death) {
            Ok(session) => sessions.push(session),
            Err(error) => {
                sessions.into_iter().for_each(end_at_once);
                return Err(error.into());
            }
        }
    }
    let prepared = Experiment::new(args, &sessions).and_then(|experiment| {
        let log = RoundLog::new().map_err(system("make the log of rounds"))?;
        let clock = experiment.pauses().then(VirtualClockLog::new).transpose();
        let clock = clock.map_err(system("make the log of pauses"))?;
        privileges::give_up(outputs.are_many()).map_err(|error| {
            Failure::failed(Code::System, format!("cannot give up privileges: {error}"))
        })?;
        Ok((experiment, log, clock))
    });
    let (experiment, log, clock) = match prepared {
        Ok(prepared) => prepared,
        Err(failure) => {
            sessions.into_iter().for_each(end_at_once);
            return Err(failure);
        }
    };
    let form = if sessions.len() == 1 { CaptureForm::One } else { CaptureForm::Several };
    let mut live = Live::start(capture, form, sessions, (None, None), outputs)?;
    let end = live.log_rounds(&log, clock.as_ref()).and_then(|()| {
        let mut running = experiment.start(log, clock).map_err(system("start the rounds"))?;
        let end = until_end(&mut live, signals, &running);
        running.stop();
        end
    });
    Ok(live.finish(end).ok)
}

fn system(what: &'static str) -> impl Fn(std::io::Error) -> Failure {
    move |error| Failure::failed(Code::System, format!("cannot {what}: {error}"))
}

/// Runs until the time is over, somebody stops it, or no process is left.
fn until_end(
    live: &mut Live,
    signals: &Signals,
    running: &RunningExperiment,
) -> Result<CaptureEnd, Failure> {
    loop {
        if let Some((code, why)) = running.refusal() {
            return Err(Failure::failed(code, why));
        }
        let ready = live.wait(&[signals.as_fd()])?;
        if ready.others[0] && signals.next().is_some() {
            return Ok(CaptureEnd::new(EndReason::Stopped, ""));
        }
        if let Some(end) = live.turn(&ready).or_else(|| live.deserted()) {
            return Ok(end);
        }
    }
}
