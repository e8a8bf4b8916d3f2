//! Whether a process reads and writes through an io_uring, which the preloaded library does not see.
//!
//! ppt checks a process when it is added, then with the checks of the mailboxes. That takes at most one
//! percent of the time, and ends with the first process that has a ring.

use std::path::Path;
use std::time::{Duration, Instant};

use ppt_agent::{Buffer, Session};
use ppt_sources::FILE_NAME;

use super::modules::MemberModules;
use crate::wording::unseen_by_library;

/// The reciprocal of the share of time that checks take.
const PART: u32 = 100;
/// The longest pause between two checks.
const MAX_PAUSE: Duration = Duration::from_secs(60);

/// Whether a ring was found, and if not, the time of the next check.
#[derive(Debug, Default)]
pub(super) struct IoUringWatch {
    is_found: bool,
    due: Option<Instant>,
}

impl IoUringWatch {
    /// Whether a check of all processes is due.
    pub(super) fn is_due(&self) -> bool {
        !self.is_found && self.due.is_none_or(|due| Instant::now() >= due)
    }

    /// Checks `processes`. Returns the message about the first one that has a ring, once.
    pub(super) fn check<'a>(
        &mut self,
        mut processes: impl Iterator<Item = (&'a Session, &'a MemberModules)>,
    ) -> Option<String> {
        if self.is_found {
            return None;
        }
        let start = Instant::now();
        let found = processes.find(|(session, modules)| bypasses_library(session, modules));
        self.is_found = found.is_some();
        self.due = Some(start + start.elapsed().saturating_mul(PART).min(MAX_PAUSE));
        let target = found?.0.target();
        Some(unseen_by_library(&format!("process {} ({})", target.pid(), target.comm())))
    }
}

/// Whether the process has the library and a ring. ppt may see the mapping of a ring in another user's
/// process, but not its descriptors.
fn bypasses_library(session: &Session, modules: &MemberModules) -> bool {
    let is_of_library = |buffer: &Buffer| Path::new(&buffer.object).ends_with(FILE_NAME);
    session.attached().iter().any(|attached| is_of_library(&attached.buffer))
        && (modules.has_io_uring() || session.target().has_io_uring())
}
