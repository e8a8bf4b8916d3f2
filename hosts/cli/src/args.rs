//! The command line of `ppt sync` and `ppt lab`.

use std::ffi::OsString;
use std::path::PathBuf;
use std::time::Duration;

use clap::{Args as ClapArgs, Subcommand};
use ppt_hosts::probe::RATES;
use ppt_text::argument;

/// A command about several hosts.
#[derive(Debug, Subcommand)]
pub enum HostsCommand {
    /// Read how the clocks of other hosts go.
    Sync(Sync),
    /// Run an experiment over several hosts from one file.
    Lab(Lab),
}

#[derive(Debug, ClapArgs)]
#[command(args_conflicts_with_subcommands = true, subcommand_negates_reqs = true)]
pub struct Sync {
    #[command(subcommand)]
    pub(crate) command: Option<SyncCommand>,
    /// Hosts where `ppt sync serve` runs: HOST or HOST:PORT; an IPv6 address stands in brackets.
    #[arg(value_name = "HOST", required = true)]
    pub(crate) hosts: Vec<String>,
    /// The key of all sides: a file of 16 bytes or more that only you can read.
    #[arg(long, value_name = "FILE")]
    pub(crate) key: Option<PathBuf>,
    /// Duration of the measurement; Ctrl-C ends it, too [default: until Ctrl-C].
    #[arg(short, long, value_name = "TIME", value_parser = argument::duration)]
    pub(crate) duration: Option<Duration>,
    /// Pairs of probes a second, to each host.
    #[arg(long, value_name = "N", default_value = "10", value_parser = rate)]
    pub(crate) rate: f64,
    /// Record true time from chronyd of this host, too.
    #[arg(long)]
    pub(crate) chrony: bool,
    /// Record true time from ptp4l of this host, too: its log, or a FIFO with that.
    #[arg(long, value_name = "LOG")]
    pub(crate) ptp4l: Option<PathBuf>,
    /// Keep the edges of a pulse per second, too: /sys/class/pps/pps0/assert, a file that grows, or a
    /// FIFO (may be given again).
    #[arg(long, value_name = "FILE")]
    pub(crate) pps: Vec<PathBuf>,
    /// The file of readings: all commands find it next to captures.
    #[arg(short, long, value_name = "FILE", default_value = "clocks.sync")]
    pub(crate) output: PathBuf,
    /// Overwrite the file if it exists.
    #[arg(long)]
    pub(crate) force: bool,
    /// Name of this host, as in its captures [default: its host name].
    #[arg(long, value_name = "NAME")]
    pub(crate) name: Option<String>,
}

#[derive(Debug, Subcommand)]
pub enum SyncCommand {
    /// Answer hosts that probe the clocks of this host and have the key.
    Serve(Serve),
}

#[derive(Debug, ClapArgs)]
pub struct Serve {
    /// UDP address to answer at: ADDRESS or ADDRESS:PORT; an IPv6 address stands in brackets [default:
    /// 0.0.0.0:7787].
    #[arg(value_name = "ADDRESS")]
    pub(crate) address: Option<String>,
    /// The key of all sides: a file of 16 bytes or more that only you can read.
    #[arg(long, value_name = "FILE")]
    pub(crate) key: Option<PathBuf>,
    /// Name of this host, as in its captures [default: its host name].
    #[arg(long, value_name = "NAME")]
    pub(crate) name: Option<String>,
}

#[derive(Debug, ClapArgs)]
pub struct Lab {
    #[command(subcommand)]
    pub(crate) command: LabCommand,
}

#[derive(Debug, Subcommand)]
pub enum LabCommand {
    /// Say what would run, on which host, and in which order.
    Plan {
        /// The experiment (TOML).
        #[arg(value_name = "FILE")]
        file: PathBuf,
    },
    /// Run an experiment: all files and a manifest are in one new folder.
    Run {
        /// The experiment (TOML).
        #[arg(value_name = "FILE")]
        file: PathBuf,
        #[command(flatten)]
        how: LabRun,
    },
    /// Run an experiment again, as the manifest of its results has it.
    Rerun {
        /// The folder of the results.
        #[arg(value_name = "FOLDER")]
        folder: PathBuf,
        #[command(flatten)]
        how: LabRun,
    },
    /// Show the differences between two results. The status is 1 if more than contents of files differs.
    Diff {
        /// A folder of results.
        #[arg(value_name = "A")]
        a: PathBuf,
        /// Another one.
        #[arg(value_name = "B")]
        b: PathBuf,
    },
    /// Help on a host: `ppt lab run` starts this, and talks to it over a pipe.
    #[command(hide = true)]
    Host {
        #[arg(trailing_var_arg = true, allow_hyphen_values = true)]
        arguments: Vec<OsString>,
    },
}

#[derive(Debug, ClapArgs)]
pub struct LabRun {
    /// A new folder for the results [default: NAME-1, NAME-2, …].
    #[arg(short, long, value_name = "FOLDER")]
    pub(crate) output: Option<PathBuf>,
    /// A word for every ssh, such as -Fconfig or -p2222 (may be given again).
    #[arg(long, value_name = "WORD", allow_hyphen_values = true)]
    pub(crate) ssh: Vec<OsString>,
}

fn rate(text: &str) -> Result<f64, String> {
    let known = text.parse().ok().filter(|rate| RATES.contains(rate));
    known.ok_or_else(|| format!("a rate is a number from {} to {}", RATES.start(), RATES.end()))
}
