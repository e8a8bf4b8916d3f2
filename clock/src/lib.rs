//! Conversion of time stamps. This crate does arithmetic only and reads no clock.
//!
//! A [`ClockReading`] is one clock, read between two readings of another. A [`ClockTable`]
//! interpolates between the readings of one host. It converts ticks to monotonic time, and
//! monotonic time to the epoch. [`Stamps`] uses it to convert the stamps of one chunk of frames. An
//! [`Alignment`] moves the times of a host to the clock of another host.
//!
//! [`sync`] reads and writes `.sync` files: readings of the clocks of several hosts. [`times`]
//! compares those clocks: it converts ticks of one host to ticks of another one, with a bound.

#![forbid(unsafe_code)]

mod alignment;
mod line;
mod reading;
mod stamps;
pub mod sync;
mod ticks;
pub mod times;

pub use alignment::{Aligned, Alignment};
pub use line::STAMP_IS_MONOTONIC;
pub use reading::{ClockId, ClockReading};
pub use stamps::{Stamps, TimeNamespace};
pub use ticks::{ClockTable, REALTIME_STEP_NS, TickStep};
