//! Finds frames that a killed agent did not read, in segments that the target no longer uses. Every
//! segment in a target's table states for each ring up to where its frames are accounted for. The
//! next session states the frames after that, whichever segment it uses.

use std::collections::BTreeSet;
use std::sync::Arc;

use super::attached::{AttachedBuffer, Leftover, Unattended};
use super::choice::adopt_any;
use super::control_page::read_control;
use crate::target::Target;

/// The segments with such frames of earlier sessions, except the one that `buffer` uses. A thread that
/// is writing a frame in one of them may complete it; the session after this one states that frame.
pub(super) fn leftovers(target: &Target, buffer: &AttachedBuffer) -> Vec<Leftover> {
    let Ok(control) = read_control(target, &buffer.buffer) else { return Vec::new() };
    let mut seen = BTreeSet::from([buffer.segment.nonce()]);
    let leftovers = control.effective.segments().into_iter().filter_map(|listed| {
        // The table is the target's, which may repeat an entry.
        let segment = adopt_any(target, &listed, buffer.buffer.schema_hash)
            .filter(|segment| seen.insert(segment.nonce()))?;
        let rings = 0..segment.geometry().rings();
        let of_ring = |ring| {
            let it = segment.ring(ring);
            it.unattended(0, it.tail()).map(|(first, count)| Unattended { ring, first, count })
        };
        let unattended: Vec<_> = rings.filter_map(of_ring).collect();
        (!unattended.is_empty()).then(|| Leftover { segment: Arc::new(segment), unattended })
    });
    leftovers.collect()
}
