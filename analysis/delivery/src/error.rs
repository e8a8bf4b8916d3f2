//! The errors of a delivery.

use std::io;
use std::time::Duration;

use ppt_output::OutputError;
use strum::VariantNames;

/// The cause for which a delivery cannot begin or continue.
#[derive(Debug, thiserror::Error, strum::IntoStaticStr, strum::VariantNames)]
#[strum(serialize_all = "kebab-case")]
pub enum DeliveryError {
    /// A file or a folder cannot be opened for writing.
    #[error(transparent)]
    Output(#[from] OutputError),
    /// A folder cannot be created, or a file cannot be written.
    #[error("cannot write {name}: {cause}")]
    #[strum(serialize = "cannot-write")]
    Write {
        /// The path or URL of the file.
        name: String,
        /// The error of the system.
        cause: io::Error,
    },
    /// A file or a folder cannot be read.
    #[error("cannot read {name}: {cause}")]
    #[strum(serialize = "cannot-read")]
    Read {
        /// The path of the file.
        name: String,
        /// The error of the system.
        cause: io::Error,
    },
    /// The manifest is damaged or was edited.
    #[error("{name}: the manifest is not as ppt wrote it: {why}")]
    BadManifest {
        /// The path or URL of the manifest.
        name: String,
        /// The mistake.
        why: String,
    },
    /// A file of frames that wait for others is damaged or gone.
    #[error("{name}: the frames of open spans are not as ppt wrote them: {why}")]
    BadOpenFile {
        /// The path or URL of the file.
        name: String,
        /// The damage.
        why: String,
    },
    /// The manifest has none of the captures.
    #[error(
        "{name}: the manifest is of other captures ({theirs}), and none of these ({ours}) follows them"
    )]
    OtherManifest {
        /// The path or URL of the manifest.
        name: String,
        /// Some captures of the manifest: files and ids.
        theirs: String,
        /// Some captures of this delivery: files and ids.
        ours: String,
    },
    /// The manifest was begun with other options.
    #[error("{name}: the export was begun with {theirs}, and goes on with the same options alone")]
    OtherSettings {
        /// The path or URL of the manifest.
        name: String,
        /// The options of the manifest.
        theirs: String,
    },
    /// The target has files, but no manifest.
    #[error("{place} has files ({file}), and no manifest that says what they hold")]
    NoManifest {
        /// The path or URL of the target.
        place: String,
        /// One of the files.
        file: String,
    },
    /// The object store took no requests for too long.
    #[error("{name}: the object store has not taken requests for {seconds} s: {cause}", seconds = after.as_secs())]
    StoreAway {
        /// The URL of the object.
        name: String,
        /// The duration of the outage.
        after: Duration,
        /// The text of the last error.
        cause: String,
    },
    /// The object store refuses a request.
    #[error("{name}: the object store refuses: {cause}")]
    StoreRefused {
        /// The URL of the object.
        name: String,
        /// The text of the error.
        cause: String,
    },
    /// Another exporter has replaced the manifest.
    #[error(
        "{name}: another exporter has begun to write there, so this one ends; the other one goes on where it was"
    )]
    OtherExporter {
        /// The URL of the target.
        name: String,
    },
    /// The object store would let two exporters write at once.
    #[error(
        "{name}: the object store ignores conditions (If-Match), so two exporters would not notice each other"
    )]
    NoConditionalPut {
        /// The URL of the target.
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
