//! An attached process.

use std::ops::Range;

use ppt_agent::{Origin, Session};
use ppt_listener::Listener;

use super::modules::MemberModules;
use super::thread_names::MemberNames;

/// An attached process. If the process loads a plugin later, that is a second member.
pub(super) struct Member {
    pub(super) session: Session,
    /// The origin that its children share, if ppt follows forks.
    pub(super) origin: Option<Origin>,
    /// The feed of its first buffer.
    pub(super) feed: usize,
    /// Detached buffers of a process whose other buffers are captured. ppt gives them back once
    /// they are drained.
    pub(super) closing: Vec<usize>,
    /// Whether the process waited for its session before its first frame.
    pub(super) from_start: bool,
    /// Whether the process is a child that was attached to while it ran.
    pub(super) forked: bool,
    /// Whether the consequences of its end, if it has ended, are known.
    pub(super) end_is_judged: bool,
    /// The names of its threads.
    pub(super) names: MemberNames,
    /// The executable mappings.
    pub(super) modules: MemberModules,
}

impl Member {
    /// The feeds of its buffers.
    pub(super) fn feeds(&self) -> Range<usize> {
        self.feed..self.feed + self.session.attached().len()
    }

    /// Reads the names of its threads, and writes changes to the capture.
    pub(super) fn name(&mut self, listener: &Listener) {
        self.names.report(self.feed, &self.session, listener);
    }

    /// Reads its executable mappings, if that is due, and writes changes to the capture. Returns
    /// whether there were any.
    pub(super) fn update_modules(&mut self, listener: &Listener) -> bool {
        self.modules.report(self.feed, &self.session, listener)
    }
}
