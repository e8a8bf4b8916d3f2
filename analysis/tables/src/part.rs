//! A part of one capture that may still grow.

use std::fs::File;
use std::ops::Range;
use std::path::Path;
use std::sync::Arc;

use crate::catalog::Catalog;
use crate::error::SetError;
use crate::set::{CaptureSet, Opened};

impl CaptureSet {
    /// The frames of one capture whose chunks begin within `bytes`, counted from its first byte.
    ///
    /// Nothing behind that range is looked at, as if the file ended there: the rows of a part stay the
    /// same while the capture grows. What comes before the range is known (sources, clocks, the
    /// account), without its frames. `path` is the name in messages, whatever has it by now.
    ///
    /// # Errors
    /// The file cannot be read, or is no capture.
    pub fn open_part(
        path: &Path,
        file: &Arc<File>,
        bytes: Range<u64>,
    ) -> Result<CaptureSet, SetError> {
        let opened = Catalog::of_beginning(file, bytes.end)
            .and_then(|by_heads| Opened::new(path, file.clone(), by_heads, bytes.start));
        let error = |error| SetError::Capture { path: path.to_owned(), error };
        Ok(CaptureSet::of(vec![opened.map_err(error)?]))
    }
}

/// The files that names of captures mean, in order: files, patterns, and the numbered parts of what
/// would have been written under a name.
///
/// # Errors
/// A pattern that matches nothing, or nothing is named.
pub fn capture_files(names: &[std::path::PathBuf]) -> Result<Vec<std::path::PathBuf>, SetError> {
    crate::paths::expand(names)
}
