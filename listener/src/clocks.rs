//! Reading clocks: one, and two at once.

use nix::sys::time::TimeSpec;
use nix::time::{ClockId as SystemClock, ClockNanosleepFlags, clock_gettime, clock_nanosleep};
use ppt_capture::{ClockId, ClockReading};

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

/// Sleeps until CLOCK_MONOTONIC shows `deadline` ns, or a signal comes.
pub(crate) fn sleep_until(deadline: u64) {
    let time = TimeSpec::new((deadline / 1_000_000_000) as _, (deadline % 1_000_000_000) as _);
    // Whatever ends the sleep early, the caller looks at the rings again.
    let _ =
        clock_nanosleep(SystemClock::CLOCK_MONOTONIC, ClockNanosleepFlags::TIMER_ABSTIME, &time);
}

/// Bracketed readings of every clock that frames may hold.
pub(crate) fn readings() -> Vec<ClockReading> {
    let mut readings = vec![
        reading(ClockId::Monotonic, ClockId::Realtime),
        reading(ClockId::Monotonic, ClockId::Boottime),
        reading(ClockId::Monotonic, ClockId::MonotonicRaw),
    ];
    if tick::EXISTS {
        readings.push(reading(ClockId::Tick, ClockId::Monotonic));
    }
    readings
}

/// The tightest of a few readings: an interrupt may widen one.
fn reading(a: ClockId, b: ClockId) -> ClockReading {
    let once = || {
        let a_before = value(a);
        let b_value = value(b);
        ClockReading { a, a_before, b, b_value, a_after: value(a) }
    };
    let mut best = once();
    for _ in 0..4 {
        let next = once();
        if next.a_after.wrapping_sub(next.a_before) < best.a_after.wrapping_sub(best.a_before) {
            best = next;
        }
    }
    best
}

fn value(clock: ClockId) -> u64 {
    match clock {
        ClockId::Tick => tick::now(),
        ClockId::Monotonic => monotonic(),
        ClockId::MonotonicRaw => read(SystemClock::CLOCK_MONOTONIC_RAW),
        ClockId::Boottime => read(SystemClock::CLOCK_BOOTTIME),
        ClockId::Realtime => realtime(),
    }
}

/// 0 for a clock that the system does not have, which Linux since 2.6.39 never says of these.
fn read(clock: SystemClock) -> u64 {
    clock_gettime(clock).map_or(0, |time| {
        (time.tv_sec() as u64).wrapping_mul(1_000_000_000).wrapping_add(time.tv_nsec() as u64)
    })
}

/// The CPU's counter, as generated code reads it.
#[cfg(target_arch = "x86_64")]
mod tick {
    use std::arch::x86_64::{_mm_lfence, _rdtsc};

    pub const EXISTS: bool = true;

    pub fn now() -> u64 {
        // SAFETY: both instructions are part of x86-64 and touch no memory; CR4.TSD, which bars
        // the second from user code, is not set by Linux unless a process asks for it (prctl).
        unsafe {
            // The counter is not read before what precedes it is done.
            _mm_lfence();
            _rdtsc()
        }
    }
}

/// The CPU's counter, as generated code reads it.
#[cfg(target_arch = "aarch64")]
mod tick {
    use std::arch::asm;

    pub const EXISTS: bool = true;

    pub fn now() -> u64 {
        let ticks;
        // SAFETY: Linux lets user code read the virtual counter (CNTKCTL_EL1.EL0VCTEN); the
        // instructions touch no memory.
        unsafe { asm!("isb", "mrs {}, cntvct_el0", out(reg) ticks, options(nomem, nostack)) };
        ticks
    }
}

#[cfg(not(any(target_arch = "x86_64", target_arch = "aarch64")))]
mod tick {
    pub const EXISTS: bool = false;

    pub fn now() -> u64 {
        0
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn brackets_are_in_order() {
        for reading in readings() {
            assert!(reading.a_before <= reading.a_after, "{reading:?}");
            assert!(reading.b_value > 0, "{reading:?}");
        }
    }
}
