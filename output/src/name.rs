//! The future name of an output, and the file that has it until then.

use std::ffi::OsString;
use std::fs::File;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use rustix::fs::{AtFlags, FileType, Mode, OFlags, Stat, fstat, openat, unlinkat};
use rustix::io::Errno;

use crate::error::OutputError;
use crate::folder::Folder;
use crate::identity::FileId;
use crate::lock;
use crate::rules::Rules;

/// The number of times that a changing name is checked again.
const TRIES: usize = 16;

/// A name in a checked folder.
#[derive(Debug, Clone)]
pub(crate) struct OutputName {
    pub(crate) path: PathBuf,
    pub(crate) folder: Arc<Folder>,
    pub(crate) last: OsString,
    rules: Rules,
}

impl OutputName {
    pub(crate) fn new(path: &Path, rules: &Rules) -> Result<Self, OutputError> {
        let last = path.file_name().ok_or(OutputError::NotAFile(path.into(), "a directory"))?;
        let folder = Arc::new(Folder::of_file(path, rules)?);
        Ok(Self { path: path.into(), folder, last: last.into(), rules: rules.clone() })
    }

    pub(crate) fn fail(&self, error: Errno) -> OutputError {
        OutputError::System(self.path.clone(), error.into())
    }

    /// Opens the file that has the name, if the rules allow replacing it, and locks it against
    /// other ppt processes. Returns `None` if the name is free.
    pub(crate) fn taken(&self) -> Result<Option<File>, OutputError> {
        for _ in 0..TRIES {
            let Some(file) = self.may_be_taken()? else { return Ok(None) };
            lock::lock(&file).map_err(|error| OutputError::InUse(self.path.clone(), error))?;
            // Another file may have replaced it before it was locked.
            if self.leads_to(&file)? {
                return Ok(Some(file));
            }
        }
        Err(OutputError::Exists(self.path.clone()))
    }

    /// Opens the file that has the name, if the rules allow replacing it. If another process writes
    /// the file, the error names that process.
    pub(crate) fn may_be_taken(&self) -> Result<Option<File>, OutputError> {
        let exists = || OutputError::Exists(self.path.clone());
        let Some(found) = self.look()? else { return Ok(None) };
        self.allow(&found)?;
        // Without --force, only its writers are checked.
        let access = if self.rules.force { OFlags::WRONLY } else { OFlags::RDONLY };
        let flags = access | OFlags::NOFOLLOW | OFlags::NONBLOCK | OFlags::CLOEXEC;
        let file = match openat(&self.folder, &self.last, flags, Mode::empty()) {
            Ok(file) => File::from(file),
            Err(Errno::NOENT) => return Ok(None),
            Err(_) if !self.rules.force => return Err(exists()),
            Err(error) => return Err(self.fail(error)),
        };
        // The opened file counts: the name may have belonged to another file before.
        let opened = fstat(&file).map_err(|error| self.fail(error))?;
        self.allow(&opened)?;
        lock::probe(&file).map_err(|error| OutputError::InUse(self.path.clone(), error))?;
        if !self.rules.force {
            return Err(exists());
        }
        if opened.st_nlink > 1 || !self.rules.is_ours(opened.st_uid) {
            return Err(OutputError::NotYours(self.path.clone()));
        }
        Ok(Some(file))
    }

    /// Removes the file with the name, if it is this file.
    pub(crate) fn remove(&self, id: FileId) -> Result<(), OutputError> {
        if self.look()?.is_some_and(|found| FileId::of_stat(&found) == id) {
            let removed = unlinkat(&self.folder, &self.last, AtFlags::empty());
            removed.map_err(|error| self.fail(error))?;
        }
        Ok(())
    }

    fn look(&self) -> Result<Option<Stat>, OutputError> {
        self.folder.look(&self.last).map_err(|error| self.fail(error))
    }

    pub(crate) fn leads_to(&self, file: &File) -> Result<bool, OutputError> {
        let opened = fstat(file).map_err(|error| self.fail(error))?;
        let found = self.look()?;
        Ok(found.is_some_and(|found| FileId::of_stat(&found) == FileId::of_stat(&opened)))
    }

    /// Fails for anything that is not a regular file, and for the input.
    fn allow(&self, found: &Stat) -> Result<(), OutputError> {
        if let Some(what) = not_a_file(FileType::from_raw_mode(found.st_mode)) {
            return Err(OutputError::NotAFile(self.path.clone(), what));
        }
        if self.rules.inputs.contains(&FileId::of_stat(found)) {
            return Err(OutputError::IsInput(self.path.clone()));
        }
        Ok(())
    }
}

fn not_a_file(kind: FileType) -> Option<&'static str> {
    match kind {
        FileType::RegularFile => None,
        FileType::Directory => Some("a directory"),
        FileType::Symlink => Some("a symbolic link, which ppt does not follow"),
        FileType::Fifo => Some("a FIFO"),
        _ => Some("not a regular file"),
    }
}
