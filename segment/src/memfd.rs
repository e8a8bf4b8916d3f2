//! Segments that a target makes: a memfd, sealed so that it cannot shrink while it is mapped, and
//! fetched from its maker. See memfd_create(2), F_GET_SEALS in fcntl(2).

use std::io;
use std::mem::MaybeUninit;
use std::os::fd::{AsRawFd, BorrowedFd};

use crate::mapping::Mapping;

/// Type of the file system of memfds without huge pages.
const TMPFS_MAGIC: u64 = 0x0102_1994;

/// Why a descriptor is not that of a sealed memfd of at least `size` bytes.
fn unmet_requirement(file: BorrowedFd<'_>, size: u64) -> Option<&'static str> {
    let fd = file.as_raw_fd();
    // SAFETY: no pointers.
    let seals = unsafe { libc::fcntl(fd, libc::F_GET_SEALS) };
    if seals == -1 {
        return Some("kind of file");
    }
    if seals & libc::F_SEAL_SHRINK == 0 {
        return Some("seals");
    }
    let mut system = MaybeUninit::<libc::statfs>::zeroed();
    let mut stat = MaybeUninit::<libc::stat>::zeroed();
    // SAFETY: each call fills the structure that it is given; they were zeroed, so all of it is
    // initialised.
    let (system, stat) = unsafe {
        if libc::fstatfs(fd, system.as_mut_ptr()) != 0 || libc::fstat(fd, stat.as_mut_ptr()) != 0 {
            return Some("kind of file");
        }
        (system.assume_init(), stat.assume_init())
    };
    if system.f_type as u64 != TMPFS_MAGIC || stat.st_mode & libc::S_IFMT != libc::S_IFREG {
        return Some("kind of file");
    }
    (u64::try_from(stat.st_size).unwrap_or(0) < size).then_some("size")
}

/// Why a memfd is not mapped.
#[derive(Debug)]
pub(crate) enum MemfdError {
    System(io::Error),
    /// The requirement that the file does not meet.
    Unmet(&'static str),
}

/// Maps the first `size` bytes of a file that should be a sealed memfd.
///
/// # Errors
/// The file does not meet a requirement, or cannot be mapped.
pub(crate) fn map(file: BorrowedFd<'_>, size: u64) -> Result<Mapping, MemfdError> {
    match unmet_requirement(file, size) {
        Some(requirement) => Err(MemfdError::Unmet(requirement)),
        None => Mapping::file(file, size).map_err(MemfdError::System),
    }
}

#[cfg(test)]
pub(crate) mod tests {
    use super::*;
    use std::os::fd::{AsFd, FromRawFd, OwnedFd};

    /// A memfd of `size` bytes.
    pub(crate) fn make(size: i64, seals: libc::c_int) -> OwnedFd {
        // SAFETY: the string is NUL-terminated; the descriptor is new.
        unsafe {
            let flags = libc::MFD_CLOEXEC | libc::MFD_ALLOW_SEALING;
            let fd = libc::memfd_create(c"ppt test".as_ptr(), flags);
            assert_ne!(fd, -1);
            assert_eq!(libc::ftruncate(fd, size), 0);
            assert_eq!(libc::fcntl(fd, libc::F_ADD_SEALS, seals), 0);
            OwnedFd::from_raw_fd(fd)
        }
    }

    #[test]
    #[cfg_attr(miri, ignore = "needs memfd_create(2)")]
    fn only_sealed_memfds_of_the_right_size_are_mapped() {
        let refused = |file: BorrowedFd<'_>| match map(file, 8192) {
            Err(MemfdError::Unmet(requirement)) => requirement,
            other => panic!("{other:?}"),
        };
        assert_eq!(refused(std::io::stdin().as_fd()), "kind of file");
        let file = std::fs::File::open("/proc/self/exe").unwrap();
        assert_eq!(refused(file.as_fd()), "kind of file");
        assert_eq!(refused(make(8192, libc::F_SEAL_GROW).as_fd()), "seals");
        assert_eq!(refused(make(4096, libc::F_SEAL_SHRINK).as_fd()), "size");
        let good = make(8192, libc::F_SEAL_SHRINK);
        assert_eq!(map(good.as_fd(), 8192).unwrap().size(), 8192);
    }
}
