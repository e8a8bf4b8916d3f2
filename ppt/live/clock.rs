//! When a capture looks at its processes, and when it ends.

use std::time::Duration;

use nix::sys::time::TimeSpec;
use nix::sys::timerfd::{ClockId, Expiration, TimerFd, TimerFlags, TimerSetTimeFlags};

use super::Live;
use crate::args;
use crate::failure::{Failure, failed};

/// How often mailboxes are looked at.
pub(super) const LOOK: Duration = Duration::from_secs(1);
/// The first looks come sooner: a segment that cannot be mapped shows at the first frame.
pub(super) const FIRST_LOOK: Duration = Duration::from_millis(100);
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
            false => longest,
        };
        // It was set before, and so it can be set again.
        let _ = set(&self.ticks, after, Some(LOOK));
    }
}

/// For the looks, and for the end, if that is known.
pub(super) fn timers(options: &args::Capture) -> Result<(TimerFd, Option<TimerFd>), Failure> {
    let ticks = timer(FIRST_LOOK, Some(LOOK))?;
    Ok((ticks, options.duration.map(|it| timer(it, None)).transpose()?))
}

pub(crate) fn timer(after: Duration, every: Option<Duration>) -> Result<TimerFd, Failure> {
    let fail = failed("set a timer");
    let timer =
        TimerFd::new(ClockId::CLOCK_MONOTONIC, TimerFlags::TFD_CLOEXEC | TimerFlags::TFD_NONBLOCK)
            .map_err(&fail)?;
    set(&timer, after, every).map_err(&fail)?;
    Ok(timer)
}

fn set(timer: &TimerFd, after: Duration, every: Option<Duration>) -> nix::Result<()> {
    let first = TimeSpec::from_duration(after);
    let expiration = match every {
        Some(every) => Expiration::IntervalDelayed(first, TimeSpec::from_duration(every)),
        None => Expiration::OneShot(first),
    };
    timer.set(expiration, TimerSetTimeFlags::empty())
}
