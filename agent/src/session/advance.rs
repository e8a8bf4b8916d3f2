//! The state machine of an attached buffer. Its control page moves it from one stage to the next.
//!
//! ```text
//! Awaiting ──fetched──→ Ready      (a segment that the target makes)
//!     ↑                   │
//!     └──cannot attach────┘        offered once more under a new handle, or made by the target;
//!                                  a larger one: back to the one before
//! any ──→ Failed                   unusable: the caller closes the gate
//! any ──→ Ended                    the target, the library or the claim is gone
//! ```
//! Some steps write into the target. Each checks the descriptor and the claim first.

use ppt_segment::handle::SegmentKind;

use super::attached::{Access, AttachedBuffer, BufferEnd, Stage};
use super::choice::{fetch, may_fall_over};
use super::control_page::{give_up_ticks, leave, look, read_control, reopen, shut, switched_off};
use super::grow::{go_back, let_go};
use super::masks;
use super::prepare::{glance_lately, refuse_filters};
use crate::clock::{self, StampClock};
use crate::control::ControlCopy;
use crate::error::AgentError;
use ppt_now::Distrust;

/// An event of an attached buffer.
#[derive(Debug)]
pub enum News {
    /// Ticks can no longer be trusted. From now on, its stamps come from the monotonic clock.
    TicksGivenUp(Distrust),
    /// No more frames come from the former segment with this nonce.
    Vacated(u64),
    /// The target could not attach the segment and failed with this errno, so it makes its own.
    FellOver(i32),
    /// The target could not map a larger segment, so frames go to the previous one again.
    WentBack {
        /// The errno of the failure.
        errno: i32,
        /// Nonce of the larger segment.
        nonce: u64,
    },
    /// The target's counters of refused frames decreased, or rose faster than possible. They are
    /// ignored from now on.
    Miscounts,
    /// The buffer can no longer be captured: ppt could not fetch the segment that the target made,
    /// or the first frame might kill the target.
    Failed(AgentError),
    /// The target could not map the segment, and a second try failed with this errno, too.
    Unmappable(i32),
    /// The session has ended for this buffer.
    Ended(BufferEnd),
}

impl AttachedBuffer {
    /// Advances as far as currently possible.
    pub(super) fn advance(&mut self, by: &Access) -> Vec<News> {
        let mut news = Vec::new();
        if self.end().is_none() {
            let before = std::mem::take(&mut self.noted);
            masks::note_rings(self);
            match look(by, self) {
                Ok(copy) => self.go_on(by, &copy, &mut news),
                Err(end) => {
                    // Before this check, the claim may already have been another agent's.
                    self.noted = before;
                    self.count_without_target();
                    self.ends(end);
                }
            }
        }
        // Growing rings and closing gates may find that the session is over, too.
        if let Some(end) =
            self.end().filter(|_| !std::mem::replace(&mut self.is_end_reported, true))
        {
            if end == BufferEnd::TakenOver
                && let Ok(theirs) = read_control(by.target, &self.buffer)
            {
                masks::taken_over(self, theirs.raw.masks());
            }
            news.push(News::Ended(end));
        }
        news
    }

    fn go_on(&mut self, by: &Access, copy: &ControlCopy, news: &mut Vec<News>) {
        let failed = self.fetched(by, copy).err().or_else(|| self.endangered(by, copy));
        if !self.count(copy.counters()) && !std::mem::replace(&mut self.miscounts, true) {
            news.push(News::Miscounts);
        }
        news.extend(let_go(self, copy).into_iter().map(News::Vacated));
        news.extend(self.distrusted(by).map(News::TicksGivenUp));
        if let Some(error) = failed {
            self.stage = Stage::Failed;
            news.push(News::Failed(error));
        } else if self.stage == Stage::Failed {
            // ppt counts refused frames until the end.
        } else if copy.is_to_detach() {
            self.ends(leave(by, self));
        } else if copy.gate() != self.gate {
            self.ends(switched_off(by, self));
        } else if let Some(errno) = copy.failure(self.gate) {
            self.not_mapped(by, copy, errno, news);
        }
    }

    /// Fetches the segment that the target has made, if ppt is waiting for one.
    fn fetched(&mut self, by: &Access, copy: &ControlCopy) -> Result<(), AgentError> {
        if !self.is_awaiting() {
            return Ok(());
        }
        match fetch(by.target, self, copy) {
            // A target that exits has closed its descriptors. That is not an error.
            Err(_) if by.target.ended() || !by.target.has_memory() => Ok(()),
            fetched => fetched,
        }
    }

    /// Closes the gate if the target's next frame might kill it, and returns the reason. The first
    /// frame makes system calls, and so does the next frame after a segment that could not be
    /// mapped is offered again under a new handle.
    fn endangered(&mut self, by: &Access, copy: &ControlCopy) -> Option<AgentError> {
        if self.stage == Stage::Failed || copy.has_mapped(self.segment.nonce()) {
            return None;
        }
        let refused = match copy.failure(self.gate) {
            Some(_) => refuse_filters(by.target, by.allow).map(drop),
            None => glance_lately(by.target, by.allow),
        };
        let error = refused.err()?;
        // The target may have mapped it since the check, and have filtered its system calls after
        // that.
        if look(by, self).is_ok_and(|now| now.has_mapped(self.segment.nonce())) {
            return None;
        }
        shut(by, self).ok()?;
        self.gate = 0;
        Some(error)
    }

    /// Switches stamps to the monotonic clock if ticks are no longer trusted. Returns the reason.
    fn distrusted(&mut self, by: &Access) -> Option<Distrust> {
        let ticks = self.clock == Some(StampClock::Ticks);
        let why = ticks.then(|| clock::trusted_lately(by.target.system()).err()).flatten()?;
        if !give_up_ticks(by.target, self) {
            return None;
        }
        self.clock = Some(StampClock::Distrusted(why.clone()));
        Some(why)
    }

    /// The target could not map its segment: tries another way.
    fn not_mapped(&mut self, by: &Access, copy: &ControlCopy, errno: i32, news: &mut Vec<News>) {
        if self.retried {
            news.push(match go_back(by, self, copy) {
                Some(nonce) => News::WentBack { errno, nonce },
                None => News::Unmappable(errno),
            });
            return;
        }
        if may_fall_over(by.target, self, errno) {
            (self.kind, self.stage) = (SegmentKind::Memfd, Stage::Awaiting);
            masks::ask(self);
            news.push(News::FellOver(errno));
        } else {
            self.retried = true;
        }
        if reopen(by.target, self, copy).is_err() {
            news.push(News::Unmappable(errno));
        }
    }

    /// Counts refused frames without reading the target. Its own counters stay as last read.
    fn count_without_target(&mut self) {
        self.count(self.counted);
    }
}
