//! When a capture looks at its processes next.

use std::time::Duration;

use super::Live;
use super::timer::{FIRST_LOOK, LOOK, set};

/// While a target is to make its segment: frames sit in it until it is fetched.
const AWAITING: Duration = Duration::from_millis(10);
/// The same in the first second, when a busy target makes it.
const AWAITING_AT_FIRST: Duration = Duration::from_millis(1);

impl Live<'_> {
    /// Sets the clock for the next look: after `longest`, or sooner where a segment is awaited.
    pub(super) fn look_again(&self, longest: Duration) {
        let after = match self.members.iter().any(|it| it.session.awaits()) {
            true if self.started.elapsed() < LOOK => AWAITING_AT_FIRST,
            true => AWAITING,
            // Others may wait for what is given back then.
            false if self.is_draining() => longest.min(FIRST_LOOK),
            false => longest,
        };
        // It was set before, and so it can be set again.
        let _ = set(&self.ticks, after, Some(LOOK));
    }
}
