//! When a file gets its clock chunks.

use std::sync::atomic::Ordering::Relaxed;

use ppt_capture::REALTIME_STEP_NS;

use ppt_now::Clocks;

/// The first clock chunks come sooner: stamps of a capture that is cut off soon need two.
pub(crate) const FIRST_NS: u64 = 10_000_000;
/// From one clock chunk to the next, and at least between two drops chunks of a source.
const SECOND_NS: u64 = 1_000_000_000;

/// Clock chunks come about each second, and when realtime is stepped or ticks are distrusted.
#[derive(Debug)]
pub(crate) struct Cadence {
    /// ns of CLOCK_MONOTONIC.
    next: u64,
    /// From the next clock chunk to the one after it.
    every: u64,
    /// The file states that ticks are not trusted.
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

    /// A file begins.
    pub fn begin_file(&mut self) {
        (self.next, self.every) = (ppt_now::monotonic() + FIRST_NS, 10 * FIRST_NS);
    }

    /// When the next clock chunk is due at the latest, ns of CLOCK_MONOTONIC.
    pub fn next(&self) -> u64 {
        self.next
    }

    /// Whether a clock chunk is due; if so, it is taken to be written.
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
