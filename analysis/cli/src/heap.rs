//! The heap of a question, which has a limit: the allocation that would exceed it ends the process.
//!
//! The engine accounts for sorts, joins and groups, and spills them to disk. Other memory is not
//! accounted for: a text that a function makes, a list, a group of `ppt stat`. A failed allocation
//! aborts a Rust program with a message of its own, so the process exits with [`OVER`] instead, and the
//! supervisor prints the message.

use std::alloc::{GlobalAlloc, Layout, System};
use std::cell::Cell;
use std::fs::File;
use std::sync::OnceLock;
use std::sync::atomic::{AtomicIsize, AtomicUsize, Ordering::Relaxed};

/// Exit status of a process that reached its limit. No command uses it otherwise.
pub(crate) const OVER: u8 = 113;

/// Bytes that a thread allocates or frees before it adds them to [`LIVE`].
const STEP: isize = 64 << 10;
/// Bytes that a thread allocates before it compares the process with the limit.
const CHECK_BYTES: usize = 1 << 20;
/// Size from which on the allocator moves blocks without copying them (glibc maps them).
const MAPPED: usize = 64 << 20;

/// Maximum bytes of the process.
static LIMIT: AtomicUsize = AtomicUsize::new(usize::MAX);
/// Allocated bytes; each thread adds its share in steps of [`STEP`].
static LIVE: AtomicIsize = AtomicIsize::new(0);
/// `/proc/self/statm`.
static STATM: OnceLock<File> = OnceLock::new();

/// Allocations of a thread since it last updated [`LIVE`].
struct Local {
    /// Allocated minus freed bytes.
    held: Cell<isize>,
    /// Bytes allocated since the last check.
    taken: Cell<usize>,
}

thread_local! {
    static LOCAL: Local = const { Local { held: Cell::new(0), taken: Cell::new(0) } };
}

/// Sets the limit, in bytes of memory that no file backs.
pub(crate) fn limit(bytes: usize) {
    // Without /proc, only allocations are counted.
    if let Ok(statm) = File::open("/proc/self/statm") {
        let _ = STATM.set(statm);
    }
    LIMIT.store(bytes, Relaxed);
}

/// The system's allocator, with the limit. A process without one only asks whether there is one.
#[derive(Debug)]
pub struct Heap;

// SAFETY: each method passes its arguments to `System`, whose contract is the same, and returns what it
// returns. The counting beside it neither allocates nor unwinds: it adds to `Cell`s and atomics, and
// reads a file into an array on the stack.
unsafe impl GlobalAlloc for Heap {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        grow(layout.size(), layout.size());
        // SAFETY: the caller keeps the contract of `GlobalAlloc::alloc`.
        unsafe { System.alloc(layout) }
    }

    unsafe fn alloc_zeroed(&self, layout: Layout) -> *mut u8 {
        grow(layout.size(), layout.size());
        // SAFETY: the caller keeps the contract of `GlobalAlloc::alloc_zeroed`.
        unsafe { System.alloc_zeroed(layout) }
    }

    unsafe fn dealloc(&self, block: *mut u8, layout: Layout) {
        shrink(layout.size());
        // SAFETY: the caller keeps the contract of `GlobalAlloc::dealloc`.
        unsafe { System.dealloc(block, layout) }
    }

    unsafe fn realloc(&self, block: *mut u8, layout: Layout, size: usize) -> *mut u8 {
        let old = layout.size();
        if size > old {
            // A copy needs the new block while the old one still exists.
            grow(size - old, if old < MAPPED { size } else { size - old });
        } else {
            shrink(old - size);
        }
        // SAFETY: the caller keeps the contract of `GlobalAlloc::realloc`.
        unsafe { System.realloc(block, layout, size) }
    }
}

/// Whether nothing is counted: only the process of a question has a limit.
fn has_no_limit() -> bool {
    LIMIT.load(Relaxed) == usize::MAX
}

/// Adds `size` bytes, for which the process may need `room` more bytes at once.
fn grow(size: usize, room: usize) {
    if has_no_limit() {
        return;
    }
    let _ = LOCAL.try_with(|local| {
        let taken = local.taken.get().saturating_add(room);
        if taken < CHECK_BYTES {
            local.taken.set(taken);
        } else {
            local.taken.set(0);
            look(room);
        }
        hold(local, size as isize);
    });
}

fn shrink(size: usize) {
    if has_no_limit() {
        return;
    }
    let _ = LOCAL.try_with(|local| hold(local, -(size as isize)));
}

fn hold(local: &Local, bytes: isize) {
    let held = local.held.get().saturating_add(bytes);
    if held.abs() < STEP {
        local.held.set(held);
    } else {
        local.held.set(0);
        LIVE.fetch_add(held, Relaxed);
    }
}

/// Ends the process if it cannot have `room` more bytes.
#[cold]
fn look(room: usize) {
    let limit = LIMIT.load(Relaxed);
    let live = LIVE.load(Relaxed).max(0).unsigned_abs();
    if live.saturating_add(room) > limit {
        signal_hook::low_level::exit(i32::from(OVER));
    }
    // Freed memory may still be resident: the allocator keeps it.
    if resident().saturating_add(room) > limit {
        trim();
        if resident() > limit {
            signal_hook::low_level::exit(i32::from(OVER));
        }
    }
}

/// Resident bytes of this process that no file backs; 0 if unknown.
fn resident() -> usize {
    let mut text = [0; 128];
    let read = STATM.get().and_then(|statm| rustix::io::pread(statm, &mut text, 0).ok());
    let text = &text[..read.unwrap_or_default()];
    let mut pages = text.split(u8::is_ascii_whitespace).map(|number| {
        number.iter().fold(0usize, |all, digit| all * 10 + usize::from(digit.wrapping_sub(b'0')))
    });
    // Total size, resident pages, and resident pages of files (proc(5)).
    let (resident, files) = (pages.nth(1).unwrap_or_default(), pages.next().unwrap_or_default());
    resident.saturating_sub(files).saturating_mul(rustix::param::page_size())
}

/// Returns freed memory to the kernel.
#[cfg(target_env = "gnu")]
fn trim() {
    // SAFETY: malloc_trim(3) may be called at any time: it takes the allocator's own locks, which this
    // thread does not hold, because it counts before it calls the allocator.
    unsafe { libc::malloc_trim(0) };
}

#[cfg(not(target_env = "gnu"))]
fn trim() {}
