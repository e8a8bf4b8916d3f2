//! The names of the threads of captured processes.
//!
//! They are read when a process is added, then with the checks of the mailboxes, and once more
//! before the process is removed. That takes at most one percent of the time.

use std::time::{Duration, Instant};

use ppt_agent::{Session, ThreadNames};
use ppt_listener::{Listener, NameChanges, ThreadName};

/// The reciprocal of the share of time that reads take.
const PART: u32 = 100;
/// The most thread names read at once per process: Ctrl-C must not wait for thousands.
const AT_ONCE: usize = 256;
/// The most thread names read once more before a process is removed.
const AT_THE_END: usize = 64;
/// The longest pause between two reads.
const MAX_PAUSE: Duration = Duration::from_secs(60);

/// The time at which the names of all processes are read next.
#[derive(Debug, Default)]
pub(super) struct NamesDue(Option<Instant>);

impl NamesDue {
    /// Time until the next read.
    pub(super) fn pause(&self) -> Duration {
        self.0.map_or(Duration::ZERO, |due| due.saturating_duration_since(Instant::now()))
    }

    /// Calls `read`, which reads the names of all processes, if that is due.
    pub(super) fn read_if_due(&mut self, read: impl FnOnce()) {
        let start = Instant::now();
        if self.0.is_some_and(|due| start < due) {
            return;
        }
        read();
        self.0 = Some(start + start.elapsed().saturating_mul(PART).min(MAX_PAUSE));
    }
}

/// The thread names of a member, and their feed.
#[derive(Debug, Default)]
pub(super) struct MemberNames {
    read: ThreadNames,
    /// The feed through which the capture states them.
    feed: Option<usize>,
}

impl MemberNames {
    /// Reads names, and writes changes to the capture. `first_feed` is the session's first feed.
    pub(super) fn report(&mut self, first_feed: usize, session: &Session, listener: &Listener) {
        self.report_some(AT_ONCE, first_feed, session, listener);
    }

    /// Whether the last read left threads out.
    pub(super) fn is_unfinished(&self) -> bool {
        self.read.is_unfinished()
    }

    /// Reads the names of a few threads once more, before the process is removed.
    pub(super) fn report_last(
        &mut self,
        first_feed: usize,
        session: &Session,
        listener: &Listener,
    ) {
        self.report_some(AT_THE_END, first_feed, session, listener);
    }

    fn report_some(
        &mut self,
        most: usize,
        first_feed: usize,
        session: &Session,
        listener: &Listener,
    ) {
        let Some(feed) = super::feed::living(first_feed, session) else { return };
        if self.feed.replace(feed) != Some(feed) {
            self.read.forget();
        }
        let changes = self.read.look(session.target(), most);
        if changes.named.is_empty() && changes.ended.is_empty() {
            return;
        }
        let named = changes.named.iter().map(|found| ThreadName {
            tid: found.tid,
            mono_ns: found.mono_ns,
            name: found.name,
        });
        listener.thread_names(feed, NameChanges { named: named.collect(), ended: changes.ended });
    }
}
