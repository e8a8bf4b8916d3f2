//! The interface of all sources of true time.

use std::time::Duration;

use ppt_clock::sync::Record;
use ppt_clock::times::ClockModel;

use super::error::TimeSourceError;

/// A source of true time.
pub(super) trait Watched: Send {
    /// Passes on new readings.
    fn look(&mut self, report: &mut dyn FnMut(Result<Record, TimeSourceError>));
    /// Time until the next check.
    fn pause(&self) -> Duration;
}

/// The most by which CLOCK_REALTIME may be slewed within `ns`.
pub(super) fn slewed(ns: u64) -> u64 {
    (ns as f64 * ClockModel::default().slew_ppm * 1e-6).ceil() as u64
}

/// The ticks in `ns` nanoseconds.
pub(super) fn ticks_of(ns: u64, hz: u64) -> u64 {
    (u128::from(ns) * u128::from(hz) / 1_000_000_000) as u64
}
