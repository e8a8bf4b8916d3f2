//! What can go wrong with a set of captures.

use std::path::PathBuf;

use ppt_capture::CaptureError;
use ppt_capture::sync::SyncError;
use ppt_capture::times::TimesError;
use thiserror::Error;

/// Why captures cannot be asked.
#[derive(Debug, Error, strum::IntoStaticStr, strum::VariantNames)]
#[strum(serialize_all = "kebab-case")]
pub enum SetError {
    /// Nothing was named.
    #[error("no capture is named")]
    NoCapture,
    /// A pattern that matches nothing, or is none.
    #[error("nothing matches `{pattern}`{}", because(.why))]
    NoMatch {
        /// The pattern.
        pattern: String,
        /// What is wrong with it, if it is wrong.
        why: Option<String>,
    },
    /// One of them cannot be read.
    #[error("{}: {error}", path.display())]
    Capture {
        /// Which one.
        path: PathBuf,
        /// Why.
        error: CaptureError,
    },
    /// Readings of clocks that cannot be read.
    #[error("{}: {fault}", path.display())]
    #[strum(serialize = "bad-sync")]
    Sync {
        /// Which file.
        path: PathBuf,
        /// Why.
        fault: SyncFault,
    },
    /// Readings of clocks that are of none of the captures.
    #[error(
        "{}: no capture is of a host and a boot that it has readings of: it has {}, and captures are of {}",
        path.display(), readings.join(", "), captures.join(", ")
    )]
    #[strum(serialize = "sync-of-others")]
    OtherBoot {
        /// Which file.
        path: PathBuf,
        /// The hosts of its readings.
        readings: Vec<String>,
        /// The hosts of the captures.
        captures: Vec<String>,
    },
    /// Readings of clocks that say nothing of a host.
    #[error(transparent)]
    #[strum(serialize = "bad-sync")]
    Times(TimesError),
    /// The host whose clock was wanted has neither a capture nor readings of clocks.
    #[error("no capture and no .sync file is of a host `{name}`; there are: {}", there.join(", "))]
    #[strum(serialize = "no-such-host")]
    Reference {
        /// What was wanted.
        name: String,
        /// What there is.
        there: Vec<String>,
    },
    /// Edge lines that say different things.
    #[error("two edge lines say different things of `{from}` and `{to}`")]
    #[strum(serialize = "edges-differ")]
    Edges {
        /// The point that comes first.
        from: String,
        /// The one that follows.
        to: String,
    },
    /// Frames of one name that do not fit into one table.
    #[error(transparent)]
    #[strum(serialize = "captures-differ")]
    Conflict(Box<Conflict>),
}

/// A column that has two types.
#[derive(Debug, Error)]
#[error(
    "`{table}` has a column `{column}` of two types: {first_type} in {}, {second_type} in {}",
    first.display(), second.display()
)]
pub struct Conflict {
    /// The frame, with its buffer.
    pub table: String,
    /// The column.
    pub column: String,
    /// A capture with that column.
    pub first: PathBuf,
    /// What it is there.
    pub first_type: String,
    /// Another one.
    pub second: PathBuf,
    /// What it is there.
    pub second_type: String,
}

/// Why a file of readings of clocks cannot be read.
#[derive(Debug, Error)]
pub enum SyncFault {
    /// It cannot be read.
    #[error(transparent)]
    Read(std::io::Error),
    /// It does not say what such a file says.
    #[error(transparent)]
    Content(SyncError),
}

impl SetError {
    /// The short name of what is said, under which `docs/troubleshooting.md` explains it.
    pub fn code(&self) -> &'static str {
        match self {
            SetError::Capture { error, .. } => error.code(),
            other => other.into(),
        }
    }
}

fn because(why: &Option<String>) -> String {
    why.as_ref().map_or_else(String::new, |why| format!(": {why}"))
}

/// Why rows cannot be read.
#[derive(Debug, Error)]
pub enum TableError {
    /// The capture cannot be read.
    #[error("{}: {error}", path.display())]
    Read {
        /// Which one.
        path: PathBuf,
        /// Why.
        error: CaptureError,
    },
    /// Times of several hosts, which nothing relates to each other.
    #[error(
        "`{table}` has frames of {}, and nothing says how their clocks compare",
        hosts.join(" and ")
    )]
    Incomparable {
        /// The table.
        table: String,
        /// The hosts, each with its boot.
        hosts: Vec<String>,
    },
    /// One identity would have too many edges.
    #[error(
        "{outs} points let out `{of}` {value}, and {ins} take it in: each with each is too much"
    )]
    Hot {
        /// The hash type.
        of: String,
        /// The identity.
        value: String,
        /// How many let it out, as far as was read.
        outs: u64,
        /// How many take it in.
        ins: u64,
    },
    /// Nobody knows when something was, not even about.
    #[error("a time is uncertain by {width} ns, more than clocks are ({limit} ns)")]
    Wide {
        /// How uncertain it is.
        width: i64,
        /// How uncertain it may be.
        limit: i64,
    },
    /// Nobody waits for them any more.
    #[error("cancelled")]
    Cancelled,
    /// Arrow refuses the columns; a bug.
    #[error(transparent)]
    Arrow(#[from] arrow_schema::ArrowError),
}
