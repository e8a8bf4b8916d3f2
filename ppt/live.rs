//! A running capture, which joins agent and listener.
//!
//! Processes come ([`Live::add`]) and go while it runs. The caller runs the only poll loop. It
//! waits for the caller's own descriptors, the ends of the processes (pidfd), a clock (timerfd),
//! and the listener, in case that ends by itself. The protocol fixes the order at the end: close
//! the gates, drain the rings, end the capture, give back memory and claims.

mod answer;
mod begin;
mod chosen;
mod clock;
mod detached;
mod door;
mod feed;
mod filter;
mod flight;
mod follow;
mod grow;
mod io_uring;
mod kernel;
mod look;
mod modules;
mod options;
mod outputs;
mod progress;
mod ready;
mod rounds;
mod tell;
mod thread_names;
mod timer;
mod unwind;
mod wait;
mod watch;

use std::collections::BTreeSet;
use std::ops::Range;
use std::sync::Arc;
use std::time::{Duration, Instant};

use nix::sys::timerfd::TimerFd;
use ppt_agent::{AttachedBuffer, Buffer, BufferEnd, Origin, SegmentKind, Session, Target};
use ppt_listener::{Dropped, EndReason, Flight, Listener, TriggerCause};

use crate::args;
use crate::choice::Choice;
use crate::code::Code;
use crate::failure::Failure;
use crate::metrics::{MetricsListener, PublishedMetrics};
use crate::report::{self, StatusLine};
use detached::Detached;
use door::Door;
pub(crate) use filter::check_where;
pub(crate) use flight::check_flight;
pub(crate) use follow::{Follow, Guest, is_gone};
use io_uring::IoUringWatch;
pub(crate) use kernel::KernelWatch;
use modules::MemberModules;
pub(crate) use options::{CaptureForm, allowed, attach_options, check_size};
pub(crate) use outputs::Outputs;
pub(crate) use ready::WaitResult;
use thread_names::{MemberNames, NamesDue};
pub(crate) use timer::timer;
use timer::{CHECK_INTERVAL, FIRST_CHECK_INTERVAL};

pub(crate) struct Live<'a> {
    options: &'a args::CaptureArgs,
    kind: CaptureForm,
    listener: Listener,
    outputs: Outputs,
    members: Vec<Member>,
    /// Attaches to further processes.
    follow: Option<Follow>,
    /// Captures kernel activity of the processes.
    kernel: Option<KernelWatch>,
    /// Keeps frames in memory instead of writing them.
    flight: Option<Flight>,
    /// The selection of items to write.
    choice: Arc<Choice>,
    /// The socket on which other commands reach this session.
    door: Option<Door>,
    /// The server that shows its metrics.
    metrics: Option<PublishedMetrics>,
    /// Live processes that are no longer captured. ppt gives back their memory at the end.
    finished: Vec<Session>,
    /// Processes that are no longer captured, because they were detached or have ended. ppt gives
    /// back their memory and claims once the rings are drained; other processes may still hold that
    /// memory.
    draining: Vec<Session>,
    detached: Detached,
    /// Pending messages of `--where`.
    remarks: filter::Remarks,
    /// The drops of each feed, as last read.
    dropped: Vec<Dropped>,
    /// The name of each feed.
    names: Vec<String>,
    /// When the names of threads are read next.
    names_due: NamesDue,
    /// Whether a process reads and writes past the preloaded library.
    io_uring: IoUringWatch,
    ticks: TimerFd,
    deadline: Option<TimerFd>,
    status: StatusLine,
    waiting_told: bool,
    started: Instant,
    /// Number of processes that were ever captured.
    processes: usize,
    /// Whether an experiment runs, which needs what is written as it is.
    has_experiment: bool,
    /// Whether a process that is no longer captured was still alive then.
    outlived: bool,
    /// Why the last member left.
    last: Option<CaptureEnd>,
    /// The last message about a member that left.
    said: String,
    ok: bool,
}

/// An attached process. A process that has loaded a plugin since is a second member.
struct Member {
    session: Session,
    /// The origin that its children share, if ppt follows forks.
    origin: Option<Origin>,
    /// The feed of its first buffer.
    feed: usize,
    /// Detached buffers of a process whose other buffers are captured. ppt gives them back once
    /// they are drained.
    closing: Vec<usize>,
    /// It waited for its session before its first frame.
    from_start: bool,
    /// It is a child that was attached to while it ran.
    forked: bool,
    /// Whether the consequences of its end, if it has ended, are known.
    mourned: bool,
    /// The names of its threads.
    names: MemberNames,
    /// Its executable mappings.
    modules: MemberModules,
}

impl Member {
    /// The feeds of its buffers.
    fn feeds(&self) -> Range<usize> {
        self.feed..self.feed + self.session.attached().len()
    }

    /// Reads the names of its threads, and writes changes to the capture.
    fn name(&mut self, listener: &Listener) {
        self.names.report(self.feed, &self.session, listener);
    }

    /// Reads its executable mappings, if that is due, and writes changes to the capture. Returns whether
    /// there were any.
    fn look_at_modules(&mut self, listener: &Listener) -> bool {
        self.modules.report(self.feed, &self.session, listener)
    }
}

/// The result of a capture.
pub(crate) struct Finished {
    /// Nothing failed.
    pub(crate) ok: bool,
    /// Pid and name of the processes that were captured to the end.
    pub(crate) still_running: Vec<(i32, String)>,
}

/// Why a capture ends.
pub(crate) struct CaptureEnd {
    pub(crate) reason: EndReason,
    pub(crate) message: String,
}

impl CaptureEnd {
    pub(crate) fn new(reason: EndReason, message: impl Into<String>) -> Self {
        Self { reason, message: message.into() }
    }
}

impl<'a> Live<'a> {
    /// Starts a capture of `sessions`, which are attached, or of none yet. On failure, it detaches
    /// from the sessions, and an existing file with the capture's name is unchanged.
    pub(crate) fn start(
        options: &'a args::CaptureArgs,
        kind: CaptureForm,
        mut sessions: Vec<Session>,
        (follow, kernel): (Option<Follow>, Option<KernelWatch>),
        mut outputs: Outputs,
    ) -> Result<Self, Failure> {
        let name = outputs.name();
        let begun = timer::timers(options).and_then(|timers| {
            let feeds = sessions.iter().flat_map(|session| feed::feeds(session, false)).collect();
            let (begun, flight, remarks) = begin::begin(options, &sessions, feeds, &outputs)?;
            let publish = || {
                if sessions.is_empty() {
                    Ok(())
                } else {
                    outputs.publish().map_err(std::io::Error::other)
                }
            };
            let failed = |error| Failure::listener(&name, error);
            Ok((timers, begun.start_when(publish).map_err(failed)?, flight, remarks))
        });
        let ((ticks, deadline), listener, flight, remarks) = match begun {
            Ok(begun) => begun,
            Err(error) => {
                sessions.into_iter().for_each(end_at_once);
                return Err(error);
            }
        };
        let mut live = Self {
            status: StatusLine::new(!options.quiet && kind != CaptureForm::Command),
            options,
            kind,
            listener,
            outputs,
            members: Vec::new(),
            follow,
            kernel,
            choice: Arc::new(Choice::new(&options.only, &options.except)),
            door: opened(Door::open(), flight.is_some() || !options.quiet),
            metrics: None,
            flight,
            finished: Vec::new(),
            draining: Vec::new(),
            detached: Detached::default(),
            remarks,
            dropped: Vec::new(),
            names: Vec::new(),
            names_due: NamesDue::default(),
            io_uring: IoUringWatch::default(),
            ticks,
            deadline,
            // The command itself writes to the terminal.
            waiting_told: kind == CaptureForm::Command,
            started: Instant::now(),
            processes: 0,
            has_experiment: false,
            outlived: false,
            last: None,
            said: String::new(),
            ok: true,
        };
        sessions.drain(..).for_each(|session| live.enter(session, false));
        (0..live.members.len()).for_each(|member| live.watch_kernel(member));
        Ok(live)
    }

    /// Shows the numbers of the capture through `metrics` from now on.
    pub(crate) fn publish(&mut self, metrics: Option<MetricsListener>) -> Result<(), Failure> {
        let (Some(metrics), Some(tallies)) = (metrics, self.listener.tallies()) else {
            return Ok(());
        };
        let host = outputs::header().host;
        let is_flight = self.flight.is_some();
        self.metrics = Some(metrics.publish(tallies, host, is_flight)?);
        Ok(())
    }

    /// Adds an attached process. `from_start`: it waits, and has written no frame yet.
    pub(crate) fn add(&mut self, session: Session, from_start: bool) -> Result<(), Failure> {
        if let Err(error) = self.outputs.publish() {
            end_at_once(session);
            return Err(error.into());
        }
        match self.listener.add(feed::feeds(&session, from_start).collect()) {
            Ok(()) => {
                self.enter(session, from_start);
                self.watch_kernel(self.members.len() - 1);
                Ok(())
            }
            Err(error) => {
                let (pid, comm) = (session.target().pid(), session.target().comm().to_owned());
                end_at_once(session);
                let what = format!("process {pid} ({comm}) is not captured: {error}");
                Err(Failure::failed(error.code(), what))
            }
        }
    }

    /// Adds a session with feeds that the listener already has.
    fn enter(&mut self, session: Session, from_start: bool) {
        let count = session.attached().len();
        self.status.clear();
        // With `--quiet`, `--follow` prints only the first `attached:` line, which scripts wait
        // for.
        if self.kind != CaptureForm::Family || !self.options.quiet || self.is_empty() {
            tell::attached(self.options, self.kind, &session);
        }
        session.attached().iter().for_each(|buffer| self.choice.note(&buffer.buffer.schema));
        let origin = self.follow.as_mut().and_then(|follow| follow.enter(&session));
        let feed = self.dropped.len();
        self.dropped.resize(feed + count, Dropped::default());
        self.names.extend(session.attached().iter().map(|buffer| buffer.buffer.name.clone()));
        self.processes += usize::from(!self.has(session.target().pid()));
        self.members.push(Member {
            session,
            origin,
            feed,
            from_start,
            forked: false,
            mourned: false,
            closing: Vec::new(),
            names: MemberNames::default(),
            modules: MemberModules::default(),
        });
        self.tell_flips(self.members.len() - 1);
        if count > 0 {
            self.state_facts(self.members.len() - 1);
        }
        self.look_for_io_uring(self.members.len() - 1..);
        self.look_again(FIRST_CHECK_INTERVAL);
    }

    /// Writes what is known of a member's process to the capture.
    fn state_facts(&mut self, member: usize) {
        let member = &mut self.members[member];
        member.name(&self.listener);
        let _ = member.look_at_modules(&self.listener);
    }

    /// Whether this buffer of a process is already captured, or was detached.
    pub(crate) fn holds(&self, target: &Target, buffer: &Buffer) -> bool {
        let pid = target.pid();
        self.members
            .iter()
            .any(|member| member.session.target().pid() == pid && member.session.holds(buffer))
            || self.detached.has(target, buffer, self.has(pid))
    }

    /// Whether process `pid` is captured.
    pub(crate) fn has(&self, pid: i32) -> bool {
        self.members.iter().any(|member| member.session.target().pid() == pid)
    }

    /// Whether nothing was ever attached.
    pub(crate) fn is_empty(&self) -> bool {
        self.dropped.is_empty()
    }

    /// Handles what is ready; returns the reason if the capture ends.
    pub(crate) fn turn(&mut self, ready: &WaitResult) -> Option<CaptureEnd> {
        if ready.listener {
            return Some(self.listener_ended());
        }
        // This precedes the removal of ended processes, because ppt knows their children by them.
        if ready.hello {
            self.receive();
        }
        for &feed in &ready.ended {
            // A process that said hello may have just been removed.
            let Some(index) = self.members.iter().position(|member| member.feed == feed) else {
                continue;
            };
            self.leave_ended(index);
        }
        self.stand_back();
        if ready.deadline {
            return Some(CaptureEnd::new(EndReason::Duration, ""));
        }
        if ready.undersized {
            self.grow();
        }
        if ready.door {
            self.open_door();
        }
        if ready.tick {
            let _ = self.ticks.wait();
            self.look_at_all();
            let (members, listener) = (&mut self.members, &self.listener);
            let feeds = self.dropped.len();
            let mut stated: Vec<_> =
                members.iter_mut().filter(|member| member.feed < feeds).collect();
            for member in &mut stated {
                if member.look_at_modules(listener)
                    && let Some(kernel) = &mut self.kernel
                {
                    kernel.map_code(member.session.target());
                }
            }
            self.names_due.look(|| stated.iter_mut().for_each(|member| member.name(listener)));
            if self.io_uring.is_due() {
                self.look_for_io_uring(0..);
            }
            self.stand_back();
            self.close_drained();
            if self.follow.as_ref().is_some_and(Follow::is_due) {
                self.look_around();
            }
            self.tell_news();
            self.show();
            self.look_again(self.patience());
        }
        None
    }

    /// Time until processes are checked again.
    fn patience(&self) -> Duration {
        let patience = self.follow.as_ref().map_or(CHECK_INTERVAL, Follow::patience);
        if self.members.iter().any(|member| member.names.is_unfinished()) {
            return patience.min(self.names_due.pause().max(FIRST_CHECK_INTERVAL));
        }
        patience
    }

    /// Reports changes of the output file, each once.
    fn tell_news(&mut self) {
        for (code, message) in self.outputs.news() {
            self.ok = false;
            self.status.clear();
            report::error(code, message);
        }
        if let Some(kernel) = self.kernel.as_mut().filter(|kernel| kernel.has_news()) {
            self.status.clear();
            kernel.tell_news();
        }
        if let Some(message) = self.metrics.as_mut().and_then(PublishedMetrics::ended) {
            self.status.clear();
            report::warning(Code::MetricsEnded, message);
        }
        for message in filter::messages(&self.remarks) {
            self.status.clear();
            report::warning(filter::code(), message);
        }
        if let Some(flight) = &self.flight {
            // Whatever it says is longer than the line.
            self.status.clear();
            self.ok &= flight::report(flight, self.options.quiet);
        }
    }

    /// The number of captured processes that have not ended. If it is 0, no child of them that
    /// could be captured is alive, whether it has run yet or not.
    pub(crate) fn processes(&mut self) -> usize {
        // The last events received may be older than the ends.
        for index in (0..self.members.len()).rev() {
            if self.members[index].session.target().ended() {
                self.leave_ended(index);
            }
        }
        if self.members.is_empty() {
            self.receive();
            self.adopt();
        }
        let pids = self.members.iter().map(|member| member.session.target().pid());
        pids.collect::<BTreeSet<_>>().len()
    }

    /// Whether a process may say hello soon: it belongs to the command and has not yet executed its
    /// program.
    pub(crate) fn awaits_hellos(&mut self) -> bool {
        let awaits = self.follow.as_ref().is_some_and(Follow::awaits_strays);
        if awaits {
            self.look_again(FIRST_CHECK_INTERVAL);
        }
        awaits
    }

    /// The end of a capture that has no process left.
    pub(crate) fn deserted(&mut self) -> Option<CaptureEnd> {
        let last = self.last.take()?;
        if !self.members.is_empty() || self.processes() > 0 {
            self.last = Some(last);
            return None;
        }
        Some(match (self.kind, self.outlived) {
            (CaptureForm::One, _) => last,
            (_, false) => CaptureEnd::new(last.reason, "every process has ended"),
            (_, true) if self.processes == 1 => last,
            (_, true) => CaptureEnd::new(last.reason, "no process is captured any more"),
        })
    }

    /// Removes a member whose process has ended.
    fn leave_ended(&mut self, index: usize) {
        let pid = self.members[index].session.target().pid();
        let end = CaptureEnd::new(EndReason::Exited, format!("process {pid} ended"));
        self.leave(index, end, Some(BufferEnd::Exited));
    }

    /// Removes a member. If its address space is gone, ppt gives back its memory at once; if it was
    /// detached, once the rings are drained. `why` is the reason if its buffers cannot be captured
    /// any more.
    fn leave(&mut self, index: usize, end: CaptureEnd, why: Option<BufferEnd>) {
        self.mourn(index, why == Some(BufferEnd::Exited));
        let gone = matches!(why, Some(BufferEnd::Exited | BufferEnd::Exec));
        let detached = why.is_some_and(is_detached);
        let mut member = self.members.remove(index);
        self.close(&mut member);
        let pid = member.session.target().pid();
        self.unwatch_kernel(pid);
        if why == Some(BufferEnd::Exited) && !self.has(pid) {
            self.choice.forget(pid);
        }
        let news = match self.kind {
            CaptureForm::One => false,
            _ if detached => !self.options.quiet,
            CaptureForm::Several => !end.message.is_empty() && !self.options.quiet,
            CaptureForm::Family | CaptureForm::Command => {
                !end.message.is_empty() && self.options.verbose
            }
        };
        if news {
            self.status.clear();
            report::note(&end.message);
            self.said.clone_from(&end.message);
        }
        if let Some(flight) = self.flight.as_ref().filter(|_| gone && self.options.flight.on_exit) {
            let target = member.session.target();
            let what = format!("process {} ({}) ended", target.pid(), target.comm());
            flight.trigger(TriggerCause::Exit, Some(member.feed), what);
        }
        self.last = Some(end);
        self.outlived |= !gone;
        if !gone && !detached {
            self.finished.push(member.session);
            return;
        }
        member.feeds().for_each(|feed| self.listener.retire(feed));
        if detached {
            self.draining.push(member.session);
            return;
        }
        // Children may have inherited the descriptor of a segment that the process made.
        if member.session.attached().iter().any(|buffer| buffer.kind == SegmentKind::Memfd) {
            self.draining.push(member.session);
        }
    }

    /// Gives back the drained memory of processes and buffers that are no longer captured.
    fn close_drained(&mut self) {
        let is_drained = |buffer: &AttachedBuffer| {
            buffer.former().chain([&buffer.segment]).all(|segment| Arc::strong_count(segment) == 1)
        };
        let are_drained = |session: &mut Session| session.attached().iter().all(is_drained);
        for session in self.draining.extract_if(.., are_drained) {
            session.close();
        }
        for Member { session, closing, .. } in &mut self.members {
            for buffer in
                closing.extract_if(.., |&mut index| is_drained(&session.attached()[index]))
            {
                session.close_buffer(buffer);
            }
        }
    }

    /// Whether something waits for [`Self::close_drained`].
    fn is_draining(&self) -> bool {
        !self.draining.is_empty() || self.members.iter().any(|member| !member.closing.is_empty())
    }

    /// Closes the gates of a member, reads its last counters, and reports the losses that its end
    /// caused.
    fn close(&mut self, member: &mut Member) {
        // If ppt's own feeds were refused, a process without buffers has none.
        if member.feed < self.dropped.len() {
            member.names.tell_last(member.feed, &member.session, &self.listener);
            member.modules.tell_now(member.feed, &member.session, &self.listener);
        }
        member.session.gate_off();
        for (buffer, feed) in member.feeds().enumerate() {
            // Other news no longer matters.
            let news = member.session.advance(buffer);
            let attached = &member.session.attached()[buffer];
            if news.iter().any(|news| matches!(news, ppt_agent::News::Miscounts)) {
                self.ok = false;
                self.status.clear();
                report::error(Code::CountersDamaged, tell::miscounts(&attached.buffer.name));
            }
            let refused = feed::dropped(attached.dropped);
            self.dropped[feed] = refused;
            self.listener.dropped(feed, refused);
            self.listener.adds_not_mapped(feed, attached.adds_not_mapped);
            if attached.was_never_fetched() {
                match &mut self.follow {
                    // There may be thousands of such processes.
                    Some(follow) => follow.never_fetched(),
                    None => {
                        self.status.clear();
                        report::warning(Code::NotFetched, tell::never_fetched(attached));
                    }
                }
            }
        }
        member.tell_flips(&self.listener);
    }

    fn listener_ended(&self) -> CaptureEnd {
        match self.listener.progress().ended {
            Some(EndReason::MaxSize) => {
                CaptureEnd::new(EndReason::MaxSize, "the capture has its full size")
            }
            // The summary reports disk errors; a closed pipe is not an error.
            _ => CaptureEnd::new(EndReason::Failed, ""),
        }
    }

    /// Ends the capture.
    pub(crate) fn finish(mut self, end: Result<CaptureEnd, Failure>) -> Finished {
        let end = end.unwrap_or_else(|failure| {
            self.ok = false;
            CaptureEnd::new(EndReason::Failed, failure.message())
        });
        self.door = None;
        self.tell_unanswered();
        let mut members = std::mem::take(&mut self.members);
        members.iter_mut().for_each(|member| self.close(member));
        let kernel = self.end_kernel();
        self.status.clear();
        if !end.message.is_empty() && end.message != self.said && !self.options.quiet {
            report::note(&end.message);
        }
        let mut summary = self.listener.finish(end.reason, end.message, self.dropped);
        // The rings of ppt itself have the slots that they have.
        kernel.into_iter().for_each(|feed| summary.feeds[feed].enough_slots = None);
        for message in filter::messages(&self.remarks) {
            report::warning(filter::code(), message);
        }
        let mut still_running = Vec::new();
        for member in members {
            let target = member.session.target();
            if !target.ended() {
                still_running.push((target.pid(), target.comm().to_owned()));
            }
            self.finished.push(member.session);
        }
        self.finished.into_iter().chain(self.draining).for_each(Session::close);
        still_running.dedup();
        let name = self.outputs.name();
        let astray = self.outputs.astray().filter(|_| summary.error.is_none());
        let news: Vec<_> = self.outputs.news().into_iter().chain(astray).collect();
        news.iter().for_each(|(code, message)| report::error(*code, message));
        let kept = self.outputs.kept();
        let ok = self.ok & news.is_empty() & tell::problems(&name, kept, &self.names, &summary);
        self.follow.iter().for_each(Follow::tell_missed);
        // For a single process, the end of the capture reports this.
        if self.kind == CaptureForm::Command || self.processes > 1 {
            self.detached.report();
        }
        let time = self.started.elapsed();
        if let Some(flight) = &self.flight {
            self.ok &= flight::report(flight, self.options.quiet);
            if !self.options.quiet {
                let whither = flight::whither(flight, &name);
                tell::summary(("recorded", &whither), &summary, time);
            }
        } else if !self.options.quiet {
            tell::summary(("captured", &tell::whither(&name, kept, &summary)), &summary, time);
        }
        let ok = ok && self.ok;
        Finished { ok, still_running }
    }

    /// Ends a capture without frames; it leaves no file.
    pub(crate) fn discard(self) -> bool {
        let _ = self.listener.finish(EndReason::Stopped, String::new(), Vec::new());
        self.follow.iter().for_each(Follow::tell_missed);
        self.ok
    }
}

/// Whether another process ended the session without the process knowing.
fn is_detached(end: BufferEnd) -> bool {
    matches!(end, BufferEnd::SwitchedOff | BufferEnd::TakenOver)
}

/// An unreachable session is still a session.
fn opened(door: std::io::Result<Door>, told: bool) -> Option<Door> {
    let tell = |error| {
        let what = "other commands of ppt cannot reach this session";
        if told {
            report::warning(Code::System, format_args!("{what}: {error}"));
        }
    };
    door.map_err(tell).ok()
}

/// Detaches before any frame was captured.
pub(crate) fn end_at_once(mut session: Session) {
    session.gate_off();
    session.close();
}
