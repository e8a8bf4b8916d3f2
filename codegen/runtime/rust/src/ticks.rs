//! Stamps of `option time tsc`: the only place that reads the CPU's counter.

use std::sync::atomic::Ordering::Relaxed;

use ppt_segment::abi::clock_kind::{STAMP_IS_MONOTONIC, TICKS};

use super::clock::clock;
use super::control::{Control, word};

/// The CPU's counter if the agent found it reliable, otherwise the monotonic clock. It is never 0, as the agent
/// requires a counter that has begun to count.
#[inline(always)]
pub fn stamp(control: &Control) -> u64 {
    // clock_kind and target_pid share a word.
    if word!(control, clock_kind).load(Relaxed) as u32 == TICKS { ticks() } else { monotonic() }
}

/// The time between two stamps in ns. It is negative if the end came first, a stamp was not taken, the clock
/// changed between the two, or the length of a tick is unknown.
pub fn ns_between(control: &Control, start: u64, end: u64) -> i64 {
    length(word!(control, tick_scale).load(Relaxed), start, end)
}

fn length(tick_scale: u64, start: u64, end: u64) -> i64 {
    if start == 0 || end == 0 || (start ^ end) & STAMP_IS_MONOTONIC != 0 {
        return -1;
    }
    let difference = end.wrapping_sub(start) as i64;
    match (end & STAMP_IS_MONOTONIC, tick_scale) {
        (0, 0) => -1,
        (0, scale) => ((i128::from(difference) * i128::from(scale)) >> 32) as i64,
        _ => difference,
    }
}

/// CLOCK_MONOTONIC, marked so that it is not taken for ticks.
#[cold]
fn monotonic() -> u64 {
    STAMP_IS_MONOTONIC | clock(libc::CLOCK_MONOTONIC).nanoseconds() as u64
}

/// The counter, without a fence.
#[cfg(all(target_arch = "x86_64", not(ppt_ticks)))]
#[inline(always)]
fn ticks() -> u64 {
    // SAFETY: part of x86-64; touches no memory.
    unsafe { std::arch::x86_64::_rdtsc() }
}

/// The counter, without a fence.
#[cfg(all(target_arch = "aarch64", not(ppt_ticks)))]
#[inline(always)]
fn ticks() -> u64 {
    let ticks;
    // SAFETY: Linux lets programs read the virtual counter; no memory is touched.
    unsafe { std::arch::asm!("mrs {}, cntvct_el0", out(reg) ticks, options(nomem, nostack)) };
    ticks
}

/// `--cfg ppt_ticks` puts a function of the program in its place, for tests.
#[cfg(ppt_ticks)]
#[inline(always)]
fn ticks() -> u64 {
    // SAFETY: the program that asks for this defines it so.
    unsafe extern "C" {
        safe fn ppt_ticks() -> u64;
    }
    ppt_ticks()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lengths_are_of_two_stamps_of_one_clock() {
        let two_ns = 2 << 32;
        let third = (1 << 32) / 3;
        assert_eq!(length(two_ns, 100, 150), 100);
        assert_eq!(length(two_ns, 150, 100), -100, "counters of two CPUs may differ");
        assert_eq!(length(third, 1, 3_000_000_001), 999_999_999);
        assert_eq!(length(two_ns, 1, 1 << 61), (1 << 62) - 2, "no overflow");
        let mono = STAMP_IS_MONOTONIC;
        assert_eq!(length(two_ns, mono | 100, mono | 150), 50);
        assert_eq!(length(0, mono | 100, mono | 150), 50);
        for (scale, start, end) in
            [(two_ns, 0, 5), (two_ns, 5, 0), (two_ns, 5, mono | 9), (0, 100, 150)]
        {
            assert_eq!(length(scale, start, end), -1);
        }
    }
}
