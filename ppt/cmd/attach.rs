//! `ppt attach`: captures the frames of programs that run.
//!
//! ```text
//! $ ppt attach 4711 -d 10s
//! attached: pid 4711, buffers example
//! ppt: captured 25,310 frames in 10.0 s (2,531/s), lost 0, dropped 0; out.bin: 1.6 MiB
//! ```

use std::collections::BTreeSet;
use std::os::fd::AsFd;

use nix::sys::signal::Signal;
use ppt_agent::Session;
use ppt_listener::EndReason;
use ppt_text::escaped;
use ppt_text::exit::ExitStatus;

use crate::args::{self, ProcessChoice};
use crate::choice;
use crate::cmd::select::{self, Chosen};
use crate::code::Code;
use crate::descriptors;
use crate::failure::{CommandResult, Failure};
use crate::live::{
    CaptureEnd, CaptureForm, Follow, KernelWatch, Live, Outputs, attach_options, check_flight,
    check_size, check_where, end_at_once, is_gone,
};
use crate::metrics::MetricsListener;
use crate::probes::{ListedProbe, ProbedProcess};
use crate::signals::Signals;
use crate::viewer::Viewer;
use crate::{foreign, privileges, report, signals, stdout, weights, wording};

/// The value of `--probe` that lists probes.
const LIST: &str = "list";

pub(crate) fn run(args: &args::Attach) -> CommandResult {
    if args.capture.probes.iter().any(|name| name == LIST) {
        return list_probes(args);
    }
    capture(args, None)
}

/// Captures. `viewer` shows the capture while it grows.
pub(crate) fn capture(args: &args::Attach, mut viewer: Option<&mut Viewer>) -> CommandResult {
    let mut wanted = vec![Signal::SIGINT, Signal::SIGTERM, Signal::SIGHUP];
    wanted.extend(viewer.as_ref().map(|_| Signal::SIGCHLD));
    let signals = Signals::take(&wanted)?;
    let capture = &args.capture;
    check_size(capture, [])?;
    check_where(capture, [])?;
    check_flight(capture, [])?;
    let metrics = MetricsListener::open(capture)?;
    let (chosen, mut outputs) = match choose(args, &signals)? {
        Ok(found) => found,
        Err(signal) => return Ok(ExitStatus::of_signal(signal as i32)),
    };
    let form = match args.choice() {
        _ if args.follow => CaptureForm::Family,
        ProcessChoice::All => CaptureForm::Several,
        _ => CaptureForm::One,
    };
    foreign::report_unanswered(|| {});
    check(capture, &chosen)?;
    outputs.keep_rights()?;
    if args.follow {
        descriptors::raise_limit();
    }
    // From here on, ppt looks for children that are forked.
    let mut follow = args.follow.then(Follow::forks).transpose()?;
    let sessions = sessions(args, chosen, follow.as_ref())?;
    if let Some(follow) = &mut follow {
        for session in &sessions {
            let _ = follow.record(session);
        }
    }
    let kernel = match prepare(capture, &sessions, viewer.as_deref_mut(), &outputs) {
        Ok(kernel) => kernel,
        Err(failure) => {
            sessions.into_iter().for_each(end_at_once);
            return Err(failure);
        }
    };
    let mut live = Live::start(capture, form, sessions, (follow, kernel), outputs)?;
    let started = live.publish(metrics);
    match (&started, &mut viewer) {
        (Ok(()), Some(viewer)) => viewer.show(),
        (Err(_), Some(viewer)) => viewer.end(),
        (_, None) => {}
    }
    let end = started.and_then(|()| until_end(&mut live, &signals, &mut viewer));
    let finished = live.finish(end);
    if let Some(viewer) = viewer {
        viewer.wait(&signals)?;
    }
    Ok(ExitStatus::from_success(finished.ok))
}

/// Finds the processes and opens the outputs. A signal ends the wait for a process.
fn choose(
    args: &args::Attach,
    signals: &Signals,
) -> Result<Result<(Vec<Chosen>, Outputs), Signal>, Failure> {
    let capture = &args.capture;
    let wanted = &capture.buffers;
    match args.choice() {
        // ppt opens the output first: if it cannot, it need not wait for the process.
        ProcessChoice::WaitFor(name) => {
            let outputs = Outputs::open(capture)?;
            let chosen = select::wait_for(name, wanted, signals, capture.quiet)?;
            let chosen = chosen.inspect_err(|&signal| {
                report::error(Code::WaitEnded, select::wait_ended(name, wanted, signal));
            });
            Ok(chosen.map(|chosen| (chosen, outputs)))
        }
        which => {
            let may_lack = wanted.is_empty() && KernelWatch::is_wanted(capture);
            Ok(Ok((select::processes(which, wanted, may_lack)?, Outputs::open(capture)?)))
        }
    }
}

/// Opens what the kernel reports, starts the viewer, and gives up privileges. This precedes the
/// listener's threads, which inherit the remaining privileges. Descriptors stay open.
fn prepare(
    capture: &args::CaptureArgs,
    sessions: &[Session],
    viewer: Option<&mut Viewer>,
    outputs: &Outputs,
) -> Result<Option<KernelWatch>, Failure> {
    let kernel = kernel_watch(capture, sessions)?;
    foreign::report_unanswered(|| {});
    viewer.map_or(Ok(()), Viewer::start)?;
    privileges::give_up(outputs.are_many()).map_err(|error| {
        Failure::failed(Code::System, format!("cannot give up privileges: {error}"))
    })?;
    Ok(kernel)
}

/// Checks the options against the chosen buffers.
fn check(capture: &args::CaptureArgs, chosen: &[Chosen]) -> Result<(), Failure> {
    let buffers = || chosen.iter().flat_map(Chosen::buffers);
    check_size(capture, buffers())?;
    choice::check(capture, buffers())?;
    check_where(capture, buffers())?;
    check_flight(capture, buffers())
}

/// Prints the USDT probes of a process.
fn list_probes(args: &args::Attach) -> CommandResult {
    signals::needs_stdout()?;
    let which = match args.choice() {
        ProcessChoice::WaitFor(name) => ProcessChoice::Name(name),
        which => which,
    };
    let chosen = select::processes(which, &[], true)?;
    let of_process = |chosen: &Chosen| ProbedProcess::new(&chosen.target, &[]).listed();
    let listed = chosen.iter().flat_map(of_process);
    let listed: BTreeSet<ListedProbe> = listed.collect();
    if listed.is_empty() {
        let message =
            "the process has no USDT probes; --probe FUNCTION captures calls of a function";
        return Err(Failure::failed(Code::NoSuchProbe, message));
    }
    let width = listed.iter().map(|probe| probe.name.chars().count()).max().unwrap_or(0);
    let mut text = format!("{:width$}  SEMAPHORE  FILE  ARGUMENTS\n", "PROBE");
    for ListedProbe { path, name, arguments, has_semaphore } in &listed {
        let semaphore = if *has_semaphore { "yes" } else { "no" };
        let (name, path, arguments) = (escaped(name), escaped(path), escaped(arguments));
        text += format!("{name:width$}  {semaphore:9}  {path}  {arguments}").trim_end();
        text.push('\n');
    }
    stdout::plain(&text).map_err(Failure::stdout)?;
    Ok(ExitStatus::DONE)
}

/// Attaches to each process and, with `--follow`, to its children. If one of several processes
/// refuses, ppt reports that and continues with the others.
fn sessions(
    args: &args::Attach,
    chosen: Vec<Chosen>,
    follow: Option<&Follow>,
) -> Result<Vec<Session>, Failure> {
    let options = attach_options(&args.capture, follow.map(Follow::socket));
    let children =
        follow.map_or_else(Vec::new, |_| select::children_of(&chosen, &args.capture.buffers));
    let asked_for = if matches!(args.choice(), ProcessChoice::All) { 0 } else { chosen.len() };
    let mut sessions = Vec::new();
    let mut refusals = Vec::new();
    for (index, Chosen { target, buffers }) in chosen.into_iter().chain(children).enumerate() {
        let attached = if buffers.is_empty() {
            Ok(Session::without_buffers(target, &options))
        } else {
            Session::attach(target, buffers, &options)
        };
        match attached.inspect(weights::restore_after_death) {
            Ok(session) => sessions.push(session),
            // A child that has ended since is no failure.
            Err(error) if follow.is_some() && index > 0 && is_gone(&error) => {}
            Err(error) if index >= asked_for => refusals.push(error),
            Err(error) => {
                sessions.into_iter().for_each(end_at_once);
                return Err(error.into());
            }
        }
    }
    if sessions.is_empty() {
        return Err(Failure::all(&refusals));
    }
    refusals.iter().for_each(|error| report::warning(error.code(), wording::message(error)));
    Ok(sessions)
}

/// Opens what the kernel reports about each process, if that is wanted. Fails if a probe matches
/// nothing, or if a process has neither buffers nor reports of the kernel.
fn kernel_watch(
    capture: &args::CaptureArgs,
    sessions: &[Session],
) -> Result<Option<KernelWatch>, Failure> {
    let mut kernel = KernelWatch::wanted(capture);
    for session in sessions {
        kernel.iter_mut().for_each(|watch| watch.open(session.target()));
    }
    if let Some(unmatched) = kernel.as_ref().and_then(KernelWatch::unmatched) {
        return Err(Failure::usage(Code::NoSuchProbe, unmatched));
    }
    let has_source = |session: &Session| {
        let pid = session.target().pid();
        !session.attached().is_empty() || kernel.as_ref().is_some_and(|kernel| kernel.has(pid))
    };
    if let Some(silent) = sessions.iter().find(|session| !has_source(session)) {
        let pid = silent.target().pid();
        let message =
            format!("process {pid} has no ppt buffers, and the kernel reports nothing about it");
        return Err(Failure::failed(Code::NothingToAttach, message));
    }
    Ok(kernel)
}

/// Runs the capture until there is a reason to end it.
fn until_end(
    live: &mut Live,
    signals: &Signals,
    viewer: &mut Option<&mut Viewer>,
) -> Result<CaptureEnd, Failure> {
    loop {
        let ready = live.wait(&[signals.as_fd()])?;
        let is_over = ready.others[0]
            && match viewer {
                Some(viewer) => viewer.is_over(signals)?,
                None => signals.next().is_some(),
            };
        if is_over {
            return Ok(CaptureEnd::new(EndReason::Stopped, ""));
        }
        if let Some(end) = live.turn(&ready).or_else(|| live.deserted()) {
            return Ok(end);
        }
    }
}
