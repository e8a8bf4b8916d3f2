//! The names of the threads of captured processes.
//!
//! They are read when a process comes, then with the checks of the mailboxes, and once more before the
//! process is left. That takes one percent of the time at most.

use std::time::{Duration, Instant};

use ppt_agent::{Session, ThreadNames};
use ppt_listener::{Listener, NameChanges, ThreadName};

/// The part of the time that looks take: one in so many.
const PART: u32 = 100;
/// Most threads of a process whose names a look reads: Ctrl-C does not wait for thousands.
const AT_ONCE: usize = 256;
/// Most threads whose names are read once more before a process is left.
const AT_THE_END: usize = 64;
/// The longest pause between two looks.
const LONGEST: Duration = Duration::from_secs(60);

/// When the names of all processes are read next.
#[derive(Debug, Default)]
pub(super) struct NamesDue(Option<Instant>);

impl NamesDue {
    /// How long until the names are read next.
    pub(super) fn pause(&self) -> Duration {
        self.0.map_or(Duration::ZERO, |due| due.saturating_duration_since(Instant::now()))
    }

    /// Runs `look`, which reads the names of all processes, if that is due.
    pub(super) fn look(&mut self, look: impl FnOnce()) {
        let start = Instant::now();
        if self.0.is_some_and(|due| start < due) {
            return;
        }
        look();
        self.0 = Some(start + start.elapsed().saturating_mul(PART).min(LONGEST));
    }
}

/// The names of a member's threads, and where the capture states them.
#[derive(Debug, Default)]
pub(super) struct MemberNames {
    read: ThreadNames,
    /// The feed with which the capture states them.
    feed: Option<usize>,
}

impl MemberNames {
    /// Reads names, and has the capture state what has changed. `first_feed` is the feed of the first
    /// buffer of the session.
    pub(super) fn tell(&mut self, first_feed: usize, session: &Session, listener: &Listener) {
        self.tell_some(AT_ONCE, first_feed, session, listener);
    }

    /// Whether threads are left whose names the last look did not reach.
    pub(super) fn is_unfinished(&self) -> bool {
        self.read.is_unfinished()
    }

    /// The same of a few threads, before the process is left.
    pub(super) fn tell_last(&mut self, first_feed: usize, session: &Session, listener: &Listener) {
        self.tell_some(AT_THE_END, first_feed, session, listener);
    }

    fn tell_some(
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
