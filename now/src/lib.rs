//! What this host has now: its clocks (the CPU's counter, whether it can be trusted, and the kernel's
//! clocks), and the memory that control groups leave.

mod clocks;
mod counter;
mod memory_groups;
mod tick_scale;
mod trust;

pub use clocks::{Clocks, bracket, monotonic, read, realtime, realtime_offset};
pub use counter::{CpuCounter, ticks};
pub use memory_groups::{MemoryGroup, memory_groups};
pub use tick_scale::{begin_tick_scale, tick_scale};
pub use trust::{Distrust, reads_the_counter, trusted};
