//! The reasons for missing names.

use std::fmt;

/// Why the functions of a module have no names.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct NameRemark {
    /// The path of the module as the process saw it. It comes from the target, so escape it.
    pub path: String,
    /// The reason.
    pub cause: UnnamedCause,
}

/// The reason for a [`NameRemark`].
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum UnnamedCause {
    /// The file has another build id than the module, because it was replaced since.
    OtherFile,
    /// The module has no build id, and the file is younger than the capture.
    NotProven,
    /// No file was found, neither the module nor its debug information.
    Missing,
    /// The file was found, but it has no symbols, or no readable ones.
    NoSymbols,
    /// The file system does not answer.
    NoAnswer,
    /// The tables of all files would take too much memory.
    TooLarge,
}

impl fmt::Display for UnnamedCause {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            UnnamedCause::OtherFile => "the file there has another build id",
            UnnamedCause::NotProven => {
                "the capture has no build id of it, and the file there is younger than the capture"
            }
            UnnamedCause::Missing => "the file is not there",
            UnnamedCause::NoSymbols => "the file has no symbols",
            UnnamedCause::NoAnswer => "its file system does not answer",
            UnnamedCause::TooLarge => "the symbols of all files take too much memory",
        })
    }
}
