//! The header of capture files, and messages about files.

use ppt_listener::FileHeader;

use crate::code::Code;

/// The tool that captures name as their writer.
const TOOL: &str = concat!("ppt ", env!("CARGO_PKG_VERSION"));

/// The header of a file.
pub(in crate::live) fn header() -> FileHeader {
    ppt_listener::header(TOOL)
}

/// A message about a file, with its code.
pub(in crate::live) type News = (Code, String);

/// The share of the written frames that is in files with the capture's name.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(in crate::live) enum Kept {
    All,
    Some,
    None,
}
