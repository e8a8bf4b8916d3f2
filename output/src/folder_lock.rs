//! Folders into which one process at a time writes.

use std::fs::File;
use std::path::Path;

use crate::error::OutputError;
use crate::lock::lock;

/// Locks a folder until the returned file is closed, so that one process at a time writes into it.
///
/// # Errors
/// The folder cannot be opened, or another process has locked it.
pub fn lock_folder(path: &Path) -> Result<File, OutputError> {
    let folder = File::open(path).map_err(|error| OutputError::System(path.to_owned(), error))?;
    lock(&folder).map_err(|holder| OutputError::InUse(path.to_owned(), holder))?;
    Ok(folder)
}
