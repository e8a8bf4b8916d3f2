//! The errors of a dump.

use std::io;
use std::path::PathBuf;

use ppt_capture::{Bound, CaptureError};
use ppt_predicate::Error as PredicateError;
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
    /// `-b` names no buffer of the capture.
    #[error("no buffer is called `{name}`{}; the capture has: {}", near(.name, .there), list(.there))]
    NoSuchBuffer {
        /// What was asked for.
        name: String,
        /// What there is.
        there: Vec<String>,
    },
    /// `--frame` names no frame of the capture.
    #[error("no frame is called `{name}`{}; the chosen buffers have: {}", near(.name, .there), list(.there))]
    NoSuchFrame {
        /// What was asked for.
        name: String,
        /// What there is.
        there: Vec<String>,
    },
    /// `--frame` names spans or chains, which are rows of other tables.
    #[error("the table `{table}` is made of the frames `{frame}`, and a dump has frames alone")]
    MadeOfFrames {
        /// What was asked for, such as `request_spans`.
        table: String,
        /// The kind of frames.
        frame: String,
    },
    /// No frame of the capture can be asked that.
    #[error(transparent)]
    #[strum(serialize = "where")]
    Predicate(#[from] PredicateError),
    /// No row can be between the bounds.
    #[error("no row can be between the bounds; {from} comes after {to}")]
    EmptyWindow {
        /// Where it begins.
        from: Bound,
        /// Where it ends.
        to: Bound,
    },
    /// A bound, or `--time rel`, counts from the start of the capture, which is not known.
    #[error("the capture does not say when it began, because its first bytes are damaged")]
    NoStart,
    /// The rows do not fit the memory, and cannot be kept elsewhere.
    #[error("could not keep rows in {} to sort them: {error}", .folder.display())]
    #[strum(serialize = "cannot-sort")]
    Sort {
        /// The folder of the files.
        folder: PathBuf,
        /// What failed.
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

    /// Whether the caller asked for something that does not exist, which is a mistake of usage.
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

fn near(name: &str, there: &[String]) -> String {
    did_you_mean(&nearest(name, there))
}

fn list(names: &[String]) -> String {
    if names.is_empty() { "none".to_owned() } else { names.join(", ") }
}
