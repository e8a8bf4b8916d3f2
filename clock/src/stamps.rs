//! Converts stamps of type `tsc` to ns since the epoch.

use std::cell::Cell;

use crate::line::{STAMP_IS_MONOTONIC, TickLine};
use crate::ticks::ClockTable;

/// Offsets of the clocks of a time namespace: the process's clocks minus the listener's, in ns.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct TimeNamespace {
    /// CLOCK_MONOTONIC.
    pub monotonic: i64,
    /// CLOCK_BOOTTIME, or None if it is not known.
    pub boottime: Option<i64>,
}

impl TimeNamespace {
    /// The listener's own namespace.
    pub const SAME: TimeNamespace = TimeNamespace { monotonic: 0, boottime: Some(0) };
}

/// Converts the stamps of type `tsc` of one chunk of frames.
#[derive(Debug, Clone)]
pub struct Stamps<'a> {
    /// The clocks of the capture.
    table: &'a ClockTable,
    /// When the chunk was drained, CLOCK_MONOTONIC ns. Its stamps are near that time.
    drained_ns: u64,
    /// The offsets of the target's clocks.
    namespace: TimeNamespace,
    /// The line that converted the last ticks. It mostly covers the next ones, too.
    line: Cell<TickLine>,
}

impl<'a> Stamps<'a> {
    /// Converts stamps of a chunk that was drained at `drained_ns` (CLOCK_MONOTONIC) from a target
    /// in `namespace`.
    pub fn new(table: &'a ClockTable, drained_ns: u64, namespace: TimeNamespace) -> Self {
        Self { table, drained_ns, namespace, line: Cell::default() }
    }

    /// Converts a time of the host's own clock, in ns since the epoch, to the aligned clock.
    #[inline]
    pub fn aligned(&self, own: i128) -> i128 {
        self.table.aligned(own)
    }

    /// Converts the target's CLOCK_MONOTONIC to the listener's.
    pub fn monotonic(&self, ns: u64) -> i128 {
        i128::from(ns) - i128::from(self.namespace.monotonic)
    }

    /// Returns the ns since the epoch at the target's CLOCK_BOOTTIME, or `None` if no reading
    /// covers it.
    pub fn boottime_to_epoch(&self, ns: u64) -> Option<i128> {
        let own =
            i128::from(ns) - i128::from(self.namespace.boottime?) + self.table.boottime_offset()?;
        Some(self.aligned(own))
    }

    /// Returns the ns since the epoch at `stamp`. Returns `None` for 0, which means that no stamp
    /// was recorded, and if no reading covers the stamp.
    #[inline]
    pub fn epoch(&self, stamp: u64) -> Option<i64> {
        match self.line.get().epoch(stamp) {
            Some(epoch) => Some(epoch),
            None => self.epoch_elsewhere(stamp),
        }
    }

    fn epoch_elsewhere(&self, stamp: u64) -> Option<i64> {
        if stamp == 0 {
            return None;
        }
        if stamp & STAMP_IS_MONOTONIC == 0 {
            self.line.set(self.table.line(stamp).unwrap_or_default());
            return self.table.tick_to_epoch(stamp, self.drained_ns);
        }
        self.table.to_epoch(self.monotonic(stamp & !STAMP_IS_MONOTONIC))
    }
}
