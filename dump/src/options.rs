//! What is wanted of a capture.

use std::fmt;
use std::time::Duration;

/// What a table looks like.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum Format {
    /// Tab-separated values.
    #[default]
    Tsv,
    /// Comma-separated values.
    Csv,
    /// An object per line.
    JsonLines,
}

/// What is wanted of a capture.
#[derive(Debug, Clone, Default)]
pub struct Options {
    /// Buffers by name (`NAME[#hash8][@object]`); none: all.
    pub buffers: Vec<String>,
    /// The only kind of frame that is wanted.
    pub frame: Option<String>,
    /// What the table looks like.
    pub format: Format,
    /// Gaps instead of frames: `buffer`, `segment`, `ring`, `first_seq`, `count`, `cause`. Of the
    /// options above only `frame` has no meaning for them, though it must name a frame.
    pub gaps: bool,
    /// The first row that is wanted; None: from the start.
    pub from: Option<Bound>,
    /// The last row that is wanted; None: to the end.
    pub to: Option<Bound>,
}

/// Where the wanted part of a capture begins or ends; belongs to it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Bound {
    /// The frame of this sequence number, in each ring.
    Seq(u64),
    /// So long after the capture began.
    Since(Duration),
    /// This time, ns since the epoch.
    Epoch(u64),
}

impl fmt::Display for Bound {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Bound::Seq(seq) => write!(f, "frame {seq}"),
            Bound::Since(time) => write!(f, "{time:?} after the start"),
            Bound::Epoch(ns) => {
                write!(f, "{}.{:09} s since the epoch", ns / 1_000_000_000, ns % 1_000_000_000)
            }
        }
    }
}
