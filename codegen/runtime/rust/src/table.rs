//! The table of segments that this process has mapped. They are never unmapped.

use std::sync::atomic::Ordering::{AcqRel, Acquire, Relaxed, Release};

use ppt_segment::abi::MAX_SEGMENTS;

use super::control::Control;
use super::errno::errno;
use super::made;
use super::mapped::{Base, Mapped};
use super::shape::Shape;

/// The mapping that a row of the table names.
fn taken(base: u64) -> Base {
    // SAFETY: rows are filled by `map` alone, with what stays mapped; nobody else writes there.
    unsafe { Base::new(base as usize) }
}

/// The mapping of segment `nonce`. The table of a forked child is empty.
pub(super) fn find(control: &Control, nonce: u64) -> Option<Base> {
    for row in 0..MAX_SEGMENTS {
        let [base, _, name, _] = control.segment(row)?;
        let base = match base.load(Acquire) {
            0 => return None,
            base => taken(base),
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

/// Whether the mapping of segment `nonce` at `base` is as large as `shape`.
fn holds(control: &Control, base: Base, nonce: u64, schema_hash: u64, shape: &Shape) -> bool {
    let rows = (0..MAX_SEGMENTS).filter_map(|row| control.segment(row));
    let mut sizes = rows.filter_map(|[address, _, name, size]| {
        let filled = address.load(Acquire) == base.address() && name.load(Acquire) != 0;
        filled.then(|| size.load(Relaxed))
    });
    match sizes.next() {
        Some(size) => size == shape.words().size,
        None => base.is(nonce, schema_hash, shape), // just mapped: ask the segment itself
    }
}

/// The segment that `gate` names, mapped now or before. The error is an errno.
pub(super) fn open(
    control: &Control,
    schema_hash: u64,
    gate: u64,
    nonce: u64,
    shape: &Shape,
) -> Result<Mapped, i32> {
    let base = find(control, nonce).map_or_else(
        || {
            map(control, schema_hash, gate, nonce, shape)
                // Another thread has mapped it in the meantime.
                .or_else(|error| find(control, nonce).ok_or(error))
        },
        Ok,
    )?;
    if !holds(control, base, nonce, schema_hash, shape) {
        return Err(libc::EPROTO);
    }
    // SAFETY: the table lists it, so it stays mapped, and it is as large as that (checked).
    Ok(unsafe { Mapped::new(base, *shape) })
}

/// Maps the segment that `gate` names, or makes it if the target has to. Several threads may try; the first
/// that enters it in the table wins. The error is an errno.
fn map(
    control: &Control,
    schema_hash: u64,
    gate: u64,
    nonce: u64,
    shape: &Shape,
) -> Result<Base, i32> {
    let size = shape.words().size;
    let (address, fd) = match gate >> 31 & 1 {
        0 => (attach((gate & 0x7fff_ffff) as i32, schema_hash, nonce, shape)?, -1),
        _ => made::make(control, schema_hash, nonce, shape)?,
    };
    // SAFETY: mapped just now, with room for the header (`Shape`). It is unmapped only below, after
    // its last use.
    let base = unsafe { Base::new(address.expose_provenance()) };
    let mut other = None;
    for row in 0..MAX_SEGMENTS {
        let (Some([entry, handle, name, bytes]), Some(memfd)) =
            (control.segment(row), control.memfd(row))
        else {
            break;
        };
        match entry.compare_exchange(0, base.address(), AcqRel, Acquire) {
            Ok(_) => {
                memfd.store((fd + 1) as u64, Relaxed);
                bytes.store(size, Relaxed);
                handle.store(gate, Relaxed);
                name.store(nonce, Release);
                return Ok(base);
            }
            Err(there) if taken(there).nonce() == nonce => {
                other = Some(taken(there));
                break;
            }
            Err(_) => {}
        }
    }
    // SAFETY: mapped a moment ago, and nobody else knows it. For System V memory, too, this is all.
    unsafe { libc::munmap(address, size as usize) };
    if fd != -1 {
        made::close(fd);
    }
    other.ok_or(libc::ENOSPC) // the table is full, unless there is another
}

/// Maps System V segment `id`.
fn attach(id: i32, schema_hash: u64, nonce: u64, shape: &Shape) -> Result<*mut libc::c_void, i32> {
    // SAFETY: the kernel chooses an unused address.
    let address = unsafe { libc::shmat(id, std::ptr::null(), 0) };
    if address as isize == -1 {
        return Err(errno());
    }
    // SAFETY: mapped just now, and what is mapped is whole pages. It is unmapped only below, after
    // its last use.
    let base = unsafe { Base::new(address.expose_provenance()) };
    if !base.is(nonce, schema_hash, shape) {
        // SAFETY: it came from shmat a moment ago, and nobody else knows it.
        unsafe { libc::shmdt(address) };
        return Err(libc::ESTALE); // the id belongs to somebody else by now
    }
    // SAFETY: our own mapping; what the advice changes is what a fork copies.
    unsafe { libc::madvise(address, shape.words().size as usize, libc::MADV_DONTFORK) };
    Ok(address)
}
