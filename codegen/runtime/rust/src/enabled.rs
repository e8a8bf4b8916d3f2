//! The writer on systems with ppt.

mod control;
mod descriptor;
mod exit;
mod fork;
mod hello;
mod loaded;
mod made;
mod mapped;
#[cfg(test)]
mod refuses;
mod shape;
mod slow;
mod table;
mod thread;
mod ticks;

pub use control::Control;
pub use descriptor::{Buffer, Descriptor, Layout};
pub use loaded::loaded;
pub use thread::{Thread, Write, begin, busy, prepare};
pub use ticks::stamp;

use crate::time::Timespec;

/// See [`crate::allow_attach`].
pub fn allow_attach() {
    // SAFETY: it takes numbers alone. Kernels without Yama refuse it, and need it not.
    unsafe { libc::prctl(libc::PR_SET_PTRACER, libc::PR_SET_PTRACER_ANY, 0, 0, 0) };
}

/// The clock of that number in clock_gettime(2); zero where there is none.
#[inline]
pub fn clock(number: i32) -> Timespec {
    let mut now = libc::timespec { tv_sec: 0, tv_nsec: 0 };
    // SAFETY: `now` is a timespec of our own.
    unsafe { libc::clock_gettime(number, &mut now) };
    Timespec { tv_sec: now.tv_sec, tv_nsec: now.tv_nsec }
}
