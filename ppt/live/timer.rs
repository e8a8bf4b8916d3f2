//! Timers: one for the checks of a capture, one for its end.

use std::time::Duration;

use nix::sys::time::TimeSpec;
use nix::sys::timerfd::{ClockId, Expiration, TimerFd, TimerFlags, TimerSetTimeFlags};

use crate::args;
use crate::failure::{Failure, failed};

/// The interval of the checks of mailboxes.
pub(super) const CHECK_INTERVAL: Duration = Duration::from_secs(1);
/// The first checks come sooner: the first frame shows whether a segment can be mapped.
pub(super) const FIRST_CHECK_INTERVAL: Duration = Duration::from_millis(100);
/// The timer of the checks, and the timer of the end if `--duration` gives one.
pub(super) fn timers(options: &args::CaptureArgs) -> Result<(TimerFd, Option<TimerFd>), Failure> {
    let ticks = timer(FIRST_CHECK_INTERVAL, Some(CHECK_INTERVAL))?;
    Ok((ticks, options.duration.map(|duration| timer(duration, None)).transpose()?))
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
