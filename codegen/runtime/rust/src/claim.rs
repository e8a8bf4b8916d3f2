//! Claims a ring for a thread, and releases it.

use std::ptr;
use std::sync::atomic::Ordering::{Relaxed, Release, SeqCst};
use std::sync::atomic::{AtomicU64, compiler_fence};

use ppt_segment::abi::{NO_GATE, ProcessPage, ring_state};

use super::control::Control;
use super::descriptor::Buffer;
use super::mapped::{Mapped, PROCESS_WORDS};
use super::place::RingPlace;
use super::table;

/// The word of the process page that counts released rings.
pub(super) const RELEASED: usize = std::mem::offset_of!(ProcessPage, released) / 8;

/// The counters of the thread's last segment, if it is still mapped.
pub(super) fn process<'a>(
    control: &Control,
    place: &RingPlace,
) -> Option<&'a [AtomicU64; PROCESS_WORDS]> {
    let words = place.process.load(Relaxed);
    if words.is_null() || table::find(control, place.nonce.load(Relaxed)).is_none() {
        return None;
    }
    // SAFETY: the process page of a segment that the table lists: mapped, and never unmapped.
    Some(unsafe { &*words.cast() })
}

/// Claims the lowest free ring.
pub(super) fn claim(place: &RingPlace, segment: &Mapped) -> bool {
    // SAFETY: no pointers.
    let tid = unsafe { libc::syscall(libc::SYS_gettid) } as u32;
    for index in 0..segment.rings() {
        let (slots, ring) = segment.ring(index);
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
        // Row 0 is shared. There may be fewer rows than rings.
        place.row.set(segment.row(index + 1).unwrap_or(ptr::null()));
        place.ring.set(Some(ring));
        return true;
    }
    false
}

/// Whether the thread still owns a ring of segment `nonce`, which is mapped.
pub(super) fn still_ours(place: &RingPlace, nonce: u64) -> bool {
    // The nonce first: in a forked child the ring of another segment is not mapped.
    let ring = place.ring.get().filter(|_| place.nonce.load(Relaxed) == nonce);
    ring.is_some_and(|ring| {
        let owner = ring.owner();
        owner.epoch == place.epoch.get() && owner.state == ring_state::ACTIVE
    })
}

/// Releases the thread's ring. The thread forgets it first, so that a signal handler that interrupts this does
/// not write into it.
pub(super) fn give_back(buffer: &Buffer, place: &RingPlace) {
    place.gate.set(NO_GATE);
    let ring = place.ring.take();
    place.row.set(ptr::null());
    compiler_fence(SeqCst);
    let (Some(ring), Some(process)) = (ring, process(buffer.control, place)) else { return };
    if ring.release(place.epoch.get()) {
        process[RELEASED].fetch_add(1, Release);
    }
}
