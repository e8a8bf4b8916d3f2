//! A capture that is being written: agent and listener, joined.
//!
//! Processes come ([`Live::add`]) and go while it runs. One poll loop, the caller's: its own
//! descriptors, and here the ends of the processes (pidfd), a clock (timerfd), and the listener,
//! when it ends by itself. The order of the end is the order of the protocol: gates off, last
//! drain, end of the capture, memory and claims given back.

mod feed;
mod grow;
mod tell;

use std::fs::File;
use std::os::fd::{AsFd, BorrowedFd};
use std::path::Path;
use std::time::{Duration, Instant};

use nix::poll::{PollFd, PollFlags, PollTimeout, poll};
use nix::sys::time::TimeSpec;
use nix::sys::timerfd::{ClockId, Expiration, TimerFd, TimerFlags, TimerSetTimeFlags};
use ppt_agent::{
    Allow, Buffer, ClockChoice, Ending, Limits, Options, SegmentChoice, SegmentKind, Session,
    StampClock,
};
use ppt_listener::{Dropped, EndReason, Ended, Listener, Rate, Rotation};

use crate::args;
use crate::code::Code;
use crate::failure::{Failure, failed};
use crate::measure::{Slots, bytes, grouped};
use crate::output::Output;
use crate::parts::Parts;
use crate::report::{self, StatusLine};

/// What captures say that they were written by.
const TOOL: &str = concat!("ppt ", env!("CARGO_PKG_VERSION"));
/// How often mailboxes are looked at.
const LOOK: Duration = Duration::from_secs(1);
/// The first looks come sooner: a segment that cannot be mapped shows at the first frame.
const FIRST_LOOK: Duration = Duration::from_millis(100);
/// While a target is to make its segment: frames sit in it until it is fetched.
const AWAITING: Duration = Duration::from_millis(10);
/// The same in the first second, when a busy target makes it.
const AWAITING_AT_FIRST: Duration = Duration::from_millis(1);

/// The file that frames go to first, and how they go on.
pub(crate) struct Outputs {
    first: Output,
    rotation: Option<Rotation<File>>,
}

impl Outputs {
    /// Opens what the command line asks for.
    pub(crate) fn open(args: &args::Capture) -> Result<Self, Failure> {
        let Some(every) = args.rotate else {
            let first = Output::open(&args.output, args.force)?;
            return Ok(Self { first, rotation: None });
        };
        if args.output == Path::new("-") {
            return Err(Failure::usage(Code::StdoutTaken, "--rotate makes files; stdout is one"));
        }
        let (parts, mut first) = Parts::open(&args.output, args.force, args.keep)?;
        first.rename(parts.name());
        Ok(Self { first, rotation: Some(parts.rotation(every, TOOL)) })
    }

    /// Whether more files will be made on the way.
    pub(crate) fn are_many(&self) -> bool {
        self.rotation.is_some()
    }

    /// Removes it again: nothing was captured.
    pub(crate) fn discard(self) {
        self.first.discard();
    }
}

/// Whose capture it is: decides what is worth a line.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Kind {
    /// Of one process: when that ends, so does the capture, which says why.
    One,
    /// Of several processes: each end is news.
    Several,
    /// Of a command, which has the terminal; its processes come and go.
    Command,
}

pub(crate) struct Live<'a> {
    options: &'a args::Capture,
    kind: Kind,
    listener: Listener,
    output: Output,
    members: Vec<Member>,
    /// Processes that live, but are of the capture no more; their memory is given back at the end.
    finished: Vec<Session>,
    /// What each feed refused, as last seen.
    dropped: Vec<Dropped>,
    /// The name of each feed.
    names: Vec<String>,
    ticks: TimerFd,
    deadline: Option<TimerFd>,
    status: StatusLine,
    waiting_told: bool,
    started: Instant,
    /// How the last member came to go.
    last: Option<End>,
    ok: bool,
}

/// An attached process. One that has loaded a plugin since is a member twice.
struct Member {
    session: Session,
    /// The feed of its first buffer.
    feed: usize,
    /// Buffers whose end has been told.
    told: Vec<bool>,
}

/// Why a capture ends.
pub(crate) struct End {
    pub(crate) reason: EndReason,
    pub(crate) message: String,
}

impl End {
    pub(crate) fn new(reason: EndReason, message: impl Into<String>) -> Self {
        Self { reason, message: message.into() }
    }
}

/// What a wait found.
pub(crate) struct Ready {
    listener: bool,
    crowded: bool,
    tick: bool,
    deadline: bool,
    members: Vec<bool>,
    /// The caller's descriptors.
    pub(crate) others: Vec<bool>,
}

/// What was allowed on the command line.
pub(crate) fn allowed(allow: &[args::Allow]) -> Allow {
    Allow {
        traced: allow.contains(&args::Allow::Traced),
        seccomp: allow.contains(&args::Allow::Seccomp),
        foreign_claim: allow.contains(&args::Allow::ForeignClaim),
    }
}

/// How to attach, as the command line says.
pub(crate) fn attach_options(args: &args::Capture) -> Options {
    Options {
        limits: Limits {
            slots: match args.slots {
                Some(Slots::Exactly(slots)) => Some(slots),
                Some(Slots::Auto) | None => None,
            },
            grow: args.slots == Some(Slots::Auto),
            memory: args.memory,
        },
        allow: allowed(&args.allow),
        clock: match args.clock {
            args::Clock::Auto => ClockChoice::Auto,
            args::Clock::Tsc => ClockChoice::Ticks,
            args::Clock::Monotonic => ClockChoice::Monotonic,
        },
        segment: match args.segment {
            args::Segment::Auto => SegmentChoice::Auto,
            args::Segment::Sysv => SegmentChoice::SysV,
            args::Segment::Memfd => SegmentChoice::Memfd,
        },
    }
}

/// Whether the system does not trust the CPU's counter.
fn distrusts_ticks(session: &Session) -> bool {
    let distrusted = |it: &Option<StampClock>| matches!(it, Some(StampClock::Distrusted(_)));
    session.attached().iter().any(|it| distrusted(&it.clock))
}

impl<'a> Live<'a> {
    /// Begins a capture of `sessions`, which are attached. On failure nothing is left of either.
    pub(crate) fn start(
        options: &'a args::Capture,
        kind: Kind,
        mut sessions: Vec<Session>,
        Outputs { first: output, rotation }: Outputs,
    ) -> Result<Self, Failure> {
        let begun = timers(options).and_then(|timers| {
            let feeds = sessions.iter().flat_map(feed::feeds).collect();
            let listener = ppt_listener::Options {
                max_size: options.max_size,
                rate: match options.rate {
                    args::Rate::Peak => Rate::Peak,
                    args::Rate::Paper => Rate::Paper,
                },
                distrust_ticks: sessions.iter().any(distrusts_ticks),
                ..Default::default()
            };
            let header = ppt_listener::header(TOOL);
            let named = |error: &dyn std::fmt::Display| format!("{}: {error}", output.name());
            let file = output.file.try_clone();
            let file = file.map_err(|error| Failure::failed(Code::System, named(&error)))?;
            let started = Listener::rotating(file, header, feeds, listener, rotation);
            let started = started.map_err(|error| Failure::failed(error.code(), named(&error)))?;
            Ok((timers, started))
        });
        let ((ticks, deadline), listener) = match begun {
            Ok(begun) => begun,
            Err(error) => {
                sessions.into_iter().for_each(end_at_once);
                output.discard();
                return Err(error);
            }
        };
        let mut live = Self {
            status: StatusLine::new(!options.quiet && kind != Kind::Command),
            options,
            kind,
            listener,
            output,
            members: Vec::new(),
            finished: Vec::new(),
            dropped: Vec::new(),
            names: Vec::new(),
            ticks,
            deadline,
            // What a command has to say is its own.
            waiting_told: kind == Kind::Command,
            started: Instant::now(),
            last: None,
            ok: true,
        };
        sessions.drain(..).for_each(|session| live.enter(session));
        Ok(live)
    }

    /// Adds a process that has been attached.
    pub(crate) fn add(&mut self, session: Session) -> Result<(), Failure> {
        match self.listener.add(feed::feeds(&session).collect()) {
            Ok(()) => {
                self.enter(session);
                Ok(())
            }
            Err(error) => {
                end_at_once(session);
                Err(error.into())
            }
        }
    }

    /// A session whose feeds the listener has.
    fn enter(&mut self, session: Session) {
        let count = session.attached().len();
        self.status.clear();
        tell::attached(self.options, &session);
        let feed = self.dropped.len();
        self.dropped.resize(feed + count, Dropped::default());
        self.names.extend(session.attached().iter().map(|it| it.buffer.name.clone()));
        self.members.push(Member { session, feed, told: vec![false; count] });
        self.look_again(FIRST_LOOK);
    }

    /// Sets the clock for the next look: after `longest`, or sooner where a segment is awaited.
    fn look_again(&self, longest: Duration) {
        let after = match self.members.iter().any(|it| it.session.awaits()) {
            true if self.started.elapsed() < LOOK => AWAITING_AT_FIRST,
            true => AWAITING,
            false => longest,
        };
        // It was set before, and so it can be set again.
        let _ = set(&self.ticks, after, Some(LOOK));
    }

    /// Whether a buffer that was just found in process `pid` is captured already.
    pub(crate) fn holds(&self, pid: i32, buffer: &Buffer) -> bool {
        self.members.iter().any(|it| it.session.target().pid() == pid && it.session.holds(buffer))
    }

    /// Whether process `pid` is captured.
    pub(crate) fn has(&self, pid: i32) -> bool {
        self.members.iter().any(|it| it.session.target().pid() == pid)
    }

    /// Whether anything was ever attached.
    pub(crate) fn is_empty(&self) -> bool {
        self.dropped.is_empty()
    }

    /// Whether it has gone on long enough for a program to have said hello.
    pub(crate) fn is_under_way(&self) -> bool {
        self.started.elapsed() >= LOOK
    }

    /// Something went wrong: the exit code will say so.
    pub(crate) fn blemish(&mut self) {
        self.ok = false;
    }

    /// Waits until there is something to do, here or at one of `others`.
    pub(crate) fn wait(&self, others: &[BorrowedFd]) -> Result<Ready, Failure> {
        let pidfds: Vec<_> = self.members.iter().map(|it| it.session.pidfd()).collect();
        let watch = |fd| PollFd::new(fd, PollFlags::POLLIN);
        let mut fds = vec![watch(self.listener.wake()), watch(self.ticks.as_fd())];
        let crowded = if self.grows() { PollFlags::POLLIN } else { PollFlags::empty() };
        fds.push(PollFd::new(self.listener.crowded(), crowded));
        fds.extend(self.deadline.as_ref().map(|it| watch(it.as_fd())));
        let first_other = fds.len();
        fds.extend(others.iter().copied().map(watch));
        fds.extend(pidfds.iter().flatten().copied().map(watch));
        match poll(&mut fds, PollTimeout::NONE) {
            Ok(_) | Err(nix::Error::EINTR) => {}
            Err(error) => return Err(failed("wait")(error)),
        }
        let mut ready = fds.iter().map(|fd| fd.any().unwrap_or(false));
        let mut next = || ready.next().unwrap_or(false);
        let (listener, tick, crowded) = (next(), next(), next());
        let deadline = first_other > 3 && next();
        let others = others.iter().map(|_| next()).collect();
        // Where there is no pidfd, a look tells.
        let members = pidfds.iter().map(|fd| fd.is_some() && next()).collect();
        Ok(Ready { listener, crowded, tick, deadline, members, others })
    }

    /// Does what there is to do; a reason to end, if there is one.
    pub(crate) fn turn(&mut self, ready: &Ready) -> Option<End> {
        if ready.listener {
            return Some(self.listener_ended());
        }
        for index in (0..ready.members.len()).rev().filter(|&index| ready.members[index]) {
            let pid = self.members[index].session.target().pid();
            let end = End::new(EndReason::Exited, format!("process {pid} ended"));
            self.leave(index, end, true);
        }
        if ready.deadline {
            return Some(End::new(EndReason::Duration, ""));
        }
        if ready.crowded {
            self.grow();
        }
        if ready.tick {
            let _ = self.ticks.wait();
            for index in (0..self.members.len()).rev() {
                self.look(index);
            }
            self.show();
            self.look_again(LOOK);
        }
        None
    }

    /// The end of a capture whose last process has gone.
    pub(crate) fn deserted(&mut self) -> Option<End> {
        let last = self.last.take_if(|_| self.members.is_empty())?;
        Some(match self.kind {
            Kind::One | Kind::Command => last,
            Kind::Several => End::new(last.reason, "every process has ended"),
        })
    }

    /// Looks at the mailboxes of process `pid`, which may be another program by now.
    pub(crate) fn look_at(&mut self, pid: i32) {
        for index in (0..self.members.len()).rev() {
            if self.members[index].session.target().pid() == pid {
                self.look(index);
            }
        }
    }

    /// Looks at the mailbox of every buffer of a member.
    fn look(&mut self, index: usize) {
        let member = &mut self.members[index];
        let mut over = None;
        for buffer in 0..member.told.len() {
            let checked = member.session.check(buffer);
            let refused = feed::dropped(checked.dropped);
            self.dropped[member.feed + buffer] = refused;
            self.listener.dropped(member.feed + buffer, refused);
            let it = &member.session.attached()[buffer];
            if let Some(why) = checked.ticks_given_up {
                self.listener.distrust_ticks();
                self.status.clear();
                report::warning(Code::TicksGivenUp, tell::ticks_given_up(&it.buffer.name, &why));
            }
            if let Some(errno) = checked.fell_over.filter(|_| self.options.verbose) {
                self.status.clear();
                report::note(tell::fell_over(it, errno));
            }
            checked.left.iter().for_each(|&nonce| self.listener.leave(member.feed + buffer, nonce));
            if let Some((errno, nonce)) = checked.went_back {
                self.listener.leave(member.feed + buffer, nonce);
                self.status.clear();
                report::warning(Code::RingsStay, tell::went_back(it, errno));
            }
            if let Some(error) = checked.not_fetched {
                self.ok = false;
                self.status.clear();
                report::error(error.code(), &error);
                return self.leave(index, End::new(EndReason::Failed, ""), false);
            }
            if self.listener.truncated(member.feed + buffer) {
                // The summary says so.
                if member.told.len() == 1 {
                    return self.leave(index, End::new(EndReason::Failed, ""), false);
                }
            }
            if let Some(errno) = checked.unmappable {
                self.ok = false;
                self.status.clear();
                report::error(Code::CannotMap, tell::unmappable(it, errno));
                return self.leave(index, End::new(EndReason::Failed, ""), false);
            }
            if let Some(ending) = checked.ending {
                let (reason, message) = tell::ended(member.session.target(), it, ending);
                if !std::mem::replace(&mut member.told[buffer], true) && member.told.len() > 1 {
                    self.status.clear();
                    report::note(&message);
                }
                over = Some((ending, End::new(reason, message)));
            }
        }
        if let Some((ending, end)) = over.filter(|_| member.told.iter().all(|&told| told)) {
            self.leave(index, end, matches!(ending, Ending::Exited | Ending::Exec));
        }
    }

    /// A member goes; its memory at once if its address space is `gone`.
    fn leave(&mut self, index: usize, end: End, gone: bool) {
        let mut member = self.members.remove(index);
        self.close(&mut member);
        let mut made = member.session.attached().iter().filter(|it| it.kind == SegmentKind::Memfd);
        for it in made.clone().filter(|it| gone && it.awaited) {
            self.status.clear();
            report::warning(Code::NotFetched, tell::never_fetched(it));
        }
        // Children may have inherited the descriptor of what it made: its memory is given back after
        // the last drain.
        let gone = gone && made.next().is_none();
        let news = match self.kind {
            Kind::One => false,
            Kind::Several => !end.message.is_empty() && !self.options.quiet,
            Kind::Command => !end.message.is_empty() && self.options.verbose,
        };
        if news {
            self.status.clear();
            report::note(&end.message);
        }
        self.last = Some(end);
        if gone {
            let feeds = member.feed..member.feed + member.told.len();
            feeds.for_each(|feed| self.listener.retire(feed));
        } else {
            self.finished.push(member.session);
        }
    }

    /// Closes the gates of a member and takes its last counters.
    fn close(&mut self, member: &mut Member) {
        member.session.gate_off();
        for buffer in 0..member.told.len() {
            let refused = feed::dropped(member.session.check(buffer).dropped);
            self.dropped[member.feed + buffer] = refused;
            self.listener.dropped(member.feed + buffer, refused);
        }
    }

    fn listener_ended(&self) -> End {
        match self.listener.progress().ended {
            Some(Ended::MaxSize) => End::new(EndReason::MaxSize, "the capture has its full size"),
            // The summary says what the disk said; a closed pipe is no error.
            _ => End::new(EndReason::Failed, ""),
        }
    }

    fn show(&mut self) {
        let progress = self.listener.progress();
        let seconds = self.started.elapsed().as_secs_f64();
        if progress.captured == 0 && !self.waiting_told && seconds > 1.0 {
            self.waiting_told = true;
            if !self.options.quiet {
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

    /// Ends it; whether all went well. Returns the processes that were still captured, too.
    pub(crate) fn finish(mut self, end: Result<End, Failure>) -> (bool, Vec<(i32, String)>) {
        let end = end.unwrap_or_else(|failure| {
            self.ok = false;
            End::new(EndReason::Failed, failure.message())
        });
        let mut members = std::mem::take(&mut self.members);
        members.iter_mut().for_each(|member| self.close(member));
        self.status.clear();
        if !end.message.is_empty() && !self.options.quiet {
            report::note(&end.message);
        }
        let summary = self.listener.finish(end.reason, end.message, self.dropped);
        let mut left = Vec::new();
        for member in members {
            let target = member.session.target();
            if !target.ended() {
                left.push((target.pid(), target.comm().to_owned()));
            }
            self.finished.push(member.session);
        }
        self.finished.into_iter().for_each(Session::close);
        left.dedup();
        let name = self.output.name();
        let ok = self.ok && tell::problems(&name, &self.names, &summary);
        if !self.options.quiet {
            tell::summary(&name, &summary, self.started.elapsed());
        }
        (ok, left)
    }

    /// Ends a capture of nothing, and removes the file.
    pub(crate) fn discard(self) -> bool {
        let _ = self.listener.finish(EndReason::Stopped, String::new(), Vec::new());
        self.output.discard();
        self.ok
    }
}

/// Detaches before anything was captured.
pub(crate) fn end_at_once(mut session: Session) {
    session.gate_off();
    session.close();
}

fn timers(options: &args::Capture) -> Result<(TimerFd, Option<TimerFd>), Failure> {
    let ticks = timer(FIRST_LOOK, Some(LOOK))?;
    Ok((ticks, options.duration.map(|it| timer(it, None)).transpose()?))
}

pub(crate) fn timer(after: Duration, every: Option<Duration>) -> Result<TimerFd, Failure> {
    let fail = failed("set a timer");
    let timer =
        TimerFd::new(ClockId::CLOCK_MONOTONIC, TimerFlags::TFD_CLOEXEC | TimerFlags::TFD_NONBLOCK)
            .map_err(&fail)?;
    set(&timer, after, every).map_err(&fail)?;
    Ok(timer)
}

fn set(timer: &TimerFd, after: Duration, every: Option<Duration>) -> nix::Result<()> {
    let first = TimeSpec::from_duration(after);
    let expiration = match every {
        Some(every) => Expiration::IntervalDelayed(first, TimeSpec::from_duration(every)),
        None => Expiration::OneShot(first),
    };
    timer.set(expiration, TimerSetTimeFlags::empty())
}
