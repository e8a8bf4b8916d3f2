//! What can go wrong.

use std::path::PathBuf;

use ppt_capture::CaptureError;
use ppt_output::OutputError;
use ppt_predicate::ExpressionError;
use ppt_tables::{SetError, TableError};
use thiserror::Error;

/// Why a view cannot answer.
#[derive(Debug, Error)]
pub enum ViewError {
    /// The captures cannot be opened.
    #[error(transparent)]
    Captures(#[from] SetError),
    /// Counters cannot be read.
    #[error(transparent)]
    Table(#[from] TableError),
    /// A capture cannot be read.
    #[error("{}: {error}", path.display())]
    Read {
        /// Which one.
        path: PathBuf,
        /// Why.
        error: CaptureError,
    },
    /// The index cannot be kept.
    #[error("{}: {error}", path.display())]
    Cache {
        /// The folder.
        path: PathBuf,
        /// Why.
        error: std::io::Error,
    },
    /// The index cannot be written.
    #[error(transparent)]
    Output(#[from] OutputError),
    /// There is no such row.
    #[error("there is no row `{0}`")]
    NoSuchRow(String),
    /// There is no such frame.
    #[error("there is no such frame")]
    NoSuchFrame,
    /// No frame can have what is looked for.
    #[error(transparent)]
    Expression(#[from] ExpressionError),
    /// Finding what matches takes too long.
    #[error(
        "what matches is not looked for in more than {most} frames at once: zoom in, and it is shown"
    )]
    TooManyFrames {
        /// How many.
        most: u64,
    },
    /// Nobody waits for the answer any more.
    #[error("cancelled")]
    Cancelled,
}
