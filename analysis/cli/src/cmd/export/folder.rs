//! A folder of files that appears completely, or not at all.

use std::ffi::OsString;
use std::fs;
use std::io;
use std::os::unix::fs::DirBuilderExt;
use std::path::{Path, PathBuf};

use ppt_output::OutputError;

use crate::error::AnswerError;
use crate::scratch;

/// An unfinished folder with a hidden name next to the final one; removed when dropped.
pub(super) struct ExportFolder {
    hidden: PathBuf,
    path: PathBuf,
}

impl ExportFolder {
    /// A folder that will be called `path`, which must not exist.
    pub(super) fn new(path: &Path) -> Result<ExportFolder, AnswerError> {
        let fail = |error| AnswerError::Write(path.display().to_string(), error);
        let (Some(name), parent) = (path.file_name(), path.parent()) else {
            return Err(fail(io::ErrorKind::InvalidInput.into()));
        };
        if path.symlink_metadata().is_ok() {
            return Err(OutputError::Exists(path.to_owned()).into());
        }
        let parent = parent.filter(|path| !path.as_os_str().is_empty()).unwrap_or(Path::new("."));
        let mut hidden = OsString::from(".");
        hidden.push(name);
        hidden.push(format!("-{}", std::process::id()));
        let hidden = parent.join(hidden);
        // If this process is killed, its supervisor removes the folder.
        scratch::will_make(&hidden).map_err(fail)?;
        fs::DirBuilder::new().mode(0o700).create(&hidden).map_err(fail)?;
        Ok(ExportFolder { hidden, path: path.to_owned() })
    }

    /// Path of the unfinished folder.
    pub(super) fn inside(&self) -> &Path {
        &self.hidden
    }

    /// Renames the folder to its final name.
    pub(super) fn publish(self) -> Result<(), AnswerError> {
        let (hidden, path) = (&self.hidden, &self.path);
        let fail = |error| AnswerError::Write(path.display().to_string(), error);
        // Permissions of an ordinary new folder, not those of a temporary one.
        let umask = fs::File::open("/proc/self/status").and_then(io::read_to_string);
        let umask = umask.ok().and_then(|text| {
            let line = text.lines().find_map(|line| line.strip_prefix("Umask:"))?.trim().to_owned();
            u32::from_str_radix(&line, 8).ok()
        });
        let mode = std::os::unix::fs::PermissionsExt::from_mode(0o777 & !umask.unwrap_or(0o077));
        fs::set_permissions(hidden, mode).map_err(fail)?;
        // A rename replaces only an empty folder, so nothing is lost.
        match fs::rename(hidden, path) {
            Ok(()) => Ok(()),
            Err(_) if path.symlink_metadata().is_ok() => {
                Err(OutputError::Exists(path.clone()).into())
            }
            Err(error) => Err(fail(error)),
        }
    }
}

impl Drop for ExportFolder {
    fn drop(&mut self) {
        // After the rename, this path does not exist.
        let _ = fs::remove_dir_all(&self.hidden);
    }
}
