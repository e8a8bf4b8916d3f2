//! What happens once a thread and session: `ppt1_join` of `codegen/runtime/c/target.c`, step by
//! step. Nothing here allocates, locks or loops over foreign data, and errno is left alone.

use std::slice;
use std::sync::atomic::Ordering::{Acquire, Relaxed, Release, SeqCst};
use std::sync::atomic::{AtomicU64, compiler_fence};

use ppt_segment::abi::{
    GeometryWords, LOG2_SLOTS, MAX_RINGS, NO_GATE, PAGE, ProcessPage, ring_state, ring_word,
};
use ppt_segment::handshake::under;
use ppt_segment::ring::Ring;

use super::control::{Control, word};
use super::descriptor::Buffer;
use super::exit::{at_thread_exit, keep};
use super::hello::LOADED;
use super::table::{self, Base, errno, set_errno};
use super::thread::Place;

/// Words of the process page.
const RELEASED: usize = std::mem::offset_of!(ProcessPage, released) / 8;
const NESTED: usize = std::mem::offset_of!(ProcessPage, nested) / 8;
const NO_RING: usize = std::mem::offset_of!(ProcessPage, no_ring) / 8;

/// What [`join`] found.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Found {
    Refused,
    Joined,
    GateChanged,
}

fn count(counter: &AtomicU64) {
    counter.fetch_add(1, Relaxed);
}

/// The counters of the segment that the thread last knew, if it is still mapped.
fn process<'a>(control: &Control, place: &Place) -> Option<&'a [AtomicU64; 3]> {
    let words = place.process.load(Relaxed);
    if words.is_null() || table::find(control, place.nonce.load(Relaxed)).is_none() {
        return None;
    }
    // SAFETY: the process page of a segment that the table lists: mapped, and never unmapped.
    Some(unsafe { &*words.cast() })
}

/// Counts a refused frame where it outlives this process, if that is possible.
fn refuse(control: &Control, place: &Place, word: usize, unmapped: &AtomicU64) {
    count(process(control, place).and_then(|words| words.get(word)).unwrap_or(unmapped));
}

/// A frame inside another one.
#[cold]
#[inline(never)]
pub(super) fn nested(buffer: &'static Buffer, place: &Place) {
    refuse(buffer.control, place, NESTED, word!(buffer.control, nested));
}

/// Gives the thread's ring back. The thread forgets it first: a signal handler that comes in
/// between finds nothing to write into.
pub(super) fn give_back(buffer: &Buffer, place: &Place) {
    place.gate.set(NO_GATE);
    let ring = place.ring.take();
    compiler_fence(SeqCst);
    let (Some(ring), Some(process)) = (ring, process(buffer.control, place)) else { return };
    if ring.release(place.epoch.get()) {
        process[RELEASED].fetch_add(1, Release);
    }
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

/// Whether everything that will be used lies in the segment, for slots of our stride.
fn fits(geometry: &GeometryWords, stride: u32) -> bool {
    let g = geometry;
    let end = |start: u64, count: u64, bytes: u64| start.checked_add(count.checked_mul(bytes)?);
    let inside = |end: Option<u64>| end.is_some_and(|end| end <= g.size);
    let rings = g.rings as u64;
    g.stride == stride
        && LOG2_SLOTS.contains(&g.log2_slots)
        && g.rings <= MAX_RINGS
        && g.ring_pitch as usize >= ring_word::COUNT * 8
        && [g.masks, g.process, g.ring_headers, g.slots, g.ring_pitch as u64]
            .iter()
            .all(|it| *it % 8 == 0)
        && inside(end(g.masks, 1, PAGE))
        && inside(end(g.process, 1, PAGE))
        && inside(end(g.ring_headers, rings, g.ring_pitch as u64))
        && inside(end(g.slots, rings, (stride as u64) << g.log2_slots))
}

/// Ring `index` of a mapped segment.
fn ring(
    base: Base,
    g: &GeometryWords,
    index: u32,
) -> (&'static [AtomicU64], Ring<'static, AtomicU64>) {
    let index = index as u64;
    let bytes = (g.stride as u64) << g.log2_slots;
    let header = base.words(g.ring_headers + index * g.ring_pitch as u64);
    let slots = base.words(g.slots + index * bytes);
    // SAFETY: both ranges lie in the segment (`fits`), which is mapped and never unmapped. Atomics
    // suit memory that other processes share.
    let (header, slots) = unsafe {
        (
            slice::from_raw_parts(header, ring_word::COUNT),
            slice::from_raw_parts(slots, bytes as usize / 8),
        )
    };
    (slots, Ring::new(header, slots, g.stride as usize / 8))
}

/// Claims the lowest free ring.
fn claim(place: &Place, base: Base, geometry: &GeometryWords) -> bool {
    // SAFETY: no pointers.
    let tid = unsafe { libc::syscall(libc::SYS_gettid) } as u32;
    for index in 0..geometry.rings {
        let (slots, ring) = ring(base, geometry, index);
        if !ring.claim(tid) {
            continue;
        }
        let next = ring.tail();
        let slot = (next & (ring.slot_count() - 1)) as usize * ring.stride();
        let range = slots.as_ptr_range();
        place.first.set(range.start);
        place.end.set(range.end);
        place.slot.set(range.start.wrapping_add(slot));
        place.next.set(next);
        place.epoch.set(ring.owner().epoch);
        place.tail.set(ring.tail_word());
        place.ring.set(Some(ring));
        return true;
    }
    false
}

/// Whether the thread's ring is of segment `nonce`, which is mapped, and has not been taken away.
fn still_ours(place: &Place, nonce: u64) -> bool {
    // The nonce first: in a forked child the ring of another segment is not mapped.
    let ring = place.ring.get().filter(|_| place.nonce.load(Relaxed) == nonce);
    ring.is_some_and(|ring| {
        let owner = ring.owner();
        owner.epoch == place.epoch.get() && owner.state == ring_state::ACTIVE
    })
}

/// Remembers that this gate has nothing for this thread, until `released` changes.
fn remember(place: &Place, gate: u64, nonce: u64, released: u64) {
    place.refused_released.set(released);
    place.refused_nonce.set(nonce);
    place.refused_gate.set(gate);
}

/// The gate is not the one this thread knows: finds the thread a ring, once per value of the gate,
/// or counts the frame. Order matters: what is entered once a frame makes no system call.
fn join(buffer: &'static Buffer, place: &Place, stride: u32, gate: u64) -> Found {
    let control = buffer.control;
    keep(buffer.descriptor);
    keep(&raw const LOADED);
    if gate == 0 {
        return Found::Refused;
    }
    let description = under(word!(control, gate), gate, || {
        // clock_kind and target_pid share a word.
        let target_pid = (word!(control, clock_kind).load(Relaxed) >> 32) as u32;
        (word!(control, nonce).load(Relaxed), target_pid, geometry(control))
    });
    let Some((nonce, target_pid, geometry)) = description else { return Found::GateChanged };
    if gate == word!(control, failed_gate).load(Acquire)
        && nonce == word!(control, failed_nonce).load(Relaxed)
    {
        count(word!(control, not_mapped));
        return Found::Refused;
    }
    if gate == place.refused_gate.get() && nonce == place.refused_nonce.get() {
        let released = place.refused_released.get();
        if process(control, place).is_none_or(|words| words[RELEASED].load(Acquire) == released) {
            refuse(control, place, NO_RING, word!(control, no_ring));
            return Found::Refused;
        }
    }
    // SAFETY: no pointers.
    if target_pid != unsafe { libc::getpid() } as u32 {
        // Nothing is remembered: a child of vfork(2) runs as the thread that waits for it.
        if buffer.guard.copied() {
            buffer.guard.empty(control);
        }
        return Found::Refused;
    }
    buffer.guard.empty_on_fork(control); // this may be another constructor's frame

    let mapped = match table::find(control, nonce) {
        _ if !fits(&geometry, stride) => Err(libc::EINVAL),
        Some(base) => Ok(base),
        None => table::map(control, buffer.descriptor.schema_hash(), gate, nonce, &geometry)
            // by another thread, meanwhile
            .or_else(|error| table::find(control, nonce).ok_or(error)),
    };
    let base = match mapped {
        Ok(base) => base,
        Err(error) => {
            word!(control, error).store(gate >> 32 << 32 | error as u32 as u64, Relaxed);
            word!(control, failed_nonce).store(nonce, Relaxed);
            word!(control, failed_gate).store(gate, Release);
            count(word!(control, not_mapped));
            return Found::Refused;
        }
    };

    if still_ours(place, nonce) {
        place.gate.set(gate); // the same segment again
        return Found::Joined;
    }
    give_back(buffer, place);
    let process = base.words(geometry.process);
    place.process.store(process.cast_mut(), Relaxed);
    place.nonce.store(nonce, Relaxed);
    if !claim(place, base, &geometry) {
        // What is released after the second look changes this number.
        // SAFETY: the process page lies in the segment (`fits`).
        let released = unsafe { (*process.add(RELEASED)).load(Acquire) };
        if !claim(place, base, &geometry) {
            remember(place, gate, nonce, released);
            refuse(control, place, NO_RING, word!(control, no_ring));
            return Found::Refused;
        }
    }
    at_thread_exit(buffer, place);
    if control.gate() != gate {
        give_back(buffer, place);
        return Found::GateChanged;
    }
    place.enable.set(base.words(geometry.masks));
    place.gate.set(gate);
    Found::Joined
}

/// Whether the thread, which is busy, has a ring for the gate that it just read.
#[cold]
#[inline(never)]
pub(super) fn found(buffer: &'static Buffer, place: &Place, stride: u32, gate: u64) -> bool {
    let saved = errno();
    let mut found = join(buffer, place, stride, gate);
    for _ in 0..4 {
        if found != Found::GateChanged {
            break;
        }
        found = join(buffer, place, stride, buffer.control.gate());
    }
    if found == Found::GateChanged {
        count(word!(buffer.control, not_mapped));
    }
    set_errno(saved);
    found == Found::Joined
}

/// Finds the thread a ring and touches its pages.
#[cold]
#[inline(never)]
pub(super) fn prepare(buffer: &'static Buffer, place: &Place, stride: u32) {
    if place.busy.load(Relaxed) != 0 {
        return;
    }
    place.enter();
    let gate = buffer.control.gate();
    if gate != 0 && (gate == place.gate.get() || found(buffer, place, stride, gate)) {
        let saved = errno();
        let start = place.first.get().addr() as u64 / PAGE * PAGE;
        let bytes = (place.end.get().addr() as u64 - start).next_multiple_of(PAGE);
        let start = std::ptr::with_exposed_provenance_mut(start as usize);
        // SAFETY: the pages of our ring, which lies in a mapped segment; they are read and written
        // back by the kernel, as if by a store of what is there.
        unsafe { libc::madvise(start, bytes as usize, libc::MADV_POPULATE_WRITE) };
        set_errno(saved);
    }
    place.leave();
}
