//! Clocks of the system.

use crate::time::Timespec;

/// The time of a clock by its number in clock_gettime(2); zero if there is none.
#[inline]
pub fn clock(number: i32) -> Timespec {
    let mut now = libc::timespec { tv_sec: 0, tv_nsec: 0 };
    // SAFETY: `now` is a timespec of our own.
    unsafe { libc::clock_gettime(number, &mut now) };
    Timespec { tv_sec: now.tv_sec, tv_nsec: now.tv_nsec }
}
