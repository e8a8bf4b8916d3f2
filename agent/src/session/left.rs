//! What an agent that was killed had not read when frames went to another segment already, or go
//! to another one now. Every segment of a target's table says of each ring how far it was accounted
//! for; what is beyond that is stated by the next session, whichever segment that uses.

use std::collections::BTreeSet;
use std::sync::Arc;

use ppt_segment::Segment;

use super::Attached;
use super::choice::adopt_any;
use super::mailbox::control_of;
use crate::target::Target;

/// A segment of earlier sessions that holds frames which none of them accounted for.
#[derive(Debug)]
pub struct Left {
    /// The segment.
    pub segment: Arc<Segment>,
    /// Those frames: ring, first sequence number, count.
    pub unattended: Vec<(u32, u64, u64)>,
}

/// The segments that earlier sessions left so, but for the one that `it` uses. A thread that is in
/// the middle of a frame in one of them may complete it: the session after this one states that.
pub(super) fn left_behind(target: &Target, it: &Attached) -> Vec<Left> {
    let Ok((copy, _)) = control_of(target, &it.buffer) else { return Vec::new() };
    let mut seen = BTreeSet::from([it.segment.nonce()]);
    let left = copy.segments().into_iter().filter_map(|listed| {
        // The table is the target's, which may say the same twice.
        let segment = adopt_any(target, &listed, it.buffer.schema_hash)
            .filter(|segment| seen.insert(segment.nonce()))?;
        let rings = 0..segment.geometry().rings();
        let of_ring = |ring| {
            let it = segment.ring(ring);
            it.unattended(0, it.tail()).map(|(first, count)| (ring, first, count))
        };
        let unattended: Vec<_> = rings.filter_map(of_ring).collect();
        (!unattended.is_empty()).then(|| Left { segment: Arc::new(segment), unattended })
    });
    left.collect()
}

impl Attached {
    /// How far this session has stated a ring of its segment before it came to that: rings may
    /// grow into a segment of earlier sessions.
    pub(super) fn stated(&self, ring: u32) -> u64 {
        let nonce = self.segment.nonce();
        let left = self.left.iter().filter(|left| left.segment.nonce() == nonce);
        let rings = left.flat_map(|left| &left.unattended);
        let last = rings.filter(|it| it.0 == ring).map(|(_, first, count)| first - 1 + count);
        last.max().unwrap_or(0)
    }
}
