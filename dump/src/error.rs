//! What can go wrong with a dump.

use std::io;

use ppt_capture::CaptureError;
use thiserror::Error;

/// Why a table could not be written.
#[derive(Debug, Error)]
pub enum DumpError {
    /// The capture cannot be read.
    #[error(transparent)]
    Capture(#[from] CaptureError),
    /// The output cannot be written; a closed pipe is `BrokenPipe`.
    #[error("could not write the table: {0}")]
    Output(#[source] io::Error),
    /// `-b` names nothing.
    #[error("no buffer is called `{name}`; the capture has: {}", list(.there))]
    NoSuchBuffer {
        /// What was asked for.
        name: String,
        /// What there is.
        there: Vec<String>,
    },
    /// `--frame` names nothing.
    #[error("no frame is called `{name}`; the chosen buffers have: {}", list(.there))]
    NoSuchFrame {
        /// What was asked for.
        name: String,
        /// What there is.
        there: Vec<String>,
    },
}

impl DumpError {
    /// Whether the caller asked for what is not there: a mistake of usage.
    pub fn is_usage(&self) -> bool {
        matches!(self, DumpError::NoSuchBuffer { .. } | DumpError::NoSuchFrame { .. })
    }
}

fn list(names: &[String]) -> String {
    if names.is_empty() { "none".to_owned() } else { names.join(", ") }
}
