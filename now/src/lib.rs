//! Reads the clocks of this host: the CPU's counter, whether it can be trusted, and the kernel's
//! clocks.

mod clocks;
mod counter;
mod tick_scale;
mod trust;

pub use clocks::{Clocks, bracket, monotonic, read, realtime, realtime_offset};
pub use counter::{CpuCounter, ticks};
pub use tick_scale::{begin_tick_scale, tick_scale};
pub use trust::{Distrust, reads_the_counter, trusted};
