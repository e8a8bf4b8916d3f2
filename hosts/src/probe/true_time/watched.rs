//! What all sources of true time have in common.

use std::time::Duration;

use ppt_clock::sync::Record;
use ppt_clock::times::Model;

use super::error::TimeSourceError;

/// A source of true time.
pub(super) trait Watched: Send {
    /// Hands on what is new.
    fn look(&mut self, tell: &mut dyn FnMut(Result<Record, TimeSourceError>));
    /// How long to wait until the next look.
    fn pause(&self) -> Duration;
}

/// By how much CLOCK_REALTIME may be slewed within `ns`, at most.
pub(super) fn slewed(ns: u64) -> u64 {
    (ns as f64 * Model::default().slew_ppm * 1e-6).ceil() as u64
}

/// The ticks of so many ns.
pub(super) fn ticks_of(ns: u64, hz: u64) -> u64 {
    (u128::from(ns) * u128::from(hz) / 1_000_000_000) as u64
}
