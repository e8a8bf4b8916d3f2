//! Arguments of `ppt demo`.

use std::time::Duration;

use clap::{Args as ClapArgs, ValueEnum};
use ppt_text::argument;

/// A program that `ppt demo` shows.
#[derive(Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum DemoProgram {
    /// A game server with 70 users, and the table of its frames.
    Game,
    /// A server with slow requests, and their cause: a lock that is held during a write to a slow disk.
    Slow,
}

#[derive(ClapArgs)]
pub(crate) struct Demo {
    /// The program to show.
    #[arg(value_enum, value_name = "PROGRAM", default_value = "game")]
    pub(crate) program: DemoProgram,
    /// Number of simulated users [default: 70; of `slow`: 8].
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..=500))]
    pub(crate) users: Option<u32>,
    /// How long to capture [default: 5s; of `slow`: 3s].
    #[arg(short, long, value_name = "TIME", value_parser = argument::duration)]
    pub(crate) duration: Option<Duration>,
}
