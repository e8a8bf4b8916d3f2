//! Arguments of `ppt top` about what is shown.

use std::time::Duration;

use clap::Args as ClapArgs;

use super::captures::size;
use super::values::nanoseconds;

/// How `ppt top` shows a capture.
#[derive(Debug, ClapArgs)]
pub struct TopOptions {
    /// Print one table, and end.
    #[arg(long)]
    pub once: bool,
    /// Show threads first, or print them, instead of frames.
    #[arg(long)]
    pub(crate) threads: bool,
    /// How often to draw; of a process, how long to look before --once prints [default: 1s].
    #[arg(long, value_name = "TIME", value_parser = nanoseconds)]
    every: Option<i64>,
    /// Show only what has this text in its name.
    #[arg(long, value_name = "TEXT")]
    pub(crate) filter: Option<String>,
    /// How much of the latest frames to keep for the key `w`.
    #[arg(long, value_name = "SIZE", value_parser = size, default_value = "64M")]
    pub(crate) keep: usize,
}

impl TopOptions {
    pub(crate) fn every(&self) -> Duration {
        self.every.map_or(Duration::from_secs(1), |ns| Duration::from_nanos(ns.unsigned_abs()))
    }
}
