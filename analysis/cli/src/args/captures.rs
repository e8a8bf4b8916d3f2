//! Which captures a command reads, and how much it may take for that.

use std::path::PathBuf;
use std::str::FromStr;

use clap::Args as ClapArgs;
use clap::builder::{PathBufValueParser, TypedValueParser};
use ppt_query::Bound;
use ppt_text::argument;

/// The captures that are asked, and the part of them.
#[derive(Debug, ClapArgs)]
pub struct Captures {
    /// Captures: files, patterns ('run*/*.bin'), names of rotated ones; `-` is stdin.
    #[arg(value_name = "CAPTURE", required = true, value_parser = local())]
    pub(crate) captures: Vec<PathBuf>,
    /// Only this buffer (may be given again) [default: all].
    #[arg(short, long = "buffer", value_name = "BUFFER")]
    pub(crate) buffers: Vec<String>,
    /// Only from here on: a sequence number (500), a time since the first capture began (1.5s), or a
    /// time in UTC (2026-11-21T15:04:05.5Z, or @ and seconds since the epoch).
    #[arg(long, value_name = "WHERE", value_parser = Bound::from_str)]
    pub(crate) from: Option<Bound>,
    /// Only up to here, likewise; what is there belongs to it.
    #[arg(long, value_name = "WHERE", value_parser = Bound::from_str)]
    pub(crate) to: Option<Bound>,
    /// Memory for the question: sorts, joins and groups that take more go to disk, percentiles are given
    /// to three digits, and everything else ends the question [default: half of what is free; for the
    /// values of percentiles at most 1G, in a report 256M].
    #[arg(long, value_name = "SIZE", value_parser = size)]
    pub(crate) memory: Option<usize>,
    /// Threads that read [default: one for each CPU].
    #[arg(long, value_name = "N", value_parser = threads)]
    pub(crate) threads: Option<usize>,
    /// Read everything: leave nothing out by the heads of chunks.
    #[arg(long, hide = true)]
    pub(crate) no_pushdown: bool,
    #[command(flatten)]
    pub(crate) hosts: Hosts,
}

/// The host whose clock gives the times, where captures are of several hosts.
#[derive(Debug, Clone, Default, ClapArgs)]
pub struct Hosts {
    /// Readings of clocks by `ppt sync` (may be given again) [default: all *.sync beside captures of
    /// several hosts].
    #[arg(long, value_name = "FILE", value_parser = local())]
    pub(crate) sync: Vec<PathBuf>,
    /// The host whose clock gives the times [default: that of the first capture].
    #[arg(long, value_name = "HOST")]
    pub(crate) reference: Option<String>,
}

impl Hosts {
    /// Whether there are options for captures of several hosts.
    pub(crate) fn is_given(&self) -> bool {
        !self.sync.is_empty() || self.reference.is_some()
    }
}

impl Captures {
    pub(crate) fn paths(&self) -> Vec<PathBuf> {
        self.captures.clone()
    }
}

/// A path of this machine.
pub fn local() -> impl TypedValueParser<Value = PathBuf> {
    PathBufValueParser::new().try_map(|path| {
        if is_address(&path.to_string_lossy()) {
            Err("this is of files of this machine: name a file, and copy it with the tools of the \
                     store; `ppt export --follow` alone writes to object stores")
        } else {
            Ok(path)
        }
    })
}

/// Whether a text is an address, such as `s3://bucket/key`.
pub(crate) fn is_address(text: &str) -> bool {
    text.split_once("://").is_some_and(|(scheme, _)| {
        let known = |c: char| c.is_ascii_alphanumeric() || "+-.".contains(c);
        scheme.starts_with(|c: char| c.is_ascii_alphabetic()) && scheme.chars().all(known)
    })
}

pub(super) fn threads(text: &str) -> Result<usize, String> {
    match text.parse() {
        Ok(threads @ 1..=1024) => Ok(threads),
        _ => Err("from 1 to 1024".to_owned()),
    }
}

/// Bytes: see [`argument::size`].
pub(super) fn size(text: &str) -> Result<usize, String> {
    usize::try_from(argument::size(text)?).map_err(|error| error.to_string())
}
