//! Timers: when a capture looks at its processes, and when it ends.

use std::time::Duration;

use nix::sys::time::TimeSpec;
use nix::sys::timerfd::{ClockId, Expiration, TimerFd, TimerFlags, TimerSetTimeFlags};

use crate::args;
use crate::failure::{Failure, failed};

/// How often mailboxes are looked at.
pub(super) const LOOK: Duration = Duration::from_secs(1);
/// The first looks come sooner: a segment that cannot be mapped shows at the first frame.
pub(super) const FIRST_LOOK: Duration = Duration::from_millis(100);
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

pub(super) fn set(timer: &TimerFd, after: Duration, every: Option<Duration>) -> nix::Result<()> {
    let first = TimeSpec::from_duration(after);
    let expiration = match every {
        Some(every) => Expiration::IntervalDelayed(first, TimeSpec::from_duration(every)),
        None => Expiration::OneShot(first),
    };
    timer.set(expiration, TimerSetTimeFlags::empty())
}
