//! A mapping of a whole segment, for every source of memory.

use std::io;
use std::os::fd::{AsRawFd, BorrowedFd};
use std::ptr::{self, NonNull};

use crate::guard::Guarded;

/// A mapping of a whole segment; unmapped when dropped.
///
/// Invariant: `[base, base + size)` is mapped, readable and writable, for as long as this value
/// lives. Its memory may be replaced ([`Mapping::replace`]), taken away ([`Mapping::faulted`]) and
/// changed by other processes at any time: it is only touched by atomics and raw copies.
#[derive(Debug)]
pub(crate) struct Mapping {
    base: NonNull<u8>,
    size: usize,
    /// `None` only while it is dropped.
    guarded: Option<Guarded>,
}

// SAFETY: a mapping is memory; all access to it goes through atomics or raw copies.
unsafe impl Send for Mapping {}
// SAFETY: as above.
unsafe impl Sync for Mapping {}

const PROTECTION: libc::c_int = libc::PROT_READ | libc::PROT_WRITE;

impl Mapping {
    /// Takes ownership of a mapping.
    ///
    /// # Safety
    /// `[base, base + size)` is a mapping that nothing else unmaps.
    pub(crate) unsafe fn from_owned(base: NonNull<u8>, size: usize) -> io::Result<Self> {
        let mut mapping = Self { base, size, guarded: None };
        mapping.guarded = Some(Guarded::new(base.as_ptr().addr(), size)?);
        Ok(mapping)
    }

    /// Private zeros that use no memory until they are written to.
    pub(crate) fn zeros(size: u64) -> io::Result<Self> {
        Self::map(size, libc::MAP_PRIVATE | libc::MAP_ANONYMOUS | libc::MAP_NORESERVE, -1)
    }

    /// The first `size` bytes of a file.
    pub(crate) fn file(file: BorrowedFd<'_>, size: u64) -> io::Result<Self> {
        Self::map(size, libc::MAP_SHARED, file.as_raw_fd())
    }

    fn map(size: u64, flags: libc::c_int, file: libc::c_int) -> io::Result<Self> {
        let size = usize::try_from(size).map_err(|_| io::ErrorKind::InvalidInput)?;
        // SAFETY: the kernel chooses an unused address.
        let base = unsafe { libc::mmap(ptr::null_mut(), size, PROTECTION, flags, file, 0) };
        if base == libc::MAP_FAILED {
            return Err(io::Error::last_os_error());
        }
        let base = NonNull::new(base.cast()).ok_or(io::ErrorKind::AddrNotAvailable)?;
        // SAFETY: mapped just now, and used by nothing else.
        unsafe { Self::from_owned(base, size) }
    }

    /// Replaces this mapping's memory by `file`. Readers see the change in one step.
    pub(crate) fn replace(&self, file: BorrowedFd<'_>) -> io::Result<()> {
        let (base, flags) = (self.base().cast(), libc::MAP_SHARED | libc::MAP_FIXED);
        // SAFETY: exactly our own range, which stays mapped throughout. The only references into it
        // are to atomics, for which any bytes are valid.
        let at = unsafe { libc::mmap(base, self.size, PROTECTION, flags, file.as_raw_fd(), 0) };
        if at == libc::MAP_FAILED { Err(io::Error::last_os_error()) } else { Ok(()) }
    }

    pub(crate) fn base(&self) -> *mut u8 {
        self.base.as_ptr()
    }

    pub(crate) fn size(&self) -> usize {
        self.size
    }

    /// Whether some of its memory was found missing. It reads as zeros from then on.
    pub(crate) fn faulted(&self) -> bool {
        self.guarded.as_ref().is_some_and(Guarded::faulted)
    }

    /// madvise(2) on `[offset, offset + length)`, which must lie inside.
    pub(crate) fn advise(&self, offset: u64, length: u64, advice: libc::c_int) -> io::Result<()> {
        let (offset, length) = (offset as usize, length as usize);
        assert!(offset.checked_add(length).is_some_and(|end| end <= self.size));
        // SAFETY: the range lies inside our mapping (asserted). MADV_REMOVE changes contents, to
        // which only atomics refer.
        let done = unsafe { libc::madvise(self.base().add(offset).cast(), length, advice) };
        if done == -1 { Err(io::Error::last_os_error()) } else { Ok(()) }
    }
}

impl Drop for Mapping {
    fn drop(&mut self) {
        // Before the addresses are reused.
        self.guarded = None;
        // SAFETY: our own mapping, unmapped once; borrows of it have ended. For System V memory
        // this is what shmdt(2) does; it also unmaps pages of other kinds inside the range.
        unsafe { libc::munmap(self.base.as_ptr().cast(), self.size) };
    }
}
