//! The time of a capture's next check of its processes.

use std::time::Duration;

use super::Live;
use super::timer::{CHECK_INTERVAL, FIRST_CHECK_INTERVAL, set};

/// The interval while a target has yet to make its segment. Only that segment holds its frames
/// until ppt fetches it.
const AWAITING: Duration = Duration::from_millis(10);
/// The interval in the first second, in which a busy target makes its segment.
const AWAITING_AT_FIRST: Duration = Duration::from_millis(1);

impl Live<'_> {
    /// Sets the time of the next check: after `longest`, or sooner if ppt awaits a segment.
    pub(super) fn set_next_check(&self, longest: Duration) {
        let after = match self.members.iter().any(|member| member.session.awaits()) {
            true if self.started.elapsed() < CHECK_INTERVAL => AWAITING_AT_FIRST,
            true => AWAITING,
            // Other processes may wait for memory that the next check gives back.
            false if self.is_draining() => longest.min(FIRST_CHECK_INTERVAL),
            false => longest,
        };
        // This timer was set before, so setting it cannot fail.
        let _ = set(&self.ticks, after, Some(CHECK_INTERVAL));
    }
}
