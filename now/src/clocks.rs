//! Reads one clock, or two at once.

use std::sync::Arc;
use std::sync::atomic::AtomicBool;
use std::sync::atomic::Ordering::Relaxed;

use nix::time::{ClockId as SystemClock, clock_gettime};
use ppt_clock::{ClockId, ClockReading};

use crate::counter::{EXISTS, ticks};

/// Number of readings in addition to the first, of which the tightest is used.
const TRIES: usize = 8;

/// CLOCK_MONOTONIC, ns.
pub fn monotonic() -> u64 {
    system(SystemClock::CLOCK_MONOTONIC)
}

/// CLOCK_REALTIME, ns.
pub fn realtime() -> u64 {
    system(SystemClock::CLOCK_REALTIME)
}

/// CLOCK_REALTIME minus CLOCK_MONOTONIC, ns. It changes when realtime is stepped.
pub fn realtime_offset() -> i64 {
    realtime().wrapping_sub(monotonic()) as i64
}

/// Reads the clocks of a capture.
#[derive(Debug, Clone)]
pub struct Clocks {
    /// Reads the CPU's counter.
    pub ticks: fn() -> u64,
    /// Set if the system does not trust it.
    pub distrusted: Arc<AtomicBool>,
}

impl Clocks {
    /// Bracketed readings of every clock that frames may hold.
    pub fn readings(&self) -> Vec<ClockReading> {
        let mut readings = vec![
            self.reading(ClockId::Monotonic, ClockId::Realtime),
            self.reading(ClockId::Monotonic, ClockId::Boottime),
            self.reading(ClockId::Monotonic, ClockId::MonotonicRaw),
        ];
        if EXISTS {
            let reading = self.reading(ClockId::Tick, ClockId::Monotonic);
            let distrusted = self.distrusted.load(Relaxed);
            readings.push(ClockReading { distrusted, ..reading });
        }
        readings
    }

    fn reading(&self, a: ClockId, b: ClockId) -> ClockReading {
        bracket(a, b, |clock| match clock {
            ClockId::Tick => (self.ticks)(),
            clock => read(clock),
        })
    }
}

/// Reads `b` between two readings of `a`. Uses the tightest of several tries, because an interrupt
/// may widen one.
pub fn bracket(a: ClockId, b: ClockId, value: impl Fn(ClockId) -> u64) -> ClockReading {
    let once = || {
        let a_before = value(a);
        let b_value = value(b);
        let a_after = value(a);
        ClockReading { a, a_before, b, b_value, a_after, distrusted: false }
    };
    let mut best = once();
    for _ in 0..TRIES {
        let next = once();
        if next.a_after.wrapping_sub(next.a_before) < best.a_after.wrapping_sub(best.a_before) {
            best = next;
        }
    }
    best
}

/// The current value of a clock.
pub fn read(clock: ClockId) -> u64 {
    match clock {
        ClockId::Tick => ticks(),
        ClockId::Monotonic => system(SystemClock::CLOCK_MONOTONIC),
        ClockId::MonotonicRaw => system(SystemClock::CLOCK_MONOTONIC_RAW),
        ClockId::Boottime => system(SystemClock::CLOCK_BOOTTIME),
        ClockId::Realtime => system(SystemClock::CLOCK_REALTIME),
    }
}

/// 0 for a clock that the system lacks, which no Linux since 2.6.39 does for these.
fn system(clock: SystemClock) -> u64 {
    clock_gettime(clock).map_or(0, |time| {
        (time.tv_sec() as u64).wrapping_mul(1_000_000_000).wrapping_add(time.tv_nsec() as u64)
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn brackets_are_in_order() {
        let clocks = Clocks { ticks, distrusted: Arc::default() };
        for reading in clocks.readings() {
            assert!(reading.a_before <= reading.a_after, "{reading:?}");
            assert!(reading.b_value > 0, "{reading:?}");
        }
    }
}
