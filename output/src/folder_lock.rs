//! Folders into which one process at a time writes.

use std::fs::File;
use std::path::Path;

use crate::error::OutputError;
use crate::lock::lock;

/// Locks a folder, until what is returned is closed: of all who lock it, one writes into it.
///
/// # Errors
/// It cannot be opened, or somebody has locked it.
pub fn lock_folder(path: &Path) -> Result<File, OutputError> {
    let folder = File::open(path).map_err(|error| OutputError::System(path.to_owned(), error))?;
    lock(&folder).map_err(|holder| OutputError::InUse(path.to_owned(), holder))?;
    Ok(folder)
}
