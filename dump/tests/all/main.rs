//! Tables of whole captures and of their parts, and what is said of readings of clocks.

mod dump;
mod support;
mod sync_info;
mod window;
mod windows;
