//! What is said in files and of files.

use ppt_listener::FileHeader;

use crate::code::Code;

/// The tool that captures name as their writer.
const TOOL: &str = concat!("ppt ", env!("CARGO_PKG_VERSION"));

/// The header of a file.
pub(in crate::live) fn header() -> FileHeader {
    ppt_listener::header(TOOL)
}

/// A message about a file, with its name.
pub(in crate::live) type News = (Code, String);

/// How many of the written frames are in files that have the capture's name.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(in crate::live) enum Kept {
    All,
    Some,
    None,
}
