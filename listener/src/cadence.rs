//! Schedules a file's clock chunks.

use std::sync::atomic::Ordering::Relaxed;

use ppt_capture::REALTIME_STEP_NS;

use ppt_now::Clocks;

/// Delay of the second clock chunk, ns. It is short because the stamps of a capture that is cut off
/// early need two.
pub(crate) const FIRST_NS: u64 = 10_000_000;
/// Interval between clock chunks, and shortest interval between two drops chunks of a source, ns.
const SECOND_NS: u64 = 1_000_000_000;

/// Clock chunks come about once a second, and when realtime is stepped or ticks become distrusted.
#[derive(Debug)]
pub(crate) struct Cadence {
    /// ns of CLOCK_MONOTONIC.
    next: u64,
    /// Interval between the next clock chunk and the one after it, ns.
    every: u64,
    /// Whether the file states that ticks are not trusted.
    distrusted: bool,
    realtime_offset: i64,
}

impl Cadence {
    pub fn new(clocks: &Clocks) -> Self {
        Self {
            next: ppt_now::monotonic() + FIRST_NS,
            every: 10 * FIRST_NS,
            distrusted: clocks.distrusted.load(Relaxed),
            realtime_offset: ppt_now::realtime_offset(),
        }
    }

    /// Starts a file.
    pub fn begin_file(&mut self) {
        (self.next, self.every) = (ppt_now::monotonic() + FIRST_NS, 10 * FIRST_NS);
    }

    /// Deadline of the next clock chunk, ns of CLOCK_MONOTONIC.
    pub fn next(&self) -> u64 {
        self.next
    }

    /// Whether a clock chunk is due. If so, the caller must write it.
    pub fn is_due(&mut self, now: u64, clocks: &Clocks) -> bool {
        let offset = ppt_now::realtime_offset();
        let stepped = offset.abs_diff(self.realtime_offset) > REALTIME_STEP_NS;
        let distrusted = clocks.distrusted.load(Relaxed) != self.distrusted;
        let due = now >= self.next || stepped || distrusted;
        if due {
            self.realtime_offset = offset;
            self.distrusted |= distrusted;
            self.next = now + self.every;
            self.every = (10 * self.every).min(SECOND_NS);
        }
        due
    }
}
