//! The requests to a helper, and their answers as messages of a socket.

use std::fs::File;
use std::io;
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, OwnedFd};
use std::os::unix::fs::FileExt;

use nix::errno::Errno;
use nix::sys::uio::{RemoteIoVec, process_vm_readv};
use rustix::fs::{Mode, OFlags, ResolveFlags, openat2};

use crate::stat::{FileStat, Links};

/// Most bytes that an answer holds.
pub(crate) const PIECE: usize = 64 << 10;
/// Bytes of a request before its path.
const HEAD: usize = 32;

/// The memory of a process.
#[derive(Debug, Clone, Copy)]
pub enum Memory<'a> {
    /// `/proc/PID/mem`.
    File(BorrowedFd<'a>),
    /// By process_vm_readv(2).
    Pid(i32),
}

/// Something that a file system may never answer.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Request<'a> {
    /// Looks a file up.
    Find { folder: BorrowedFd<'a>, path: &'a [u8], links: Links },
    /// Reads a file that was found. `serial` identifies it.
    Read { file: BorrowedFd<'a>, serial: u64, offset: u64 },
    /// Reads memory.
    Memory { memory: Memory<'a>, address: u64 },
}

/// What was found or read.
#[derive(Debug, Default)]
pub(crate) struct Answer {
    pub(crate) bytes: Vec<u8>,
    pub(crate) file: Option<OwnedFd>,
}

impl<'a> Request<'a> {
    /// The bytes and the descriptor of a message. `length`: most bytes of the answer.
    pub(crate) fn encode(&self, length: usize) -> (Vec<u8>, Option<BorrowedFd<'a>>) {
        let (words, path, file) = match *self {
            Request::Find { folder, path, links } => ([0, links as u64, 0], path, Some(folder)),
            Request::Read { file, serial, offset } => ([1, serial, offset], &[][..], Some(file)),
            Request::Memory { memory: Memory::File(file), address } => {
                ([2, 0, address], &[][..], Some(file))
            }
            Request::Memory { memory: Memory::Pid(pid), address } => {
                ([2, pid as u64, address], &[][..], None)
            }
        };
        let words = words.into_iter().chain([length as u64]);
        let head = words.flat_map(u64::to_le_bytes);
        (head.chain(path.iter().copied()).collect(), file)
    }

    fn decode(bytes: &'a [u8], file: Option<BorrowedFd<'a>>) -> Option<(Request<'a>, usize)> {
        let (head, path) = bytes.split_at_checked(HEAD)?;
        let word = |at: usize| u64::from_le_bytes(head[at * 8..][..8].try_into().expect("8 bytes"));
        let request = match (word(0), file) {
            (0, Some(folder)) => Request::Find {
                folder,
                path,
                links: if word(1) == 0 { Links::Refused } else { Links::Followed },
            },
            (1, Some(file)) => Request::Read { file, serial: word(1), offset: word(2) },
            (2, file) => Request::Memory {
                memory: file.map_or(Memory::Pid(word(1) as i32), Memory::File),
                address: word(2),
            },
            _ => return None,
        };
        Some((request, (word(3) as usize).min(PIECE)))
    }
}

/// Does what requests ask for.
#[derive(Debug, Default)]
pub(crate) struct Performer {
    /// The file that was read last: most are read from beginning to end.
    pub(crate) open: Option<(u64, File)>,
}

impl Performer {
    /// Does what a message asks for.
    pub(crate) fn answer(&mut self, bytes: &[u8], file: Option<OwnedFd>) -> io::Result<Answer> {
        let file = file.as_ref().map(AsFd::as_fd);
        let (request, length) = Request::decode(bytes, file).ok_or(io::ErrorKind::InvalidInput)?;
        self.perform(&request, length)
    }

    pub(crate) fn perform(&mut self, request: &Request<'_>, length: usize) -> io::Result<Answer> {
        let mut bytes = vec![0; length];
        let read = match *request {
            Request::Find { folder, path, links } => {
                let found = look(folder, path, links, links.resolve())?;
                let bytes = FileStat::of(&found)?.encode();
                return Ok(Answer { bytes, file: Some(found) });
            }
            Request::Read { file, serial, offset } => {
                if self.open.as_ref().is_none_or(|open| open.0 != serial) {
                    self.open = None;
                    self.open = Some((serial, reopen(file)?));
                }
                let (_, file) = self.open.as_ref().expect("it has just been opened");
                file.read_at(&mut bytes, offset)?
            }
            Request::Memory { memory: Memory::File(file), address } => {
                match rustix::io::pread(file, &mut bytes, address) {
                    // An unmapped page.
                    Err(rustix::io::Errno::IO) => 0,
                    other => other?,
                }
            }
            Request::Memory { memory: Memory::Pid(pid), address } => {
                let remote = [RemoteIoVec { base: address as usize, len: length }];
                let mut local = [io::IoSliceMut::new(&mut bytes)];
                match process_vm_readv(nix::unistd::Pid::from_raw(pid), &mut local, &remote) {
                    Err(Errno::EFAULT | Errno::ESRCH) => 0,
                    other => other?,
                }
            }
        };
        bytes.truncate(read);
        Ok(Answer { bytes, file: None })
    }
}

/// A descriptor of a file that only refers to it: neither making nor closing it has side effects.
pub(crate) fn look(
    folder: impl AsFd,
    path: &[u8],
    links: Links,
    resolve: ResolveFlags,
) -> rustix::io::Result<OwnedFd> {
    let mut flags = OFlags::PATH | OFlags::CLOEXEC;
    flags.set(OFlags::NOFOLLOW, links == Links::Refused);
    openat2(folder, path, flags, Mode::empty(), resolve)
}

/// Opens what such a descriptor refers to.
pub(crate) fn reopen(file: impl AsFd) -> io::Result<File> {
    File::open(format!("/proc/self/fd/{}", file.as_fd().as_raw_fd()))
}
