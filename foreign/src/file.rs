//! Files that were found, and reading them.

use std::fs::File;
use std::io;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::os::unix::fs::FileExt;
use std::sync::atomic::{AtomicU64, Ordering};

use rustix::fs::{AtFlags, ResolveFlags};
use rustix::io::Errno;

use crate::helper::{ask, device_of, fill, is_local};
use crate::request::{Request, look, reopen};
use crate::stat::{FileStat, Links};
use crate::subject::Subject;

/// A path, and whose it is.
#[derive(Debug, Clone, Copy)]
pub struct Lookup<'a> {
    /// The folder in which the path begins.
    pub folder: BorrowedFd<'a>,
    /// The path.
    pub path: &'a [u8],
    /// Whether its links are followed.
    pub links: Links,
    /// What is said if nothing answers. Its device is that of the file, if known.
    pub subject: &'a Subject,
}

/// A regular file that was found. It was not opened: opening may have side effects.
#[derive(Debug)]
pub struct FoundFile {
    handle: OwnedFd,
    /// Its properties.
    pub stat: FileStat,
    subject: Subject,
}

/// Looks a regular file up. `None` if there is none, or if its file system does not answer.
#[must_use]
pub fn find(lookup: &Lookup<'_>) -> Option<FoundFile> {
    let Lookup { folder, path, links, subject } = *lookup;
    let mut subject = subject.clone();
    // What the kernel remembers of a path needs no file system.
    let cached = links.resolve() | ResolveFlags::CACHED;
    let resolve = match (links, subject.device) {
        (Links::Refused, device) => device.is_none_or(is_local).then_some(cached),
        (Links::Followed, Some(device)) => is_local(device).then_some(ResolveFlags::empty()),
        (Links::Followed, None) => {
            subject.device = device_of(path).filter(|device| !is_local(*device));
            subject.device.is_none().then_some(cached | ResolveFlags::NO_SYMLINKS)
        }
    };
    if let Some(resolve) = resolve {
        match look(folder, path, links, resolve) {
            Ok(handle) => {
                let stat = FileStat::with(&handle, AtFlags::STATX_DONT_SYNC).ok()?;
                if is_local(stat.device) {
                    return stat.is_file().then_some(FoundFile { handle, stat, subject });
                }
            }
            // Before Linux 5.12, what is remembered cannot be asked for.
            Err(Errno::AGAIN | Errno::INVAL) => {}
            Err(Errno::LOOP) if links == Links::Followed => {}
            Err(_) => return None,
        }
    }
    let answer = ask(&Request::Find { folder, path, links }, 0, &subject).ok()?;
    let (stat, handle) = (FileStat::decode(&answer.bytes)?, answer.file?);
    subject.device = Some(stat.device);
    stat.is_file().then_some(FoundFile { handle, stat, subject })
}

impl FoundFile {
    /// Whether its file system always answers.
    #[must_use]
    pub fn is_local(&self) -> bool {
        is_local(self.stat.device)
    }

    /// Opens it.
    #[must_use]
    pub fn open(self) -> Option<ReadableFile> {
        static SERIALS: AtomicU64 = AtomicU64::new(0);
        let FoundFile { handle, stat, subject } = self;
        let source = match is_local(stat.device) {
            true => Source::Local(reopen(handle).ok()?),
            false => {
                let serial = SERIALS.fetch_add(1, Ordering::Relaxed);
                Source::Foreign { handle, serial, subject }
            }
        };
        Some(ReadableFile { source, stat })
    }
}

/// A regular file to be read. It stays that file if its path is reused.
#[derive(Debug)]
pub struct ReadableFile {
    source: Source,
    /// Its properties when it was found.
    pub stat: FileStat,
}

#[derive(Debug)]
enum Source {
    Local(File),
    Foreign { handle: OwnedFd, serial: u64, subject: Subject },
}

impl ReadableFile {
    /// A file that is open already.
    ///
    /// # Errors
    /// It has no properties.
    pub fn local(file: File) -> io::Result<ReadableFile> {
        Ok(ReadableFile { stat: FileStat::of(&file)?, source: Source::Local(file) })
    }

    /// Reads up to the length of `buffer` at `offset`. Returns fewer bytes at the end of the file.
    ///
    /// # Errors
    /// The file cannot be read, or its file system does not answer.
    pub fn read_at(&self, offset: u64, buffer: &mut [u8]) -> io::Result<usize> {
        match &self.source {
            Source::Local(file) => file.read_at(buffer, offset),
            Source::Foreign { handle, serial, subject } => {
                fill(buffer, subject, |done| Request::Read {
                    file: handle.as_fd(),
                    serial: *serial,
                    offset: offset.saturating_add(done),
                })
            }
        }
    }

    /// A descriptor that refers to the file. It may not be readable.
    ///
    /// # Errors
    /// There are too many descriptors.
    pub fn descriptor(&self) -> io::Result<File> {
        match &self.source {
            Source::Local(file) => file.try_clone(),
            Source::Foreign { handle, .. } => Ok(File::from(handle.try_clone()?)),
        }
    }
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::{MetadataExt, symlink};

    use super::*;

    #[test]
    fn regular_files_are_found_and_read() {
        let folder = tempfile::tempdir().unwrap();
        let path = |name: &str| folder.path().join(name);
        std::fs::write(path("file"), "content").unwrap();
        symlink("file", path("link")).unwrap();
        rustix::fs::mkfifoat(rustix::fs::CWD, path("fifo"), rustix::fs::Mode::RUSR).unwrap();
        let root = File::open(folder.path()).unwrap();
        let subject = Subject { pid: 0, path: String::new(), device: None };
        let found = |path: &[u8], links| {
            find(&Lookup { folder: root.as_fd(), path, links, subject: &subject })
        };
        for (name, refused, followed) in [
            ("file", true, true),
            ("link", false, true),
            ("fifo", false, false),
            ("absent", false, false),
        ] {
            assert_eq!(found(name.as_bytes(), Links::Refused).is_some(), refused, "{name}");
            assert_eq!(found(name.as_bytes(), Links::Followed).is_some(), followed, "{name}");
        }
        let file = found(b"file", Links::Refused).unwrap();
        let metadata = std::fs::metadata(path("file")).unwrap();
        assert_eq!((file.stat.inode, file.stat.len), (metadata.ino(), metadata.len()));
        assert_eq!(file.stat.mtime.0, metadata.mtime());
        assert_eq!(FileStat::decode(&file.stat.encode()), Some(file.stat));
        let mut bytes = [0; 9];
        assert_eq!(file.open().unwrap().read_at(3, &mut bytes).unwrap(), 4);
        assert_eq!(&bytes[..4], b"tent");
    }
}
