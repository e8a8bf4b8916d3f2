//! Stamps of `option time tsc`: the only place that reads the CPU's counter.

use std::sync::atomic::Ordering::Relaxed;

use ppt_segment::abi::clock_kind::{STAMP_IS_MONOTONIC, TICKS};

use super::clock::clock;
use super::control::{Control, word};

/// The CPU's counter where the agent found that it can be trusted, else the monotonic clock. Never
/// 0: the agent asks for a counter that has begun to count.
#[inline(always)]
pub fn stamp(control: &Control) -> u64 {
    // clock_kind and target_pid share a word.
    if word!(control, clock_kind).load(Relaxed) as u32 == TICKS { ticks() } else { monotonic() }
}

/// CLOCK_MONOTONIC, so marked that nobody takes it for ticks.
#[cold]
fn monotonic() -> u64 {
    STAMP_IS_MONOTONIC | clock(libc::CLOCK_MONOTONIC).nanoseconds() as u64
}

/// As it is, without a fence.
#[cfg(all(target_arch = "x86_64", not(ppt_ticks)))]
#[inline(always)]
fn ticks() -> u64 {
    // SAFETY: part of x86-64; touches no memory.
    unsafe { std::arch::x86_64::_rdtsc() }
}

/// As it is, without a fence.
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
