//! A thread's place in its ring.

use std::cell::Cell;
use std::ptr;
use std::sync::atomic::Ordering::{Relaxed, SeqCst};
use std::sync::atomic::{AtomicPtr, AtomicU32, AtomicU64, compiler_fence};

use ppt_segment::abi::NO_GATE;
use ppt_segment::ring::Ring;

use super::descriptor::Buffer;

/// A thread's place in the ring that it owns.
///
/// Invariants, while the thread owns a ring:
/// - `slot` lies in `[first, end)`, a whole number of strides from `first`. All of them, `tail` and `enable`
///   point into a segment that is mapped and never unmapped.
/// - `row` is null, or points into that segment, to as many cells as the buffer has. No other thread adds
///   to them.
/// - Only the thread and its signal handlers read the place. `busy` keeps handlers from writing. Fields that
///   handlers may read meanwhile are atomic.
#[derive(Debug)]
pub(super) struct RingPlace {
    /// The row of cells of this thread, or null.
    pub row: Cell<*const AtomicU64>,
    /// The slot of the next frame.
    pub slot: Cell<*const AtomicU64>,
    /// The index of the next frame: one less than its sequence number.
    pub next: Cell<u64>,
    /// The value of the gate when the ring was claimed.
    pub gate: Cell<u64>,
    /// The mask of frames, with one bit each.
    pub enable: Cell<*const AtomicU64>,
    /// The ring's cursor.
    pub tail: Cell<*const AtomicU64>,
    /// The ring's slots.
    pub first: Cell<*const AtomicU64>,
    pub end: Cell<*const AtomicU64>,
    /// A frame or a cell is being written: a frame of a signal handler is refused, and it adds to the shared
    /// row.
    pub busy: AtomicU32,
    /// The number of the claim in the ring.
    pub epoch: Cell<u32>,
    /// The ring of this thread.
    pub ring: Cell<Option<Ring<'static, AtomicU64>>>,
    /// The segment's counters of refused frames.
    pub process: AtomicPtr<AtomicU64>,
    /// The shared row of cells of the segment, or null.
    pub shared: AtomicPtr<AtomicU64>,
    /// The nonce of the segment, whose mapping is valid only while the table lists it.
    pub nonce: AtomicU64,
    /// The remembered refusal: no ring was free.
    pub refused_gate: Cell<u64>,
    pub refused_nonce: Cell<u64>,
    pub refused_released: Cell<u64>,
    /// The buffer of the ring. The end of the thread needs it.
    pub buffer: Cell<Option<&'static Buffer>>,
}

impl RingPlace {
    pub const fn new() -> Self {
        Self {
            row: Cell::new(ptr::null()),
            slot: Cell::new(ptr::null()),
            next: Cell::new(0),
            gate: Cell::new(NO_GATE),
            enable: Cell::new(ptr::null()),
            tail: Cell::new(ptr::null()),
            first: Cell::new(ptr::null()),
            end: Cell::new(ptr::null()),
            busy: AtomicU32::new(0),
            epoch: Cell::new(0),
            ring: Cell::new(None),
            process: AtomicPtr::new(ptr::null_mut()),
            shared: AtomicPtr::new(ptr::null_mut()),
            nonce: AtomicU64::new(0),
            refused_gate: Cell::new(0),
            refused_nonce: Cell::new(0),
            refused_released: Cell::new(0),
            buffer: Cell::new(None),
        }
    }

    /// A signal handler sees this before everything that follows it.
    #[inline(always)]
    pub fn enter(&self) {
        self.busy.store(1, Relaxed);
        compiler_fence(SeqCst);
    }

    /// A signal handler sees this after everything that precedes it.
    #[inline(always)]
    pub fn leave(&self) {
        compiler_fence(SeqCst);
        self.busy.store(0, Relaxed);
    }
}
