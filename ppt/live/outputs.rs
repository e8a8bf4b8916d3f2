//! The outputs of a capture: files written during the capture, or a folder with one file per
//! window.

mod about;
mod files;
mod windows;

use ppt_output::OutputError;

use crate::args;
use crate::failure::Failure;
pub(super) use about::{Kept, News, header};
pub(super) use files::Files;
pub(super) use windows::Windows;

/// The outputs of a capture.
pub(crate) enum Outputs {
    Files(Box<Files>),
    /// `--flight`.
    Windows(Windows),
}

impl Outputs {
    /// Opens the outputs that the command line names.
    pub(crate) fn open(args: &args::CaptureArgs) -> Result<Self, Failure> {
        Ok(match args.flight.time {
            Some(_) => Self::Windows(Windows::open(args)?),
            None => Self::Files(Box::new(Files::open(args)?)),
        })
    }

    /// Whether the capture may consist of several files.
    pub(crate) fn are_many(&self) -> bool {
        match self {
            Self::Files(files) => files.are_many(),
            Self::Windows(_) => true,
        }
    }

    /// Keeps the current rights for publishing the first file.
    pub(crate) fn keep_rights(&mut self) -> Result<(), Failure> {
        match self {
            Self::Files(files) => files.keep_rights(),
            Self::Windows(_) => Ok(()),
        }
    }

    /// Gives the file its name, because its content is worth keeping from now on. Repeated calls do
    /// nothing.
    pub(super) fn publish(&mut self) -> Result<(), OutputError> {
        match self {
            Self::Files(files) => files.publish(),
            Self::Windows(_) => Ok(()),
        }
    }

    /// The name for messages about all files.
    pub(super) fn name(&self) -> String {
        match self {
            Self::Files(files) => files.name(),
            Self::Windows(windows) => windows.name(),
        }
    }

    /// The absolute path by which readers find all files of the capture; None if it has none.
    pub(super) fn full_name(&self) -> Option<String> {
        match self {
            Self::Files(files) => files.full_name(),
            Self::Windows(_) => None,
        }
    }

    /// Messages about the files since the last call.
    pub(super) fn news(&self) -> Vec<News> {
        match self {
            Self::Files(files) => files.news(),
            Self::Windows(_) => Vec::new(),
        }
    }

    /// The part of the capture that its files still hold.
    pub(super) fn kept(&self) -> Kept {
        match self {
            Self::Files(files) => files.kept(),
            Self::Windows(_) => Kept::All,
        }
    }

    /// The message if the last file is not in its place at the end.
    pub(super) fn astray(&self) -> Option<News> {
        match self {
            Self::Files(files) => files.astray(),
            Self::Windows(_) => None,
        }
    }
}
