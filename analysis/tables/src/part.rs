//! Opens a part of a capture that may still grow.

use std::fs::File;
use std::ops::Range;
use std::path::Path;
use std::sync::Arc;

use crate::catalog::Catalog;
use crate::error::SetError;
use crate::set::{CaptureSet, Opened};

impl CaptureSet {
    /// Opens the frames of a capture whose chunks begin at offsets within `bytes`.
    ///
    /// The file is treated as if it ended at the end of the range, so the rows of a part stay the same while
    /// the capture grows. Sources, clocks and the account before the range are read, its frames are not.
    /// `path` is used in messages only; another file may have that name by now.
    ///
    /// # Errors
    /// The file cannot be read, or is not a capture.
    pub fn open_part(
        path: &Path,
        file: &Arc<File>,
        bytes: Range<u64>,
    ) -> Result<CaptureSet, SetError> {
        let opened = Catalog::of_beginning(file, bytes.end)
            .and_then(|by_heads| Opened::new(path, file.clone(), by_heads, bytes.start));
        let error = |error| SetError::Capture { path: path.to_owned(), error };
        Ok(CaptureSet::from_captures(vec![opened.map_err(error)?]))
    }
}

/// Expands names of captures to files, in order. A name is a file, a pattern, or the common name of numbered
/// parts.
///
/// # Errors
/// A pattern matches nothing, or `names` is empty.
pub fn capture_files(names: &[std::path::PathBuf]) -> Result<Vec<std::path::PathBuf>, SetError> {
    crate::capture_names::expand(names)
}
