//! Why an output cannot be opened or published.

use std::io;
use std::path::PathBuf;

use strum::VariantNames;

use crate::lock::Holder;

/// Why an output cannot be opened or published. The messages name the options `-o` and `--force`.
#[derive(Debug, thiserror::Error, strum::IntoStaticStr, strum::VariantNames)]
#[strum(serialize_all = "kebab-case")]
#[allow(missing_docs, reason = "each says what it is")]
pub enum OutputError {
    #[error("{} exists; choose another name with -o, or overwrite it with --force", .0.display())]
    #[strum(serialize = "output-exists")]
    Exists(PathBuf),
    #[error("{} is being written by {}; choose another name with -o", .0.display(), .1)]
    #[strum(serialize = "output-in-use")]
    InUse(PathBuf, Holder),
    #[error(
        "{} is also the input, and writing to it would destroy it; choose another name with -o",
        .0.display()
    )]
    #[strum(serialize = "output-is-input")]
    IsInput(PathBuf),
    #[error("{} is {}; choose another name with -o", .0.display(), .1)]
    NotAFile(PathBuf, &'static str),
    #[error(
        "{} belongs to another user or has several names (hard links), so ppt does not overwrite it",
        .0.display()
    )]
    NotYours(PathBuf),
    #[error(
        "{} is a folder that everybody may write to (its mode is {:o}); choose another folder with \
         -o",
        .0.display(), .1
    )]
    OpenFolder(PathBuf, u32),
    #[error("{} belongs to another user; choose another folder with -o", .0.display())]
    ForeignFolder(PathBuf),
    #[strum(serialize = "cannot-write")]
    #[error("cannot write {path}: {cause}", path = .0.display(), cause = .1)]
    System(PathBuf, #[source] io::Error),
}

impl OutputError {
    /// The name of the message in `docs/troubleshooting.md`.
    pub fn code(&self) -> &'static str {
        self.into()
    }

    /// All codes.
    pub fn codes() -> impl Iterator<Item = &'static str> {
        Self::VARIANTS.iter().copied()
    }
}
