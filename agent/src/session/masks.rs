//! The masks of a session, in the control page and in the segments: what the target writes.
//!
//! The agent is the only writer. It writes them before the gate whenever it starts to use a
//! segment, and all ones when it leaves. While the gate is open it may flip them; a [`Flip`] states
//! what is known of each ring then.

use std::thread;
use std::time::Duration;

use ppt_segment::Segment;
use ppt_segment::abi::{Claim, DisabledWords};
use ppt_segment::masks::{Masks, first_disabled, first_enabled};
use rustix::thread::{MembarrierCommand, membarrier};
use rustix::time::{ClockId, clock_gettime};

use super::attached::{AttachedBuffer, Firsts, Noted, RequestedMasks};
use super::wanted::{Flip, FlipRing};
use crate::control::disabled_bytes;

/// Longer than a store takes to become visible, for kernels that cannot guarantee visibility.
const STORES: Duration = Duration::from_millis(1);

fn claimed(segment: &Segment) -> impl Iterator<Item = u32> {
    (0..segment.geometry().rings()).filter(|&ring| segment.ring(ring).owner().epoch > 0)
}

/// The time, and the sequence number per ring before which no frame is newly enabled.
pub(super) fn before(segment: &Segment) -> (u64, Firsts) {
    let now = clock_gettime(ClockId::Monotonic);
    let mono_ns = now.tv_sec as u64 * 1_000_000_000 + now.tv_nsec as u64;
    let first = |ring| (ring, first_enabled(segment.ring(ring)));
    (mono_ns, claimed(segment).map(first).collect())
}

/// The flip of a segment, after [`barrier`] where something was disabled.
pub(super) fn after(
    segment: &Segment,
    (mono_ns, before): (u64, Firsts),
    changes: Vec<(u32, bool)>,
) -> Flip {
    let rings = claimed(segment).map(|ring| FlipRing {
        ring,
        // In a ring that was claimed since, all frames came after the flip began.
        first_enabled: before
            .binary_search_by_key(&ring, |entry| entry.0)
            .map_or(1, |at| before[at].1),
        first_disabled: first_disabled(segment.ring(ring)),
    });
    Flip { nonce: segment.nonce(), mono_ns, changes, rings: rings.collect() }
}

/// Makes this thread's stores visible to every running thread of any process, and theirs to this
/// thread. A thread that reads a mask after this sees it, and all frames before that read are
/// published.
pub(super) fn barrier() {
    if membarrier(MembarrierCommand::Global).is_err() {
        thread::sleep(STORES);
    }
}

/// The words of the control page.
pub(super) fn mask_bytes(buffer: &AttachedBuffer, claim: Claim) -> Vec<u8> {
    disabled_bytes(DisabledWords { nonce: claim.nonce, bits: buffer.masks.words() })
}

/// Writes the wanted masks into the segment of `buffer`: before the gate opens, or before any thread
/// has fetched more from it.
pub(super) fn enter(buffer: &mut AttachedBuffer) {
    let seen = before(&buffer.segment);
    buffer.segment.set_masks(&buffer.masks);
    let asked = buffer.asked.take();
    let (early, late): (Vec<u32>, Vec<u32>) = buffer
        .masks
        .disabled()
        .partition(|&bit| asked.is_some_and(|asked| !asked.masks.is_enabled(bit)));
    let changes = |bits: Vec<u32>| bits.into_iter().map(|bit| (bit, false)).collect::<Vec<_>>();
    if let (Some(RequestedMasks { mono_ns, .. }), false) = (asked, early.is_empty()) {
        // No thread had claimed a ring.
        let (nonce, changes) = (buffer.segment.nonce(), changes(early));
        buffer.flips.push(Flip { nonce, mono_ns, changes, rings: Vec::new() });
    }
    if late.is_empty() {
        return;
    }
    if !seen.1.is_empty() {
        barrier();
    }
    buffer.flips.push(after(&buffer.segment, seen, changes(late)));
}

/// Notes the masks in the control page before a gate names a segment that the target makes.
pub(super) fn ask(buffer: &mut AttachedBuffer) {
    let now = before(&buffer.segment).0;
    buffer.asked =
        buffer.is_awaiting().then_some(RequestedMasks { mono_ns: now, masks: buffer.masks });
}

/// Called before a check of the claim: the state of the rings is valid as long as the claim is
/// ours.
pub(super) fn note_rings(buffer: &mut AttachedBuffer) {
    let mut noted = Noted { mono_ns: before(&buffer.segment).0, rings: Vec::new() };
    if buffer.masks != Masks::ALL_ENABLED {
        let current = (!buffer.is_awaiting()).then_some(&buffer.segment);
        let segments = buffer.former().chain(current);
        noted.rings.extend(segments.map(|segment| (segment.nonce(), before(segment).1)));
    }
    buffer.noted = noted;
}

/// Another session has taken over the buffer and wants `theirs`. What this session has disabled may
/// have been enabled since the claim was last seen, and the reverse.
pub(super) fn taken_over(buffer: &mut AttachedBuffer, theirs: Masks) {
    let changes: Vec<_> = theirs.changes_from(&buffer.masks).collect();
    buffer.masks = theirs;
    if changes.is_empty() {
        return;
    }
    barrier();
    let current = (!buffer.is_unseen()).then_some(&buffer.segment);
    let flips = buffer.former().chain(current).map(|segment| {
        let noted = buffer.noted.rings.iter().find(|noted| noted.0 == segment.nonce());
        let firsts = noted.map_or_else(Vec::new, |noted| noted.1.clone());
        after(segment, (buffer.noted.mono_ns, firsts), changes.clone())
    });
    let flips: Vec<Flip> = flips.collect();
    buffer.flips.extend(flips);
}

/// Sets all ones, so that no later writer finds frames disabled. Called after the last drain, since
/// a thread that is about to read the masks may still write a frame.
pub(super) fn leave(buffer: &AttachedBuffer) {
    buffer
        .former()
        .chain([&buffer.segment])
        .for_each(|segment| segment.set_masks(&Masks::ALL_ENABLED));
}
