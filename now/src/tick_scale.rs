//! The duration of a tick of the CPU's counter, for programs that convert differences of stamps.

use std::sync::OnceLock;

use ppt_clock::ClockId;

use crate::clocks::{bracket, read};
use crate::counter::EXISTS;

/// Minimum time between the two readings, ns. A reading is off by about 30 ns, so the rate is
/// within 30 ppm; a bucket of a histogram is a thousand times as wide.
const APART: u64 = 2_000_000;

/// Ticks and CLOCK_MONOTONIC at one moment.
#[derive(Clone, Copy)]
struct TickMoment {
    tick: u64,
    ns: u64,
}

static FIRST: OnceLock<TickMoment> = OnceLock::new();

/// Takes the first of the two readings that [`tick_scale`] compares, unless it was already taken.
/// Time that passes before the call of [`tick_scale`] shortens its wait.
pub fn begin_tick_scale() {
    if EXISTS {
        FIRST.get_or_init(now);
    }
}

/// Nanoseconds per tick of the CPU's counter, times 2^32. `None` if the CPU has no counter, or it
/// does not advance. Waits until 2 ms after [`begin_tick_scale`].
pub fn tick_scale() -> Option<u64> {
    begin_tick_scale();
    let first = *FIRST.get()?;
    loop {
        let last = now();
        let ns = last.ns.saturating_sub(first.ns);
        if ns >= APART {
            return scale(last.tick.checked_sub(first.tick)?, ns);
        }
        std::thread::sleep(std::time::Duration::from_nanos(APART - ns));
    }
}

fn now() -> TickMoment {
    let reading = bracket(ClockId::Tick, ClockId::Monotonic, read);
    let half = reading.a_after.saturating_sub(reading.a_before) / 2;
    TickMoment { tick: reading.a_before + half, ns: reading.b_value }
}

fn scale(ticks: u64, ns: u64) -> Option<u64> {
    let scale = (u128::from(ns) << 32).checked_div(ticks.into())?;
    u64::try_from(scale).ok().filter(|scale| *scale > 0)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_scale_is_nanoseconds_in_a_tick() {
        assert_eq!(scale(1_000, 1_000), Some(1 << 32));
        assert_eq!(scale(25_000_000, 1_000_000_000), Some(40 << 32));
        assert_eq!(scale(3_000_000_000, 1_000_000_000), Some((1 << 32) / 3));
        assert_eq!((scale(0, 5), scale(u64::MAX, 1)), (None, None));
    }

    #[test]
    fn it_converts_what_the_counter_shows() {
        let Some(scale) = tick_scale() else { return };
        let before = now();
        std::thread::sleep(std::time::Duration::from_millis(5));
        let after = now();
        let converted = (u128::from(after.tick - before.tick) * u128::from(scale)) >> 32;
        let off = (converted as i128 - i128::from(after.ns - before.ns)).unsigned_abs();
        // If a machine deschedules the CPU between the two readings of one moment, that widens it.
        assert!(off < u128::from(after.ns - before.ns) / 100, "off by {off} ns");
    }
}
