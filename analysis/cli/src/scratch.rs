//! The folder for temporary files of a question. The supervisor removes it, however the question ended,
//! and with it outputs that have no name yet.

use std::env;
use std::fs;
use std::io;
use std::os::unix::fs::{PermissionsExt, symlink};
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::atomic::{AtomicU32, Ordering::Relaxed};

use crate::question_settings::settings;

/// The variable that names the folder to the process of the question.
const VARIABLE: &str = "PPT_SCRATCH";
/// Prefix of symbolic links to unfinished outputs, which are removed with the folder.
const UNFINISHED: &str = "unfinished-";

/// A folder for temporary files.
#[derive(Debug)]
pub(crate) struct Scratch {
    /// None if the folder could not be created. The command that needs it then reports an error.
    folder: Option<PathBuf>,
}

impl Scratch {
    pub(crate) fn new() -> Scratch {
        let mine = fs::Permissions::from_mode(0o700);
        let made = tempfile::Builder::new().prefix("ppt-question-").permissions(mine).tempdir();
        Scratch { folder: made.ok().map(tempfile::TempDir::keep) }
    }

    /// Lets a process use it for all temporary files.
    pub(crate) fn hand(&self, command: &mut Command) {
        match &self.folder {
            Some(folder) => command.env("TMPDIR", folder).env(VARIABLE, folder),
            None => command.env_remove(VARIABLE),
        };
    }

    /// Removes the folder and unfinished outputs.
    pub(crate) fn remove(&mut self) {
        if let Some(folder) = self.folder.take() {
            remove(&folder);
        }
    }
}

/// The folder of this process, if it is that of a question.
pub(crate) fn own_folder() -> Option<PathBuf> {
    settings()?;
    env::var_os(VARIABLE).map(PathBuf::from)
}

/// Removes the folder of this process, which has lost its supervisor.
pub(crate) fn remove_own() {
    if let Some(folder) = own_folder() {
        remove(&folder);
    }
}

/// Notes that a folder is about to be made: if this process ends before it gives it another name, the
/// folder is removed.
pub(crate) fn will_make(path: &Path) -> io::Result<()> {
    static COUNT: AtomicU32 = AtomicU32::new(0);
    let Some(folder) = own_folder() else { return Ok(()) };
    let name = format!("{UNFINISHED}{}", COUNT.fetch_add(1, Relaxed));
    symlink(std::path::absolute(path)?, folder.join(name))
}

/// The folder for temporary files that the user has chosen, not the supervisor.
pub(crate) fn temporary_folder() -> PathBuf {
    let folder = env::temp_dir();
    if own_folder().as_deref() == Some(&folder) {
        folder.parent().map(Path::to_owned).unwrap_or(folder)
    } else {
        folder
    }
}

fn remove(folder: &Path) {
    let entries = fs::read_dir(folder).into_iter().flatten().flatten();
    let links = entries.filter(|entry| entry.file_name().to_string_lossy().starts_with(UNFINISHED));
    for link in links {
        if let Ok(unfinished) = fs::read_link(link.path()) {
            let _ = fs::remove_dir_all(unfinished);
        }
    }
    let _ = fs::remove_dir_all(folder);
}
