//! Reading clocks: one, and two at once.

use std::sync::Arc;
use std::sync::atomic::AtomicBool;
use std::sync::atomic::Ordering::Relaxed;

use nix::time::{ClockId as SystemClock, clock_gettime};
use ppt_capture::{ClockId, ClockReading};

/// Readings of which the tightest is taken, beside the first.
const TRIES: usize = 8;

/// CLOCK_MONOTONIC, ns.
pub(crate) fn monotonic() -> u64 {
    read(SystemClock::CLOCK_MONOTONIC)
}

/// CLOCK_REALTIME, ns.
pub(crate) fn realtime() -> u64 {
    read(SystemClock::CLOCK_REALTIME)
}

/// CLOCK_REALTIME minus CLOCK_MONOTONIC, ns: changes when realtime is stepped.
pub(crate) fn realtime_offset() -> i64 {
    realtime().wrapping_sub(monotonic()) as i64
}

/// Reads the clocks of a capture.
#[derive(Debug, Clone)]
pub(crate) struct Clocks {
    /// Reads the CPU's counter.
    pub ticks: fn() -> u64,
    /// The system does not trust it.
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

    /// The tightest of a few readings: an interrupt may widen one.
    fn reading(&self, a: ClockId, b: ClockId) -> ClockReading {
        let once = || {
            let a_before = self.value(a);
            let b_value = self.value(b);
            let a_after = self.value(a);
            ClockReading { a, a_before, b, b_value, a_after, distrusted: false }
        };
        tightest(once)
    }

    fn value(&self, clock: ClockId) -> u64 {
        match clock {
            ClockId::Tick => (self.ticks)(),
            ClockId::Monotonic => monotonic(),
            ClockId::MonotonicRaw => read(SystemClock::CLOCK_MONOTONIC_RAW),
            ClockId::Boottime => read(SystemClock::CLOCK_BOOTTIME),
            ClockId::Realtime => realtime(),
        }
    }
}

fn tightest(once: impl Fn() -> ClockReading) -> ClockReading {
    let mut best = once();
    for _ in 0..TRIES {
        let next = once();
        if next.a_after.wrapping_sub(next.a_before) < best.a_after.wrapping_sub(best.a_before) {
            best = next;
        }
    }
    best
}

/// 0 for a clock that the system does not have, which Linux since 2.6.39 never says of these.
fn read(clock: SystemClock) -> u64 {
    clock_gettime(clock).map_or(0, |time| {
        (time.tv_sec() as u64).wrapping_mul(1_000_000_000).wrapping_add(time.tv_nsec() as u64)
    })
}

/// Whether there is a counter.
const EXISTS: bool = cfg!(any(target_arch = "x86_64", target_arch = "aarch64"));

/// The CPU's counter, which generated code reads, too; here not before what precedes it is done.
#[cfg(target_arch = "x86_64")]
pub fn ticks() -> u64 {
    use std::arch::x86_64::{_mm_lfence, _rdtsc};
    // SAFETY: both instructions are part of x86-64 and touch no memory; CR4.TSD, which bars the
    // second from user code, is not set by Linux unless a process asks for it (prctl).
    unsafe {
        _mm_lfence();
        _rdtsc()
    }
}

/// The CPU's counter, which generated code reads, too; here not before what precedes it is done.
#[cfg(target_arch = "aarch64")]
pub fn ticks() -> u64 {
    let ticks;
    // SAFETY: Linux lets user code read the virtual counter (CNTKCTL_EL1.EL0VCTEN); the
    // instructions touch no memory.
    unsafe {
        std::arch::asm!("isb", "mrs {}, cntvct_el0", out(reg) ticks, options(nomem, nostack))
    };
    ticks
}

/// No counter that targets could read.
#[cfg(not(any(target_arch = "x86_64", target_arch = "aarch64")))]
pub fn ticks() -> u64 {
    0
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
