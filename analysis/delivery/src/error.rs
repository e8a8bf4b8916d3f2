//! Why nothing can be delivered.

use std::io;
use std::time::Duration;

use ppt_output::OutputError;
use strum::VariantNames;

/// Why nothing can be delivered.
#[derive(Debug, thiserror::Error, strum::IntoStaticStr, strum::VariantNames)]
#[strum(serialize_all = "kebab-case")]
pub enum DeliveryError {
    /// A file or a folder.
    #[error(transparent)]
    Output(#[from] OutputError),
    /// A folder cannot be made, or a file cannot be written.
    #[error("cannot write {name}: {cause}")]
    #[strum(serialize = "cannot-write")]
    Write {
        /// Which one.
        name: String,
        /// Why.
        cause: io::Error,
    },
    /// The manifest cannot be read.
    #[error("cannot read {name}: {cause}")]
    #[strum(serialize = "cannot-read")]
    Read {
        /// Which one.
        name: String,
        /// Why.
        cause: io::Error,
    },
    /// The manifest is not as it was written.
    #[error("{name}: the manifest is not as ppt wrote it: {why}")]
    BadManifest {
        /// Which one.
        name: String,
        /// What is wrong.
        why: String,
    },
    /// A file of frames that wait for others is not as it was written.
    #[error("{name}: the frames of open spans are not as ppt wrote them: {why}")]
    BadOpenFile {
        /// Which one.
        name: String,
        /// What is wrong.
        why: String,
    },
    /// The manifest knows none of the captures.
    #[error(
        "{name}: the manifest is of other captures ({theirs}), and none of these ({ours}) follows them"
    )]
    OtherManifest {
        /// Which one.
        name: String,
        /// The captures that it has.
        theirs: String,
        /// Those that are to be delivered.
        ours: String,
    },
    /// The manifest was begun with other options.
    #[error("{name}: the export was begun with {theirs}, and goes on with the same options alone")]
    OtherSettings {
        /// Which one.
        name: String,
        /// With which options.
        theirs: String,
    },
    /// There are files of which no manifest says what they hold.
    #[error("{place} has files ({file}), and no manifest that says what they hold")]
    NoManifest {
        /// The folder.
        place: String,
        /// One of the files.
        file: String,
    },
    /// The object store did not answer for too long.
    #[error("{name}: the object store has not taken requests for {seconds} s: {cause}", seconds = after.as_secs())]
    StoreAway {
        /// What was asked for.
        name: String,
        /// For how long.
        after: Duration,
        /// Why, as far as is known.
        cause: String,
    },
    /// The object store does not do what it is asked for.
    #[error("{name}: the object store refuses: {cause}")]
    StoreRefused {
        /// What was asked for.
        name: String,
        /// What it says.
        cause: String,
    },
    /// Another exporter has replaced the manifest.
    #[error(
        "{name}: another exporter has begun to write there, so this one ends; the other one goes on where it was"
    )]
    OtherExporter {
        /// Where both write.
        name: String,
    },
    /// The object store would let two exporters write at once.
    #[error(
        "{name}: the object store ignores conditions (If-Match), so two exporters would not notice each other"
    )]
    NoConditionalPut {
        /// Where.
        name: String,
    },
}

impl DeliveryError {
    /// The name of the message in `docs/troubleshooting.md`.
    pub fn code(&self) -> &'static str {
        match self {
            DeliveryError::Output(error) => error.code(),
            other => other.into(),
        }
    }

    /// All codes.
    pub fn codes() -> impl Iterator<Item = &'static str> {
        Self::VARIANTS.iter().copied().filter(|code| *code != "output")
    }
}
