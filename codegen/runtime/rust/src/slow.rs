//! The code that runs once a thread and session: `ppt1_join` of `codegen/runtime/c/target.c`, step
//! by step. This code does not allocate, lock, loop over foreign data, or change errno.

use std::sync::atomic::AtomicU64;
use std::sync::atomic::Ordering::{Acquire, Relaxed, Release};

use ppt_segment::abi::{CellWords, GeometryWords, MOVING, PAGE, ProcessPage};
use ppt_segment::handshake::under;

use super::claim::{RELEASED, claim, give_back, process, still_ours};
use super::control::{Control, word};
use super::descriptor::Buffer;
use super::errno::{errno, set_errno};
use super::exit::{at_thread_exit, keep};
use super::mapped::Mapped;
use super::place::RingPlace;
use super::shape::Shape;
use super::table;

/// The number of words of the process page.
const NESTED: usize = std::mem::offset_of!(ProcessPage, nested) / 8;
const NO_RING: usize = std::mem::offset_of!(ProcessPage, no_ring) / 8;

/// The result of [`join`].
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Found {
    Refused,
    NotMapped,
    NoRing,
    Joined,
    GateChanged,
}

fn count(counter: &AtomicU64) {
    counter.fetch_add(1, Relaxed);
}

/// Counts a refused frame, in a segment that outlives this process if possible.
fn refuse(control: &Control, place: &RingPlace, word: usize, unmapped: &AtomicU64) {
    count(process(control, place).and_then(|words| words.get(word)).unwrap_or(unmapped));
}

/// Counts a frame inside another one.
#[cold]
#[inline(never)]
pub(super) fn nested(buffer: &'static Buffer, place: &RingPlace) {
    refuse(buffer.control, place, NESTED, word!(buffer.control, nested));
}

/// Copies the geometry.
fn geometry(control: &Control) -> GeometryWords {
    let whole = |word: &AtomicU64| word.load(Relaxed);
    let halves = |word: &AtomicU64| (whole(word) as u32, (whole(word) >> 32) as u32);
    let (stride, log2_slots) = halves(word!(control, geometry.stride));
    let (rings, ring_pitch) = halves(word!(control, geometry.rings));
    GeometryWords {
        size: whole(word!(control, geometry.size)),
        stride,
        log2_slots,
        rings,
        ring_pitch,
        masks: whole(word!(control, geometry.masks)),
        process: whole(word!(control, geometry.process)),
        ring_headers: whole(word!(control, geometry.ring_headers)),
        slots: whole(word!(control, geometry.slots)),
    }
}

/// Copies the words about cells, unless they are from an earlier agent.
fn rows(control: &Control, nonce: u64) -> CellWords {
    if word!(control, cells.nonce).load(Relaxed) != nonce {
        return CellWords::NONE;
    }
    let halves = word!(control, cells.pitch).load(Relaxed);
    let offset = word!(control, cells.offset).load(Relaxed);
    CellWords { nonce, offset, pitch: halves as u32, rows: (halves >> 32) as u32 }
}

/// The description of the segment that a gate names, from the control page.
pub(super) struct Description {
    pub nonce: u64,
    /// The pid of its process.
    pub target_pid: u32,
    pub geometry: GeometryWords,
    pub rows: CellWords,
}

impl Description {
    /// The shape of the segment, if it is valid.
    fn shape(&self, buffer: &Buffer) -> Option<Shape> {
        let descriptor = buffer.descriptor;
        Shape::of(self.geometry, self.rows, descriptor.stride(), descriptor.cells())
    }
}

/// The description of the segment that `gate` names. `None` if the gate has changed since it was
/// read.
pub(super) fn described(control: &Control, gate: u64) -> Option<Description> {
    under(word!(control, gate), gate, || {
        // clock_kind and target_pid share a word.
        let target_pid = (word!(control, clock_kind).load(Relaxed) >> 32) as u32;
        let nonce = word!(control, nonce).load(Relaxed);
        Description { nonce, target_pid, geometry: geometry(control), rows: rows(control, nonce) }
    })
}

/// Whether the gate is about to name another segment.
pub(super) fn is_moving(gate: u64) -> bool {
    gate as u32 == MOVING
}

/// Whether segment `nonce` could not be mapped by `gate`.
pub(super) fn has_failed(control: &Control, gate: u64, nonce: u64) -> bool {
    gate == word!(control, failed_gate).load(Acquire)
        && nonce == word!(control, failed_nonce).load(Relaxed)
}

/// The described segment, mapped now or before. A failure is noted in the control page.
pub(super) fn reach(buffer: &Buffer, gate: u64, description: &Description) -> Option<Mapped> {
    let (control, nonce) = (buffer.control, description.nonce);
    let schema_hash = buffer.descriptor.schema_hash();
    let segment = description
        .shape(buffer)
        .ok_or(libc::EPROTO) // which no system call here returns
        .and_then(|shape| table::open(control, schema_hash, gate, nonce, &shape));
    let failed = |&error: &i32| {
        word!(control, error).store(gate >> 32 << 32 | error as u32 as u64, Relaxed);
        word!(control, failed_nonce).store(nonce, Relaxed);
        word!(control, failed_gate).store(gate, Release);
    };
    segment.inspect_err(failed).ok()
}

/// Maps a newly attached segment before the program's own code can install a filter of system calls, with which
/// its first frame might end it. It only makes system calls, because a thread's first access to its `RingPlace`
/// may allocate. After a failure, the first frame tries again, and reports it. Returns whether this process has
/// made the segment now.
pub(super) fn map_early(buffer: &Buffer) -> bool {
    let control = buffer.control;
    let gate = control.gate();
    if gate == 0 || is_moving(gate) {
        return false;
    }
    let Some(description) = described(control, gate) else { return false };
    let Description { nonce, target_pid, .. } = description;
    // SAFETY: no pointers.
    if target_pid != unsafe { libc::getpid() } as u32 || table::find(control, nonce).is_some() {
        return false;
    }
    let hash = buffer.descriptor.schema_hash();
    let shape = description.shape(buffer);
    let mapped = shape.is_some_and(|shape| table::open(control, hash, gate, nonce, &shape).is_ok());
    mapped && gate >> 31 & 1 == 1
}

/// Remembers that this gate has no ring for this thread, until `released` changes.
fn remember(place: &RingPlace, gate: u64, nonce: u64, released: u64) {
    place.refused_released.set(released);
    place.refused_nonce.set(nonce);
    place.refused_gate.set(gate);
}

/// Finds a ring for a thread whose last gate was another one, once for each value of the gate. The order
/// matters: code that runs once a frame makes no system call.
///
/// # Safety
/// `place` is a thread-local of the calling thread, and has no destructor.
unsafe fn join(buffer: &'static Buffer, place: &RingPlace, gate: u64) -> Found {
    let control = buffer.control;
    keep(buffer.descriptor);
    if gate == 0 {
        return Found::Refused;
    }
    if is_moving(gate) {
        // The gate changes soon; until then, the thread keeps its ring.
        let there = table::find(control, place.nonce.load(Relaxed)).is_some();
        let ours = there && still_ours(place, place.nonce.load(Relaxed));
        return if ours { Found::Joined } else { Found::GateChanged };
    }
    let Some(description) = described(control, gate) else { return Found::GateChanged };
    let nonce = description.nonce;
    if has_failed(control, gate, nonce) {
        return Found::NotMapped;
    }
    if gate == place.refused_gate.get() && nonce == place.refused_nonce.get() {
        let released = place.refused_released.get();
        if process(control, place).is_none_or(|words| words[RELEASED].load(Acquire) == released) {
            return Found::NoRing;
        }
    }
    // SAFETY: no pointers.
    if description.target_pid != unsafe { libc::getpid() } as u32 {
        // This is not remembered: a child of vfork(2) runs on the state of the thread that waits for it.
        if buffer.guard.copied() {
            buffer.guard.empty(control);
        }
        return Found::Refused;
    }
    buffer.guard.empty_on_fork(control); // this may be another constructor's frame

    let Some(segment) = reach(buffer, gate, &description) else { return Found::NotMapped };

    if still_ours(place, nonce) {
        place.gate.set(gate); // the same segment again
        return Found::Joined;
    }
    give_back(buffer, place);
    let process = segment.process();
    place.process.store(process.as_ptr().cast_mut(), Relaxed);
    let shared = segment.row(0).unwrap_or(std::ptr::null());
    place.shared.store(shared.cast_mut(), Relaxed);
    place.nonce.store(nonce, Relaxed);
    if !claim(place, &segment) {
        // A ring that is released after the second attempt changes this number.
        let released = process[RELEASED].load(Acquire);
        if !claim(place, &segment) {
            remember(place, gate, nonce, released);
            return Found::NoRing;
        }
    }
    // SAFETY: the contract of this function.
    unsafe { at_thread_exit(buffer, place) };
    if control.gate() != gate {
        give_back(buffer, place);
        return Found::GateChanged;
    }
    place.enable.set(segment.enable().as_ptr());
    place.gate.set(gate);
    Found::Joined
}

/// Whether the busy thread has a ring for the gate that it has just read. If not, the frame is counted.
///
/// # Safety
/// `place` is a thread-local of the calling thread, and has no destructor.
#[cold]
#[inline(never)]
pub(super) unsafe fn found(buffer: &'static Buffer, place: &RingPlace, gate: u64) -> bool {
    let control = buffer.control;
    // SAFETY: the contract of this function.
    let found = unsafe { find(buffer, place, gate) };
    match found {
        Found::NoRing => refuse(control, place, NO_RING, word!(control, no_ring)),
        Found::NotMapped | Found::GateChanged => count(word!(control, not_mapped)),
        Found::Refused | Found::Joined => {}
    }
    found == Found::Joined
}

/// Finds a ring for the busy thread.
///
/// # Safety
/// `place` is a thread-local of the calling thread, and has no destructor.
pub(super) unsafe fn find(buffer: &'static Buffer, place: &RingPlace, gate: u64) -> Found {
    let saved = errno();
    // SAFETY: the contract of this function.
    let join = |gate| unsafe { join(buffer, place, gate) };
    let mut found = join(gate);
    for _ in 0..4 {
        if found != Found::GateChanged {
            break;
        }
        found = join(buffer.control.gate());
    }
    set_errno(saved);
    found
}

/// Finds a ring for the thread, and touches its pages.
///
/// # Safety
/// `place` is a thread-local of the calling thread, and has no destructor.
#[cold]
#[inline(never)]
pub(super) unsafe fn prepare(buffer: &'static Buffer, place: &RingPlace) {
    if place.busy.load(Relaxed) != 0 {
        return;
    }
    place.enter();
    let gate = buffer.control.gate();
    // SAFETY: the contract of this function.
    let found = || unsafe { find(buffer, place, gate) } == Found::Joined;
    if gate != 0 && (gate == place.gate.get() || found()) {
        let saved = errno();
        let start = place.first.get().addr() as u64 / PAGE * PAGE;
        // The kernel rounds the end up to its own page size; rounded to ours, it might be other memory.
        let bytes = place.end.get().addr() as u64 - start;
        let start = std::ptr::with_exposed_provenance_mut(start as usize);
        // SAFETY: the pages of our ring, which lies in a mapped segment; they are read and written
        // back by the kernel, as if by a store of what is there.
        unsafe { libc::madvise(start, bytes as usize, libc::MADV_POPULATE_WRITE) };
        set_errno(saved);
    }
    place.leave();
}
