//! What is known about time: pure arithmetic, no clock is read here.
//!
//! A [`ClockReading`] is one clock, read between two readings of another. A [`ClockTable`] draws
//! lines through those of one host: ticks to monotonic time, and that to the epoch. [`Stamps`] reads
//! the stamps of one chunk of frames by it.

#![forbid(unsafe_code)]

mod line;
mod reading;
mod stamps;
mod table;

pub use line::STAMP_IS_MONOTONIC;
pub use reading::{ClockId, ClockReading};
pub use stamps::{Stamps, TimeNamespace};
pub use table::{ClockTable, REALTIME_STEP_NS, TickStep};
