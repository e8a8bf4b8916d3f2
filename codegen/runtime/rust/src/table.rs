//! The segments that this process has mapped. None is ever unmapped.

use std::sync::atomic::AtomicU64;
use std::sync::atomic::Ordering::{AcqRel, Acquire, Relaxed, Release};

use ppt_segment::abi::{GeometryWords, MAX_SEGMENTS, SEGMENT_MAGIC, SegmentHeader};

use super::control::Control;
use super::made;

/// Start of a mapped segment: whole pages, there until the process ends.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Base(usize);

impl Base {
    /// The words from byte `offset` on, which is a multiple of 8 inside the segment.
    pub fn words(self, offset: u64) -> *const AtomicU64 {
        std::ptr::with_exposed_provenance(self.0.wrapping_add(offset as usize))
    }

    /// A word of the header.
    fn header(self, offset: usize) -> u64 {
        // SAFETY: the header is the first page of the mapping, written before the gate was opened;
        // an atomic load suits memory that other processes share.
        unsafe { (*self.words(offset as u64)).load(Relaxed) }
    }

    fn nonce(self) -> u64 {
        self.header(std::mem::offset_of!(SegmentHeader, nonce))
    }
}

/// The mapping of segment `nonce`. After a fork the table is empty: a child finds nothing.
pub(super) fn find(control: &Control, nonce: u64) -> Option<Base> {
    for row in 0..MAX_SEGMENTS {
        let [base, _, name, _] = control.segment(row)?;
        let base = match base.load(Acquire) {
            0 => return None,
            base => Base(base as usize),
        };
        let name = match name.load(Acquire) {
            0 => base.nonce(), // just mapped by another thread: ask the segment itself
            name => name,
        };
        if name == nonce {
            return Some(base);
        }
    }
    None
}

/// Maps the segment that `gate` names, or makes it where that is for us to do. Every thread may
/// try; the first to enter it in the table wins. The error is an errno.
pub(super) fn map(
    control: &Control,
    schema_hash: u64,
    gate: u64,
    nonce: u64,
    geometry: &GeometryWords,
) -> Result<Base, i32> {
    let (address, fd) = match gate >> 31 & 1 {
        0 => (attach((gate & 0x7fff_ffff) as i32, nonce, geometry)?, -1),
        _ => made::make(control, schema_hash, nonce, geometry)?,
    };
    let base = Base(address.expose_provenance());
    let mut other = None;
    for row in 0..MAX_SEGMENTS {
        let (Some([entry, handle, name, size]), Some(memfd)) =
            (control.segment(row), control.memfd(row))
        else {
            break;
        };
        match entry.compare_exchange(0, base.0 as u64, AcqRel, Acquire) {
            Ok(_) => {
                memfd.store((fd + 1) as u64, Relaxed);
                size.store(geometry.size, Relaxed);
                handle.store(gate, Relaxed);
                name.store(nonce, Release);
                return Ok(base);
            }
            Err(taken) if Base(taken as usize).nonce() == nonce => {
                other = Some(Base(taken as usize));
                break;
            }
            Err(_) => {}
        }
    }
    // SAFETY: mapped a moment ago, and nobody else knows it. For System V memory, too, this is all.
    unsafe { libc::munmap(address, geometry.size as usize) };
    if fd != -1 {
        made::close(fd);
    }
    other.ok_or(libc::ENOSPC) // the table is full, unless there is another
}

/// Maps System V segment `id`.
fn attach(id: i32, nonce: u64, geometry: &GeometryWords) -> Result<*mut libc::c_void, i32> {
    // SAFETY: the kernel chooses an unused address.
    let address = unsafe { libc::shmat(id, std::ptr::null(), 0) };
    if address as isize == -1 {
        return Err(errno());
    }
    let base = Base(address.expose_provenance());
    let stride = base.header(std::mem::offset_of!(SegmentHeader, stride)) as u32;
    if base.header(std::mem::offset_of!(SegmentHeader, magic)) != SEGMENT_MAGIC
        || base.nonce() != nonce
        || stride != geometry.stride
    {
        // SAFETY: it came from shmat a moment ago, and nobody else knows it.
        unsafe { libc::shmdt(address) };
        return Err(libc::ESTALE); // the id belongs to somebody else by now
    }
    // SAFETY: our own mapping; what the advice changes is what a fork copies.
    unsafe { libc::madvise(address, geometry.size as usize, libc::MADV_DONTFORK) };
    Ok(address)
}

pub(super) fn errno() -> i32 {
    // SAFETY: the C library's own variable of this thread.
    unsafe { *libc::__errno_location() }
}

pub(super) fn set_errno(value: i32) {
    // SAFETY: as above.
    unsafe { *libc::__errno_location() = value };
}
