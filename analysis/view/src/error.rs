//! The errors of a view.

use std::path::PathBuf;

use ppt_capture::CaptureError;
use ppt_output::OutputError;
use ppt_predicate::ExpressionError;
use ppt_tables::{SetError, TableError};
use thiserror::Error;

/// The cause for which a view cannot answer.
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
        /// The path of the capture.
        path: PathBuf,
        /// The error of the file or its content.
        error: CaptureError,
    },
    /// The folder of indexes cannot be used.
    #[error("{}: {error}", path.display())]
    IndexFolder {
        /// The path of the folder.
        path: PathBuf,
        /// The error of the system.
        error: std::io::Error,
    },
    /// The index cannot be written.
    #[error(transparent)]
    Output(#[from] OutputError),
    /// The view has no row with this text.
    #[error("there is no row `{0}`")]
    NoSuchRow(String),
    /// The view has no frame with this name.
    #[error("there is no such frame")]
    NoSuchFrame,
    /// The expression fits no kind of frames.
    #[error(transparent)]
    Expression(#[from] ExpressionError),
    /// A filter would have to read too many frames.
    #[error("a filter searches at most {max} frames at once: zoom in")]
    TooManyFrames {
        /// The most frames that are read for one window.
        max: u64,
    },
    /// The caller cancelled the request.
    #[error("cancelled")]
    Cancelled,
}
