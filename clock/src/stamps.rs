//! Stamps of type `tsc` to ns since the epoch.

use std::cell::Cell;

use crate::table::ClockTable;

/// Set in a stamp that is CLOCK_MONOTONIC in ns, not ticks.
pub const STAMP_IS_MONOTONIC: u64 = 1 << 63;

/// Reads the stamps of type `tsc` of one chunk of frames.
#[derive(Debug, Clone)]
pub struct Stamps<'a> {
    /// The clocks of the capture.
    table: &'a ClockTable,
    /// When the chunk was drained, CLOCK_MONOTONIC ns: its stamps are of about that time.
    drained_ns: u64,
    /// CLOCK_MONOTONIC in the time namespace of the target, minus that of the listener, ns.
    monotonic_offset: i64,
    /// What the last ticks were read by: the next ones mostly lie there, too.
    line: Cell<Line>,
}

/// Ticks between two neighbouring readings, `from..to`.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct Line {
    pub from: u64,
    pub to: u64,
    /// ns since the epoch at `from`.
    pub epoch: i64,
    /// So many ns...
    pub ns: u64,
    /// ...take so many ticks.
    pub ticks: u64,
}

impl Line {
    /// As [`ClockTable::tick_to_epoch`] has it; None where other numbers are needed for that.
    #[inline]
    fn epoch(&self, tick: u64) -> Option<i64> {
        if tick < self.from || tick >= self.to {
            return None;
        }
        let ns = (tick - self.from).checked_mul(self.ns)? / self.ticks;
        self.epoch.checked_add_unsigned(ns)
    }
}

impl<'a> Stamps<'a> {
    /// Of a chunk that was drained at `drained_ns` (CLOCK_MONOTONIC), from a target whose
    /// CLOCK_MONOTONIC is ahead of ours by `monotonic_offset` ns.
    pub fn new(table: &'a ClockTable, drained_ns: u64, monotonic_offset: i64) -> Self {
        Self { table, drained_ns, monotonic_offset, line: Cell::default() }
    }

    /// CLOCK_MONOTONIC in the time namespace of the target, minus that of the listener, ns.
    pub fn monotonic_offset(&self) -> i64 {
        self.monotonic_offset
    }

    /// ns since the epoch at `stamp`; `None` for 0, which is no stamp, and where nothing says.
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
        let ns = i128::from(stamp & !STAMP_IS_MONOTONIC) - i128::from(self.monotonic_offset);
        self.table.to_epoch(ns)
    }
}
