//! Arguments of `ppt top`, as `ppt` passes them on.

use std::path::PathBuf;
use std::time::Duration;

use clap::Args as ClapArgs;

use super::captures::{local, size};
use super::values::nanoseconds;

#[derive(Debug, ClapArgs)]
pub(crate) struct Top {
    /// A capture that is being written; `-` is stdin.
    #[arg(value_name = "CAPTURE", value_parser = local())]
    pub(crate) capture: PathBuf,
    /// Print one table, and end.
    #[arg(long)]
    pub(crate) once: bool,
    /// Show threads first, or print them, instead of frames.
    #[arg(long)]
    pub(crate) threads: bool,
    /// How often to draw; of a stream, how long to look before --once prints [default: 1s].
    #[arg(long, value_name = "TIME", value_parser = nanoseconds)]
    every: Option<i64>,
    /// Show only what has this text in its name.
    #[arg(long, value_name = "TEXT")]
    pub(crate) filter: Option<String>,
    /// How much of the latest frames to keep for the key `w`.
    #[arg(long, value_name = "SIZE", value_parser = size, default_value = "64M")]
    pub(crate) keep: usize,
}

impl Top {
    pub(crate) fn every(&self) -> Duration {
        self.every.map_or(Duration::from_secs(1), |ns| Duration::from_nanos(ns.unsigned_abs()))
    }
}
