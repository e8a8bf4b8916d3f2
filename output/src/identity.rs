//! The identity of a file, independent of its names.

use std::fs;
use std::io;
use std::os::fd::AsFd;
use std::os::unix::fs::MetadataExt;
use std::path::Path;

use rustix::fs::{FileType, Stat, fstat};

/// A regular file, identified by device and inode.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct FileId {
    pub(crate) device: u64,
    pub(crate) inode: u64,
}

impl FileId {
    /// Returns the regular file at `path`. It follows links; `-` is standard input.
    pub fn of_input(path: &Path) -> Option<Self> {
        if path.as_os_str() == "-" {
            return Self::of_file(io::stdin());
        }
        let found = fs::metadata(path).ok().filter(fs::Metadata::is_file)?;
        Some(Self { device: found.dev(), inode: found.ino() })
    }

    /// Returns the regular file of a descriptor.
    pub fn of_file(file: impl AsFd) -> Option<Self> {
        let found = fstat(file).ok()?;
        (FileType::from_raw_mode(found.st_mode) == FileType::RegularFile)
            .then(|| Self::of_stat(&found))
    }

    pub(crate) fn of_stat(found: &Stat) -> Self {
        Self { device: found.st_dev, inode: found.st_ino }
    }
}
