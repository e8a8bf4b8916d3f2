//! The folder of an output. Other users must not be able to swap the file, and the checked folder
//! is the one that is used, even if its path changes.

use std::ffi::OsStr;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::path::Path;

use rustix::fs::{AtFlags, CWD, Mode, OFlags, Stat, fstat, openat, statat};
use rustix::io::{Errno, Result};
use rustix::process::geteuid;

use crate::error::OutputError;
use crate::rules::Rules;

#[derive(Debug)]
pub(crate) struct Folder {
    fd: OwnedFd,
    owner: u32,
}

impl Folder {
    /// The folder of the file `path`.
    pub(crate) fn of_file(path: &Path, rules: &Rules) -> std::result::Result<Self, OutputError> {
        let folder = match path.parent() {
            Some(folder) if folder != Path::new("") => folder,
            _ => Path::new("."),
        };
        let fail = |cause: Errno| OutputError::System(path.into(), cause.into());
        let flags = OFlags::PATH | OFlags::DIRECTORY | OFlags::CLOEXEC;
        let fd = openat(CWD, folder, flags, Mode::empty()).map_err(fail)?;
        let found = fstat(&fd).map_err(fail)?;
        let mode = found.st_mode & 0o7777;
        if mode & 0o002 != 0 && mode & 0o1000 == 0 {
            return Err(OutputError::OpenFolder(folder.into(), mode));
        }
        if geteuid().is_root() && found.st_uid != 0 && !rules.is_ours(found.st_uid) {
            return Err(OutputError::ForeignFolder(folder.into()));
        }
        Ok(Self { fd, owner: found.st_uid })
    }

    /// Whether another user owns it, so that writing into it may need privileges.
    pub(crate) fn is_foreign(&self) -> bool {
        self.owner != geteuid().as_raw()
    }

    /// Looks up a name, without following links. Returns None if the name is free.
    pub(crate) fn look(&self, name: &OsStr) -> Result<Option<Stat>> {
        match statat(&self.fd, name, AtFlags::SYMLINK_NOFOLLOW) {
            Ok(found) => Ok(Some(found)),
            Err(Errno::NOENT) => Ok(None),
            Err(error) => Err(error),
        }
    }
}

impl AsFd for Folder {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.fd.as_fd()
    }
}
