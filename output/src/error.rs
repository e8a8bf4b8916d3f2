//! Why an output cannot be opened or published.

use std::io;
use std::path::PathBuf;

use strum::VariantNames;

use crate::lock::Holder;

/// Why an output cannot be opened or published. The messages name the options `-o` and `--force`.
#[derive(Debug, thiserror::Error, strum::IntoStaticStr, strum::VariantNames)]
#[strum(serialize_all = "kebab-case")]
pub enum OutputError {
    /// The output exists, and `--force` was not given.
    #[error("{} exists; choose another name with -o, or overwrite it with --force", .0.display())]
    #[strum(serialize = "output-exists")]
    Exists(PathBuf),
    /// Another process writes the output.
    #[error("{} is being written by {}; choose another name with -o", .0.display(), .1)]
    #[strum(serialize = "output-in-use")]
    InUse(PathBuf, Holder),
    /// The output is an input of the same command.
    #[error(
        "{} is also the input, and writing to it would destroy it; choose another name with -o",
        .0.display()
    )]
    #[strum(serialize = "output-is-input")]
    IsInput(PathBuf),
    /// The path is not a regular file, but this kind of file.
    #[error("{} is {}; choose another name with -o", .0.display(), .1)]
    NotAFile(PathBuf, &'static str),
    /// The existing file belongs to another user or has several names.
    #[error(
        "{} belongs to another user or has several names (hard links), so ppt does not overwrite it",
        .0.display()
    )]
    NotYours(PathBuf),
    /// Everybody may write to the folder, which has this mode.
    #[error(
        "{} is a folder that everybody may write to (its mode is {:o}); choose another folder with \
         -o",
        .0.display(), .1
    )]
    OpenFolder(PathBuf, u32),
    /// The folder belongs to another user.
    #[error("{} belongs to another user; choose another folder with -o", .0.display())]
    ForeignFolder(PathBuf),
    /// A system call failed.
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
