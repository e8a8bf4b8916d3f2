//! The properties of files.

use std::os::fd::AsFd;

use rustix::fs::{AtFlags, FileType, ResolveFlags, Statx, StatxFlags, statx};

use crate::subject::Device;

/// Whether the links of a path are followed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Links {
    /// No link is followed, and nothing outside of the folder is found.
    Refused,
    /// Links are followed, also those of procfs.
    Followed,
}

impl Links {
    pub(crate) fn resolve(self) -> ResolveFlags {
        match self {
            Links::Refused => ResolveFlags::IN_ROOT | ResolveFlags::NO_SYMLINKS,
            Links::Followed => ResolveFlags::empty(),
        }
    }
}

/// The properties of a file.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct FileStat {
    /// The device.
    pub device: Device,
    /// The inode.
    pub inode: u64,
    /// The length in bytes.
    pub len: u64,
    /// The owner.
    pub uid: u32,
    /// Time of the last change of the content: seconds since the epoch, and ns.
    pub mtime: (i64, u32),
    /// Time of the last change of content or properties.
    pub ctime: (i64, u32),
    mode: u16,
}

impl FileStat {
    /// The properties, as the file system states them.
    pub(crate) fn of(file: impl AsFd) -> rustix::io::Result<FileStat> {
        Self::with(file, AtFlags::empty())
    }

    /// `sync`: whether the file system is asked.
    pub(crate) fn with(file: impl AsFd, sync: AtFlags) -> rustix::io::Result<FileStat> {
        let found: Statx = statx(file, c"", AtFlags::EMPTY_PATH | sync, StatxFlags::BASIC_STATS)?;
        Ok(FileStat {
            device: (found.stx_dev_major, found.stx_dev_minor),
            inode: found.stx_ino,
            len: found.stx_size,
            uid: found.stx_uid,
            mtime: (found.stx_mtime.tv_sec, found.stx_mtime.tv_nsec),
            ctime: (found.stx_ctime.tv_sec, found.stx_ctime.tv_nsec),
            mode: found.stx_mode,
        })
    }

    pub(crate) fn is_file(&self) -> bool {
        FileType::from_raw_mode(self.mode.into()) == FileType::RegularFile
    }

    pub(crate) fn encode(&self) -> Vec<u8> {
        let Self { device, inode, len, uid, mtime, ctime, mode } = *self;
        let seconds = [mtime.0 as u64, ctime.0 as u64];
        let small = [device.0, device.1, uid, mtime.1, ctime.1, mode.into()].map(u64::from);
        let words = [inode, len].into_iter().chain(seconds).chain(small);
        words.flat_map(u64::to_le_bytes).collect()
    }

    pub(crate) fn decode(bytes: &[u8]) -> Option<FileStat> {
        let words =
            bytes.chunks_exact(8).map(|word| u64::from_le_bytes(word.try_into().expect("8")));
        let words: [u64; 10] = words.collect::<Vec<_>>().try_into().ok()?;
        let [inode, len, mtime, ctime, small @ ..] = words;
        let [major, minor, uid, mtime_ns, ctime_ns, mode] = small.map(|word| word as u32);
        let (mtime, ctime) = ((mtime as i64, mtime_ns), (ctime as i64, ctime_ns));
        Some(FileStat { device: (major, minor), inode, len, uid, mtime, ctime, mode: mode as u16 })
    }
}
