//! The threads that write frames.

use std::collections::BTreeSet;
use std::sync::Arc;

use ppt_segment::Segment;

/// The owners of the rings of a process.
#[derive(Debug)]
pub struct RingOwners(pub(super) Vec<Arc<Segment>>);

impl RingOwners {
    /// The threads that own a ring now, by their numbers in the pid namespace of the process. The process states
    /// them: they may be any numbers.
    pub fn tids(&self) -> BTreeSet<i32> {
        let mut tids = BTreeSet::new();
        for segment in self.0.iter().filter(|segment| !segment.truncated()) {
            for number in 0..segment.geometry().rings() {
                let ring = segment.ring(number);
                let epoch = ring.owner().epoch;
                if epoch == 0 {
                    // Threads take the lowest free ring.
                    break;
                }
                tids.extend(ring.tenure(epoch).map(|tenure| tenure.tid as i32));
            }
        }
        tids
    }
}
