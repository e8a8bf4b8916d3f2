//! Arguments of the flight recorder.

use std::time::Duration;

use clap::Args as ClapArgs;
use ppt_text::argument;

/// What is kept in memory until something happens.
#[derive(ClapArgs, Clone, Debug, Default)]
#[command(next_help_heading = "Flight recorder")]
pub(crate) struct Flight {
    /// Keep the frames of the last TIME in memory. When something triggers, write those around it as a
    /// capture into the folder -o. `ppt trigger` triggers by hand.
    #[arg(id = "flight", long, value_name = "TIME", value_parser = argument::duration,
          requires = "output",
          conflicts_with_all = ["max_size", "rotate", "keep", "matching", "force"])]
    pub(crate) time: Option<Duration>,
    /// Maximum memory for the frames of --flight.
    #[arg(id = "memory_flight", long = "memory-flight", value_name = "SIZE", value_parser = argument::size,
          default_value = "256M", requires = "flight")]
    pub(crate) memory: u64,
    /// What to write of the time before a trigger [default: all of --flight].
    #[arg(long, value_name = "TIME", value_parser = argument::duration, requires = "flight")]
    pub(crate) before: Option<Duration>,
    /// What to write of the time after a trigger.
    #[arg(long, value_name = "TIME", value_parser = argument::any_duration, default_value = "0s",
          requires = "flight")]
    pub(crate) after: Duration,
    /// Trigger at a frame of which this is true, such as "job.handle > 10ms" (repeatable).
    #[arg(long = "on", value_name = "EXPRESSION", requires = "flight")]
    pub(crate) on: Vec<String>,
    /// Trigger where frames were lost.
    #[arg(long, requires = "flight")]
    pub(crate) on_gap: bool,
    /// Trigger when a process ends, however it does.
    #[arg(long, requires = "flight")]
    pub(crate) on_exit: bool,
    /// Trigger if this is true of what was added to counters since they were read before, such as
    /// "errors > 0" (repeatable).
    #[arg(long, value_name = "EXPRESSION", requires = "flight")]
    pub(crate) on_counter: Vec<String>,
    /// After a trigger, ignore others for so long.
    #[arg(long, value_name = "TIME", value_parser = argument::any_duration, default_value = "0s",
          requires = "flight")]
    pub(crate) cooldown: Duration,
    /// Keep only the last N windows.
    #[arg(long, value_name = "N", default_value_t = 100, requires = "flight",
          value_parser = clap::value_parser!(u32).range(1..))]
    pub(crate) max: u32,
}
