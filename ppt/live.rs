//! A running capture, which joins agent and listener.
//!
//! Processes come ([`Live::add`]) and go while it runs. The caller runs the only poll loop. It
//! waits for the caller's own descriptors, the ends of the processes (pidfd), a clock (timerfd),
//! and the listener, in case that ends by itself. The protocol fixes the order at the end: close
//! the gates, drain the rings, end the capture, give back memory and claims.

mod answer;
mod begin;
mod checks;
mod chosen;
mod control_socket;
mod detached;
mod enter;
mod feed;
mod filter;
mod finish;
mod flight;
mod follow;
mod grow;
mod io_uring;
mod kernel;
mod kernel_feeds;
mod leave;
mod member;
mod messages;
mod modules;
mod next_check;
mod options;
mod outputs;
mod progress;
#[cfg(feature = "answers")]
mod rounds;
mod thread_names;
mod timer;
mod unwind;
mod wait;
mod wait_result;

use std::collections::BTreeSet;
use std::sync::Arc;
use std::time::{Duration, Instant};

use nix::sys::timerfd::TimerFd;
use ppt_agent::{Buffer, Session, Target};
use ppt_listener::{Dropped, EndReason, Flight, Listener};

use crate::args;
use crate::choice::Choice;
use crate::code::Code;
use crate::foreign;
use crate::metrics::PublishedMetrics;
use crate::report::{self, StatusLine};
use control_socket::ControlSocket;
use detached::Detached;
pub(crate) use enter::end_at_once;
pub(crate) use filter::check_where;
pub(crate) use flight::check_flight;
pub(crate) use follow::{Follow, InheritedSocket, is_gone};
use io_uring::IoUringWatch;
pub(crate) use kernel::KernelWatch;
use member::Member;
pub(crate) use options::{CaptureForm, allowed, attach_options, check_size};
pub(crate) use outputs::Outputs;
use thread_names::NamesDue;
pub(crate) use timer::timer;
use timer::{CHECK_INTERVAL, FIRST_CHECK_INTERVAL};
pub(crate) use wait_result::WaitResult;

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
    control_socket: Option<ControlSocket>,
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
    /// The time at which the names of threads are read next.
    names_due: NamesDue,
    /// Whether a process reads and writes past the preloaded library.
    io_uring: IoUringWatch,
    ticks: TimerFd,
    deadline: Option<TimerFd>,
    status: StatusLine,
    has_reported_waiting: bool,
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
    last_message: String,
    ok: bool,
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
        self.release_spared();
        if ready.deadline {
            return Some(CaptureEnd::new(EndReason::Duration, ""));
        }
        if ready.undersized {
            self.grow();
        }
        if ready.request {
            self.answer_requests();
        }
        if ready.tick {
            let _ = self.ticks.wait();
            self.check_all();
            let (members, listener) = (&mut self.members, &self.listener);
            let feeds = self.dropped.len();
            let mut stated: Vec<_> =
                members.iter_mut().filter(|member| member.feed < feeds).collect();
            for member in &mut stated {
                if member.update_modules(listener)
                    && let Some(kernel) = &mut self.kernel
                {
                    kernel.map_code(member.session.target());
                }
            }
            self.names_due
                .read_if_due(|| stated.iter_mut().for_each(|member| member.name(listener)));
            if self.io_uring.is_due() {
                self.check_io_uring(0..);
            }
            self.release_spared();
            self.close_drained();
            if self.follow.as_ref().is_some_and(Follow::is_due) {
                self.search_unannounced();
            }
            self.report_changes();
            foreign::report_unanswered(|| self.status.clear());
            self.show();
            self.set_next_check(self.check_interval());
        }
        None
    }

    /// Time until processes are checked again.
    fn check_interval(&self) -> Duration {
        let interval = self.follow.as_ref().map_or(CHECK_INTERVAL, Follow::search_interval);
        if self.members.iter().any(|member| member.names.is_unfinished()) {
            return interval.min(self.names_due.pause().max(FIRST_CHECK_INTERVAL));
        }
        interval
    }

    /// Reports changes of the output file, each once.
    fn report_changes(&mut self) {
        for (code, message) in self.outputs.news() {
            self.ok = false;
            self.status.clear();
            report::error(code, message);
        }
        if let Some(kernel) = self.kernel.as_mut().filter(|kernel| kernel.has_news()) {
            self.status.clear();
            kernel.report_changes();
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
            // Its messages are longer than the status line.
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
            self.attach_orphans();
        }
        let pids = self.members.iter().map(|member| member.session.target().pid());
        pids.collect::<BTreeSet<_>>().len()
    }

    /// Whether a process may say hello soon: it belongs to the command and has not yet executed its
    /// program.
    pub(crate) fn awaits_hellos(&mut self) -> bool {
        let awaits = self.follow.as_ref().is_some_and(Follow::awaits_strays);
        if awaits {
            self.set_next_check(FIRST_CHECK_INTERVAL);
        }
        awaits
    }

    /// The process of the metrics, while it runs.
    pub(crate) fn helper(&mut self) -> Option<i32> {
        self.metrics.as_mut().and_then(PublishedMetrics::pid)
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
}
