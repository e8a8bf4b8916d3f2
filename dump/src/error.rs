//! What can go wrong with a dump.

use std::io;

use ppt_capture::{Bound, CaptureError};
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
    /// There is nothing between the bounds.
    #[error("nothing is between the bounds: {from} comes after {to}")]
    EmptyWindow {
        /// Where it begins.
        from: Bound,
        /// Where it ends.
        to: Bound,
    },
    /// A bound counts from a start that is not known.
    #[error("the capture does not say when it began: its first bytes are damaged")]
    NoStart,
}

impl DumpError {
    /// The short name of what is said, under which `docs/troubleshooting.md` explains it.
    pub fn code(&self) -> &'static str {
        match self {
            DumpError::Capture(error) => error.code(),
            other => other.into(),
        }
    }

    /// Every code; `capture` stands for those of [`CaptureError`].
    pub fn codes() -> impl Iterator<Item = &'static str> {
        let ours = Self::VARIANTS.iter().copied().filter(|&code| code != "capture");
        ours.chain(CaptureError::codes())
    }

    /// Whether the caller asked for what is not there: a mistake of usage.
    pub fn is_usage(&self) -> bool {
        matches!(
            self,
            DumpError::NoSuchBuffer { .. }
                | DumpError::NoSuchFrame { .. }
                | DumpError::EmptyWindow { .. }
        )
    }
}

fn list(names: &[String]) -> String {
    if names.is_empty() { "none".to_owned() } else { names.join(", ") }
}
