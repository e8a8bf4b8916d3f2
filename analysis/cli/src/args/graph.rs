//! Arguments of `ppt graph`.

use std::path::PathBuf;
use std::str::FromStr;

use clap::{Args as ClapArgs, ValueEnum};
use ppt_query::Bound;

use super::captures::{Captures, Hosts, local, size, threads};
use super::output::{OutputArgs, formats};
use super::values::slowest;

/// The format of a graph.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum Drawing {
    /// For programs that lay out graphs.
    Dot,
    /// A picture for browsers.
    Svg,
}

#[derive(Debug, ClapArgs)]
pub struct Graph {
    /// Captures with points: files, patterns ('run*/*.bin'), names of rotated ones; `-` is stdin.
    #[arg(value_name = "CAPTURE", required = true, value_parser = local())]
    pub(crate) captures: Vec<PathBuf>,
    /// The point where paths begin: FRAME, or BUFFER.FRAME.
    #[arg(long, value_name = "POINT", requires = "to_point")]
    pub(crate) from: Option<String>,
    /// The point where they end.
    #[arg(long = "to", value_name = "POINT", requires = "from")]
    pub(crate) to_point: Option<String>,
    /// Number of slowest paths to show.
    #[arg(long, value_name = "N", default_value = "20", value_parser = slowest, requires = "from")]
    pub(crate) slowest: usize,
    /// Edge lines that count instead of those of the frame files.
    #[arg(long, value_name = "FILE", value_parser = local())]
    pub(crate) edges: Option<PathBuf>,
    /// Only what was captured from here on: a sequence number, a time since the start, or a time in UTC.
    #[arg(long, value_name = "WHERE", value_parser = Bound::from_str)]
    pub(crate) since: Option<Bound>,
    /// Only up to here, likewise.
    #[arg(long, value_name = "WHERE", value_parser = Bound::from_str)]
    pub(crate) until: Option<Bound>,
    /// Memory for the question: sorts that take more go to disk, everything else ends the question
    /// [default: half of what is free].
    #[arg(long, value_name = "SIZE", value_parser = size)]
    pub(crate) memory: Option<usize>,
    /// Threads that read [default: one for each CPU].
    #[arg(long, value_name = "N", value_parser = threads)]
    pub(crate) threads: Option<usize>,
    #[command(flatten)]
    pub(crate) hosts: Hosts,
    /// Draw the points instead.
    #[arg(long, value_name = "AS", conflicts_with_all = ["from", "format"])]
    pub(crate) draw: Option<Drawing>,
    /// Format [default: text on a terminal, else tsv].
    #[arg(long, value_name = "FORMAT", value_parser = formats("text"))]
    pub(crate) format: Option<String>,
    #[command(flatten)]
    pub(crate) to: OutputArgs,
}

impl Graph {
    pub(crate) fn captures(&self) -> Captures {
        Captures {
            captures: self.captures.clone(),
            buffers: Vec::new(),
            from: self.since,
            to: self.until,
            memory: self.memory,
            threads: self.threads,
            no_pushdown: false,
            hosts: self.hosts.clone(),
        }
    }
}
