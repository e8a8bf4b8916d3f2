//! Why names are missing.

use std::fmt;

/// Why the functions of a module have no names.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Remark {
    /// The path of the module as the process saw it. It comes from the target, so escape it.
    pub path: String,
    /// The reason.
    pub cause: Cause,
}

/// The reason for a [`Remark`].
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Cause {
    /// The file has another build id than the module: it was replaced since.
    OtherFile,
    /// Neither the module nor the file has a build id, and the file is younger than the capture.
    NotProven,
    /// No file was found, neither the module nor its debug information.
    Missing,
    /// The file was found, but it has no symbols, or no readable ones.
    NoSymbols,
    /// The tables of all files would take too much memory.
    TooLarge,
}

impl fmt::Display for Cause {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Cause::OtherFile => "the file there has another build id",
            Cause::NotProven => {
                "it has no build id, and the file there is younger than the capture"
            }
            Cause::Missing => "the file is not there",
            Cause::NoSymbols => "the file has no symbols",
            Cause::TooLarge => "the symbols of all files take too much memory",
        })
    }
}
