//! The errors of a dump.

use std::io;
use std::path::PathBuf;

use ppt_capture::{Bound, CaptureError};
use ppt_predicate::ExpressionError as PredicateError;
use ppt_text::{did_you_mean, nearest};
use strum::VariantNames;
use thiserror::Error;

/// Why a table could not be written.
#[derive(Debug, Error, strum::IntoStaticStr, strum::VariantNames)]
#[strum(serialize_all = "kebab-case")]
pub enum DumpError {
    /// The capture cannot be read.
    #[error(transparent)]
    Capture(#[from] CaptureError),
    /// The output cannot be written; a closed pipe is `BrokenPipe`.
    #[error("could not write the table: {0}")]
    #[strum(serialize = "cannot-write")]
    Output(#[source] io::Error),
    /// `-b` names a buffer that is not in the capture.
    #[error("no buffer is called `{name}`{}; the capture has: {}", near(.name, .available), list(.available))]
    NoSuchBuffer {
        /// The requested name.
        name: String,
        /// The existing names.
        available: Vec<String>,
    },
    /// `--frame` names a frame that is not in the capture.
    #[error("no frame is called `{name}`{}; the chosen buffers have: {}", near(.name, .available), list(.available))]
    NoSuchFrame {
        /// The requested name.
        name: String,
        /// The existing names.
        available: Vec<String>,
    },
    /// `--frame` names spans or chains, which are rows of other tables.
    #[error("the table `{table}` is made of the frames `{frame}`, and a dump has frames alone")]
    MadeOfFrames {
        /// The requested table, such as `request_spans`.
        table: String,
        /// The kind of frames.
        frame: String,
    },
    /// The expression fits no frame of the capture.
    #[error(transparent)]
    #[strum(serialize = "where")]
    Predicate(#[from] PredicateError),
    /// The bounds exclude every row.
    #[error("no row can be between the bounds; {from} comes after {to}")]
    EmptyWindow {
        /// The lower bound.
        from: Bound,
        /// The upper bound.
        to: Bound,
    },
    /// A bound, or `--time rel`, counts from the start of the capture, which is unknown.
    #[error("the capture does not say when it began, because its first bytes are damaged")]
    NoStart,
    /// The rows do not fit into memory, and temporary files cannot be used.
    #[error("could not keep rows in {} to sort them: {error}", .folder.display())]
    #[strum(serialize = "cannot-sort")]
    Sort {
        /// The folder of the temporary files.
        folder: PathBuf,
        /// The failure.
        error: io::Error,
    },
}

impl DumpError {
    /// The name of the message in `docs/troubleshooting.md`.
    pub fn code(&self) -> &'static str {
        match self {
            DumpError::Capture(error) => error.code(),
            other => other.into(),
        }
    }

    /// All codes. `capture` stands for those of [`CaptureError`].
    pub fn codes() -> impl Iterator<Item = &'static str> {
        let ours = Self::VARIANTS.iter().copied().filter(|&code| code != "capture");
        ours.chain(CaptureError::codes())
    }

    /// Whether the caller requested something that does not exist, which is a usage error.
    pub fn is_usage(&self) -> bool {
        matches!(
            self,
            DumpError::NoSuchBuffer { .. }
                | DumpError::NoSuchFrame { .. }
                | DumpError::MadeOfFrames { .. }
                | DumpError::Predicate(_)
                | DumpError::EmptyWindow { .. }
        )
    }
}

fn near(name: &str, available: &[String]) -> String {
    did_you_mean(&nearest(name, available))
}

fn list(names: &[String]) -> String {
    if names.is_empty() { "none".to_owned() } else { names.join(", ") }
}
