//! The line that converts a stamp of type `tsc`.

/// Set in a stamp that is CLOCK_MONOTONIC in ns, not ticks.
pub const STAMP_IS_MONOTONIC: u64 = 1 << 63;

/// Ticks between two neighbouring readings, `from..to`.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct TickLine {
    pub from: u64,
    pub to: u64,
    /// ns since the epoch at `from`.
    pub epoch: i64,
    /// Length of the line, ns.
    pub ns: u64,
    /// Length of the line, ticks.
    pub ticks: u64,
}

impl TickLine {
    /// Returns the same as [`ClockTable::tick_to_epoch`], or None if this line does not suffice.
    #[inline]
    pub fn epoch(&self, tick: u64) -> Option<i64> {
        if tick < self.from || tick >= self.to {
            return None;
        }
        let ns = (tick - self.from).checked_mul(self.ns)? / self.ticks;
        self.epoch.checked_add_unsigned(ns)
    }
}
