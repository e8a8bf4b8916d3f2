//! Errors of sets and tables.

use std::path::PathBuf;

use ppt_capture::CaptureError;
use ppt_capture::sync::SyncError;
use ppt_capture::times::TimesError;
use thiserror::Error;

/// Why a set of captures cannot be opened or queried.
#[derive(Debug, Error, strum::IntoStaticStr, strum::VariantNames)]
#[strum(serialize_all = "kebab-case")]
pub enum SetError {
    /// No capture was named.
    #[error("no capture is named")]
    NoCapture,
    /// A pattern matches nothing, or is invalid.
    #[error("nothing matches `{pattern}`{}", because(.why))]
    NoMatch {
        /// The pattern.
        pattern: String,
        /// Why it is invalid; None if it is valid and matches nothing.
        why: Option<String>,
    },
    /// A capture cannot be read.
    #[error("{}: {error}", path.display())]
    Capture {
        /// The capture.
        path: PathBuf,
        /// The reason.
        error: CaptureError,
    },
    /// A file of clock readings cannot be read.
    #[error("{}: {fault}", path.display())]
    #[strum(serialize = "bad-sync")]
    Sync {
        /// The file.
        path: PathBuf,
        /// The reason.
        fault: SyncFault,
    },
    /// A file of clock readings has no host and boot of a capture.
    #[error(
        "{}: no capture is of a host and a boot that it has readings of: it has {}, and captures are of {}",
        path.display(), readings.join(", "), captures.join(", ")
    )]
    #[strum(serialize = "sync-of-others")]
    OtherBoot {
        /// The file.
        path: PathBuf,
        /// The hosts of its readings.
        readings: Vec<String>,
        /// The hosts of the captures.
        captures: Vec<String>,
    },
    /// Readings of clocks do not determine the times of a host.
    #[error(transparent)]
    #[strum(serialize = "bad-sync")]
    Times(TimesError),
    /// The host whose clock was wanted has neither a capture nor readings of clocks.
    #[error("no capture and no .sync file is of a host `{name}`; there are: {}", hosts_found.join(", "))]
    #[strum(serialize = "no-such-host")]
    Reference {
        /// The name of the wanted host.
        name: String,
        /// The hosts that have captures or readings.
        hosts_found: Vec<String>,
    },
    /// Two edge lines contradict each other.
    #[error("two edge lines contradict each other about `{from}` and `{to}`")]
    #[strum(serialize = "edges-differ")]
    Edges {
        /// The point from which the edges lead.
        from: String,
        /// The point to which the edges lead.
        to: String,
    },
    /// Frames of the same name do not fit into one table.
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
    /// The name of the frame, with its buffer.
    pub table: String,
    /// The column.
    pub column: String,
    /// A capture with the column.
    pub first: PathBuf,
    /// The type of the column in `first`.
    pub first_type: String,
    /// A capture in which the column has another type.
    pub second: PathBuf,
    /// The type of the column in `second`.
    pub second_type: String,
}

/// Why a file of clock readings cannot be read.
#[derive(Debug, Error)]
pub enum SyncFault {
    /// Reading the file failed.
    #[error(transparent)]
    Read(std::io::Error),
    /// The content is invalid.
    #[error(transparent)]
    Content(SyncError),
}

impl SetError {
    /// The short name of the message, under which `docs/troubleshooting.md` explains it.
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
    /// A capture cannot be read.
    #[error("{}: {error}", path.display())]
    Read {
        /// The capture.
        path: PathBuf,
        /// The reason.
        error: CaptureError,
    },
    /// The table has times of several hosts whose clocks are not related.
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
    /// One identity has too many edges.
    #[error(
        "{outs} points let out `{hash_type}` {value}, and {ins} take it in: each with each is too much"
    )]
    Hot {
        /// The hash type.
        hash_type: String,
        /// The identity.
        value: String,
        /// Number of frames that it leaves, of those read so far.
        outs: u64,
        /// Number of frames that it enters, of those read so far.
        ins: u64,
    },
    /// A time is too uncertain.
    #[error("a time is uncertain by {width} ns, more than clocks are ({limit} ns)")]
    Wide {
        /// The uncertainty of the time, in ns.
        width: i64,
        /// The largest allowed uncertainty, in ns.
        limit: i64,
    },
    /// The reader was cancelled.
    #[error("cancelled")]
    Cancelled,
    /// Columns of the wrong type or length; a bug.
    #[error(transparent)]
    Arrow(#[from] arrow_schema::ArrowError),
}
