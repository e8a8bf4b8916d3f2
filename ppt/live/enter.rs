//! The start of a capture, and the processes that it adds.

use std::sync::Arc;
use std::time::Instant;

use ppt_agent::Session;
use ppt_listener::Dropped;

use super::control_socket::ControlSocket;
use super::detached::Detached;
use super::follow::Follow;
use super::io_uring::IoUringWatch;
use super::kernel::KernelWatch;
use super::member::Member;
use super::modules::MemberModules;
use super::options::CaptureForm;
use super::outputs::{self, Outputs};
use super::thread_names::{MemberNames, NamesDue};
use super::timer::{self, FIRST_CHECK_INTERVAL};
use super::{Live, begin, feed, messages};
use crate::args;
use crate::choice::Choice;
use crate::code::Code;
use crate::failure::Failure;
use crate::metrics::MetricsListener;
use crate::report::{self, StatusLine};

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
            control_socket: opened(ControlSocket::open(), flight.is_some() || !options.quiet),
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
            has_reported_waiting: kind == CaptureForm::Command,
            started: Instant::now(),
            processes: 0,
            has_experiment: false,
            outlived: false,
            last: None,
            last_message: String::new(),
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

    /// Adds an attached process. `from_start` states that the process waits for ppt, and has written
    /// no frame yet.
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
                end_at_once(session);
                Err(Failure::failed(error.code(), error.to_string()))
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
            messages::attached(self.options, self.kind, &session);
        }
        session.attached().iter().for_each(|buffer| self.choice.note(&buffer.buffer.schema));
        let origin = self.follow.as_mut().and_then(|follow| follow.record(&session));
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
            end_is_judged: false,
            closing: Vec::new(),
            names: MemberNames::default(),
            modules: MemberModules::default(),
        });
        self.report_mask_changes(self.members.len() - 1);
        if count > 0 {
            self.state_facts(self.members.len() - 1);
        }
        self.check_io_uring(self.members.len() - 1..);
        self.set_next_check(FIRST_CHECK_INTERVAL);
    }

    /// Writes the names of a member's threads and its modules to the capture.
    pub(super) fn state_facts(&mut self, member: usize) {
        let member = &mut self.members[member];
        member.name(&self.listener);
        let _ = member.update_modules(&self.listener);
    }
}

/// The control socket, if it could be opened. A session runs without one, too; `warns` states whether
/// ppt then prints a warning.
fn opened(control_socket: std::io::Result<ControlSocket>, warns: bool) -> Option<ControlSocket> {
    let warn = |error| {
        if warns {
            let problem = "other commands of ppt cannot reach this session";
            report::warning(Code::System, format_args!("{problem}: {error}"));
        }
    };
    control_socket.map_err(warn).ok()
}

/// Detaches before any frame was captured.
pub(crate) fn end_at_once(mut session: Session) {
    session.gate_off();
    session.close();
}
