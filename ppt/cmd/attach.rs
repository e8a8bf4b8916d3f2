//! `ppt attach PID`: agent and listener, joined.
//!
//! ```text
//! $ ppt attach 4711 -d 10s
//! attached: pid 4711, buffers example
//! ppt: captured 25,310 frames in 10.0 s (2,531/s), lost 0, dropped 0; out.bin: 1.6 MiB
//! ```
//!
//! One poll loop: signals (signalfd), the end of the target (pidfd), a clock (timerfd), and the
//! listener, when it ends by itself. The order of the end is the order of the protocol: gate off,
//! last drain, end of the capture, memory and claim given back.

mod tell;

use std::fs::File;
use std::os::fd::{AsFd, BorrowedFd};
use std::path::Path;
use std::process::ExitCode;
use std::time::{Duration, Instant};

use nix::poll::{PollFd, PollFlags, PollTimeout, poll};
use nix::sys::signal::{SigHandler, SigSet, Signal, signal};
use nix::sys::signalfd::{SfdFlags, SignalFd};
use nix::sys::time::TimeSpec;
use nix::sys::timerfd::{ClockId, Expiration, TimerFd, TimerFlags, TimerSetTimeFlags};
use ppt_agent::{AgentError, Allow, Attached, Limits, Options, Session, System, Target};
use ppt_listener::{EndReason, Ended, Feed, ListedSegment, Listener, Rate, Rotation, Unattended};

use crate::measure::{bytes, grouped};
use crate::output::{Output, OutputError};
use crate::parts::Parts;
use crate::report::{self, StatusLine};
use crate::{args, exit, privileges};

/// What captures say that they were written by.
const TOOL: &str = concat!("ppt ", env!("CARGO_PKG_VERSION"));
/// How often the target's mailbox is looked at.
const LOOK: Duration = Duration::from_secs(1);
/// The first looks come sooner: a segment that cannot be mapped shows at the first frame.
const FIRST_LOOK: Duration = Duration::from_millis(100);

pub(crate) fn run(args: &args::Attach) -> ExitCode {
    match attach(args) {
        Ok(true) => exit::DONE,
        Ok(false) => exit::FAILED,
        Err(Failure::Usage(message)) => {
            report::error(message);
            exit::usage()
        }
        Err(Failure::Failed(message)) => {
            report::error(message);
            exit::FAILED
        }
    }
}

enum Failure {
    Usage(String),
    Failed(String),
}

impl From<AgentError> for Failure {
    fn from(error: AgentError) -> Self {
        match error {
            AgentError::NoSuchBuffer { .. } => Failure::Usage(error.to_string()),
            other => Failure::Failed(other.to_string()),
        }
    }
}

fn failed(what: &'static str) -> impl Fn(nix::Error) -> Failure {
    move |error| Failure::Failed(format!("cannot {what}: {error}"))
}

/// What was allowed on the command line.
pub(crate) fn allowed(allow: &[args::Allow]) -> Allow {
    Allow {
        traced: allow.contains(&args::Allow::Traced),
        seccomp: allow.contains(&args::Allow::Seccomp),
        foreign_claim: allow.contains(&args::Allow::ForeignClaim),
    }
}

/// Whether all went well.
fn attach(args: &args::Attach) -> Result<bool, Failure> {
    // Before any thread: all of them inherit it.
    let signals = signals()?;
    let target = Target::open(&System::default(), args.process.pid())?;
    let found = target.buffers()?;
    let refused = found.refused.clone();
    let buffers = target.choose(found, &args.buffers)?;
    if args.buffers.is_empty() {
        refused.iter().for_each(report::warning);
    }
    let (output, rotation) = open(args)?;
    let options = Options {
        limits: Limits { slots: args.slots, memory: args.memory },
        allow: allowed(&args.allow),
    };
    let session = match Session::attach(target, buffers, &options) {
        Ok(session) => session,
        Err(error) => {
            output.discard();
            return Err(error.into());
        }
    };
    // Before the listener's threads, which inherit what is left. Descriptors stay open.
    if let Err(error) = privileges::give_up(rotation.is_some()) {
        end_at_once(session, output);
        return Err(Failure::Failed(format!("cannot give up privileges: {error}")));
    }
    let run = Run::start(args, session, (output, rotation), signals)?;
    run.until_end()
}

/// The file that frames go to first, and how they go on.
fn open(args: &args::Attach) -> Result<(Output, Option<Rotation<File>>), Failure> {
    let fail = |error: OutputError| Failure::Failed(error.to_string());
    let Some(every) = args.rotate else {
        return Ok((Output::open(&args.output, args.force).map_err(fail)?, None));
    };
    if args.output == Path::new("-") {
        return Err(Failure::Usage("--rotate makes files; stdout is one".into()));
    }
    let (parts, mut first) = Parts::open(&args.output, args.force, args.keep).map_err(fail)?;
    first.rename(parts.name());
    Ok((first, Some(parts.rotation(every, TOOL))))
}

/// Detaches before anything was captured.
fn end_at_once(mut session: Session, output: Output) {
    session.gate_off();
    session.close();
    output.discard();
}

/// SIGINT, SIGTERM and SIGHUP as a descriptor: the former two also where they were inherited as
/// ignored, as in the background of a script. Ignored hang-ups stay so: nohup(1) asked for that.
fn signals() -> Result<SignalFd, Failure> {
    let mut set = SigSet::empty();
    for it in [Signal::SIGINT, Signal::SIGTERM, Signal::SIGHUP] {
        // SAFETY: no handler is installed, only the default restored.
        let before = unsafe { signal(it, SigHandler::SigDfl) }.map_err(failed("set up signals"))?;
        if it == Signal::SIGHUP && matches!(before, SigHandler::SigIgn) {
            // SAFETY: as it was.
            unsafe { signal(it, before) }.map_err(failed("set up signals"))?;
        } else {
            set.add(it);
        }
    }
    set.thread_block().map_err(failed("block signals"))?;
    let flags = SfdFlags::SFD_CLOEXEC | SfdFlags::SFD_NONBLOCK;
    SignalFd::with_flags(&set, flags).map_err(failed("wait for signals"))
}

fn timer(after: Duration, every: Option<Duration>) -> Result<TimerFd, Failure> {
    let fail = failed("set a timer");
    let timer =
        TimerFd::new(ClockId::CLOCK_MONOTONIC, TimerFlags::TFD_CLOEXEC | TimerFlags::TFD_NONBLOCK)
            .map_err(&fail)?;
    let first = TimeSpec::from_duration(after);
    let expiration = match every {
        Some(every) => Expiration::IntervalDelayed(first, TimeSpec::from_duration(every)),
        None => Expiration::OneShot(first),
    };
    timer.set(expiration, TimerSetTimeFlags::empty()).map_err(&fail)?;
    Ok(timer)
}

/// A running capture.
struct Run<'a> {
    args: &'a args::Attach,
    session: Session,
    listener: Listener,
    signals: SignalFd,
    name: String,
    status: StatusLine,
    /// Buffers whose end has been told.
    told: Vec<bool>,
    waiting_told: bool,
    started: Instant,
    ok: bool,
}

/// Why the loop ended.
struct End {
    reason: EndReason,
    message: String,
}

impl<'a> Run<'a> {
    fn start(
        args: &'a args::Attach,
        session: Session,
        (output, rotation): (Output, Option<Rotation<File>>),
        signals: SignalFd,
    ) -> Result<Self, Failure> {
        let feeds = session.attached().iter().map(|it| feed(session.target(), it)).collect();
        let options = ppt_listener::Options {
            max_size: args.max_size,
            rate: match args.rate {
                args::Rate::Peak => Rate::Peak,
                args::Rate::Paper => Rate::Paper,
            },
            ..Default::default()
        };
        let name = output.name();
        let header = ppt_listener::header(TOOL);
        let started = match output.file.try_clone() {
            Ok(file) => Listener::rotating(file, header, feeds, options, rotation)
                .map_err(|error| error.to_string()),
            Err(error) => Err(error.to_string()),
        };
        let listener = match started {
            Ok(listener) => listener,
            Err(error) => {
                end_at_once(session, output);
                return Err(Failure::Failed(format!("{name}: {error}")));
            }
        };
        let pid = session.target().pid();
        tell::owner(args, session.target());
        for it in session.attached() {
            tell::attached(args, it);
        }
        if args.verbose {
            report::note(format_args!(
                "wrote by {}, held the target for {} µs",
                session.transport,
                session.held.as_micros()
            ));
        }
        let buffers: Vec<_> = session.attached().iter().map(|it| it.buffer.name.as_str()).collect();
        report::line(format_args!("attached: pid {pid}, buffers {}", buffers.join(", ")));
        Ok(Self {
            status: StatusLine::new(!args.quiet),
            told: vec![false; session.attached().len()],
            args,
            session,
            listener,
            signals,
            name,
            waiting_told: false,
            started: Instant::now(),
            ok: true,
        })
    }

    fn until_end(mut self) -> Result<bool, Failure> {
        let ended = self.wait();
        let end = match ended {
            Ok(end) => end,
            Err(Failure::Usage(message) | Failure::Failed(message)) => {
                self.ok = false;
                End { reason: EndReason::Failed, message }
            }
        };
        self.session.gate_off();
        let dropped =
            (0..self.told.len()).map(|index| dropped(self.session.check(index).dropped)).collect();
        self.status.clear();
        if !end.message.is_empty() && !self.args.quiet {
            report::note(&end.message);
        }
        let summary = self.listener.finish(end.reason, end.message.clone(), dropped);
        self.session.close();
        let ok = self.ok && tell::problems(&self.name, &summary);
        if !self.args.quiet {
            tell::summary(&self.name, &summary, self.started.elapsed());
        }
        Ok(ok)
    }

    /// Waits for a reason to end.
    fn wait(&mut self) -> Result<End, Failure> {
        let ticks = timer(FIRST_LOOK, Some(LOOK))?;
        let deadline = self.args.duration.map(|it| timer(it, None)).transpose()?;
        let end = |reason, message: &str| Ok(End { reason, message: message.into() });
        loop {
            let ready = self.poll(&ticks, deadline.as_ref())?;
            if ready.signal {
                let _ = self.signals.read_signal();
                return end(EndReason::Stopped, "");
            }
            if ready.listener {
                return self.listener_ended();
            }
            if ready.target {
                return end(EndReason::Exited, &self.target_ended());
            }
            if ready.deadline {
                return end(EndReason::Duration, "");
            }
            if ready.tick {
                let _ = ticks.wait();
                if let Some(end) = self.look() {
                    return Ok(end);
                }
            }
        }
    }

    fn poll(&self, ticks: &TimerFd, deadline: Option<&TimerFd>) -> Result<Ready, Failure> {
        let watch = |fd| PollFd::new(fd, PollFlags::POLLIN);
        let mut fds: Vec<PollFd> =
            vec![watch(self.signals.as_fd()), watch(self.listener.wake()), watch(ticks.as_fd())];
        let optional: [Option<BorrowedFd>; 2] =
            [self.session.pidfd(), deadline.map(TimerFd::as_fd)];
        fds.extend(optional.into_iter().flatten().map(watch));
        match poll(&mut fds, PollTimeout::NONE) {
            Ok(_) | Err(nix::Error::EINTR) => {}
            Err(error) => return Err(failed("wait")(error)),
        }
        let ready: Vec<bool> = fds.iter().map(|fd| fd.any().unwrap_or(false)).collect();
        let target = self.session.pidfd().is_some();
        Ok(Ready {
            signal: ready[0],
            listener: ready[1],
            tick: ready[2],
            target: target && ready[3],
            deadline: deadline.is_some() && ready[3 + usize::from(target)],
        })
    }

    fn listener_ended(&mut self) -> Result<End, Failure> {
        match self.listener.progress().ended {
            Some(Ended::MaxSize) => Ok(End {
                reason: EndReason::MaxSize,
                message: "the capture has its full size".into(),
            }),
            _ => {
                // The summary says what the disk said; a closed pipe is no error.
                Ok(End { reason: EndReason::Failed, message: String::new() })
            }
        }
    }

    fn target_ended(&self) -> String {
        format!("process {} ended", self.session.target().pid())
    }

    /// Looks at every buffer's mailbox; an end, if there is nothing left to listen to.
    fn look(&mut self) -> Option<End> {
        let mut last = None;
        for index in 0..self.told.len() {
            let checked = self.session.check(index);
            self.listener.dropped(index, dropped(checked.dropped));
            if let Some(errno) = checked.unmappable {
                self.ok = false;
                let message = tell::unmappable(&self.session.attached()[index], errno);
                self.status.clear();
                report::error(&message);
                return Some(End { reason: EndReason::Failed, message: String::new() });
            }
            if let Some(ending) = checked.ending {
                let it = &self.session.attached()[index];
                let (reason, message) = tell::ended(self.session.target(), it, ending);
                if !std::mem::replace(&mut self.told[index], true) && self.told.len() > 1 {
                    self.status.clear();
                    report::note(&message);
                }
                last = Some(End { reason, message });
            }
        }
        self.show();
        last.filter(|_| self.told.iter().all(|&told| told))
    }

    fn show(&mut self) {
        let progress = self.listener.progress();
        let seconds = self.started.elapsed().as_secs_f64();
        if progress.captured == 0 && !self.waiting_told && seconds > 1.0 {
            self.waiting_told = true;
            if !self.args.quiet {
                self.status.clear();
                report::note(
                    "waiting for the first frame: the program has not reached a write yet",
                );
            }
        }
        let rate = progress.captured as f64 / seconds.max(0.001);
        self.status.show(format_args!(
            "{} frames, {}/s, {} lost, {}",
            grouped(progress.captured),
            grouped(rate as u64),
            grouped(progress.lost.total()),
            bytes(progress.bytes)
        ));
    }
}

struct Ready {
    signal: bool,
    listener: bool,
    tick: bool,
    target: bool,
    deadline: bool,
}

/// What the listener needs to know of an attached buffer.
fn feed(target: &Target, it: &Attached) -> Feed {
    let geometry = it.plan.geometry;
    let (uid, _) = target.owner();
    Feed {
        source: ppt_listener::Source {
            schema_json: it.buffer.schema_json.clone(),
            schema_hash: it.buffer.schema_hash,
            buffer: it.buffer.schema.buffer.clone(),
            object: it.buffer.object.clone(),
            object_build_id: it.buffer.build_id.clone(),
            process: ppt_listener::Process {
                pid: target.pid() as u32,
                ns_pid: target.ns_pid() as u32,
                start_time: target.start_time(),
                uid,
                comm: target.comm().into(),
                exe: target.exe(),
                namespaces: target.namespaces(),
                ..Default::default()
            },
            segments: vec![ListedSegment {
                nonce: it.segment.nonce(),
                rings: geometry.rings(),
                slots: geometry.slots() as u32,
                stride: geometry.stride(),
            }],
            tags: it.buffer.schema.tags.clone(),
            ..Default::default()
        },
        segment: it.segment.clone(),
        first: it.first.clone(),
        unattended: it
            .unattended
            .iter()
            .map(|&(ring, first_seq, count)| Unattended { ring, first_seq, count })
            .collect(),
        populated: it.plan.populate,
        alive: target.thread_probe().map(|probe| Box::new(probe) as _),
    }
}

fn dropped(it: ppt_agent::Dropped) -> ppt_listener::Dropped {
    ppt_listener::Dropped { no_ring: it.no_ring, nested: it.nested, not_mapped: it.not_mapped }
}
