//! The keeper thread: what rings need besides being drained, at a time when nobody waits for it.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering::Acquire};
use std::sync::mpsc::Receiver;
use std::thread;
use std::time::{Duration, Instant};

use ppt_segment::Segment;
use ppt_segment::abi::ring_state;

use crate::feed::{Alive, Change};
use crate::progress::Counters;

/// Free rings whose memory is there before a thread claims them.
const AHEAD: usize = 2;
/// From one look for dead owners to the next.
const ROUND: Duration = Duration::from_secs(1);

/// The rings of one segment.
pub(crate) struct Kept {
    part: usize,
    segment: Arc<Segment>,
    alive: Option<Alive>,
    /// Whether a ring's memory is there, as far as we have to care.
    populated: Vec<bool>,
    /// The owner and the cursor that a ring had in the last round.
    seen: Vec<(u32, u64)>,
}

impl Kept {
    /// The first `populated` rings are populated already.
    pub fn new(part: usize, segment: Arc<Segment>, populated: u32, alive: Option<Alive>) -> Self {
        let rings = 0..segment.geometry().rings();
        Self {
            part,
            populated: rings.clone().map(|ring| ring < populated).collect(),
            // No claim has epoch 0, so nobody is found silent in the first round.
            seen: rings.map(|_| (0, 0)).collect(),
            segment,
            alive,
        }
    }

    /// Populates the next rings that threads will claim: they take the lowest free ones.
    fn populate(&mut self) {
        let mut ahead = 0;
        for (ring, populated) in (0..).zip(&mut self.populated) {
            if ahead == AHEAD {
                break;
            }
            let free = self.segment.ring(ring).owner().state == ring_state::FREE;
            if free && !*populated {
                // Without it, a thread's first frames take page faults, and that is all.
                let _ = self.segment.populate_ring(ring);
            }
            *populated = true;
            ahead += usize::from(free);
        }
    }

    /// Frees the rings of threads that are gone without having freed them. Returns how many.
    fn free_dead(&mut self) -> u64 {
        let Some(alive) = &mut self.alive else { return 0 };
        let mut freed = 0;
        for (ring, seen) in (0..).zip(&mut self.seen) {
            let ring = self.segment.ring(ring);
            let owner = ring.owner();
            let now = (owner.epoch, ring.tail());
            let silent = std::mem::replace(seen, now) == now;
            if owner.state != ring_state::ACTIVE || !silent {
                continue;
            }
            // Only the thread of this very claim: the history names no other one for the epoch.
            let Some(tenure) = ring.tenure(owner.epoch) else { continue };
            if alive(tenure.tid) == Some(false) && ring.release(owner.epoch) {
                self.segment.count_release();
                freed += 1;
            }
        }
        freed
    }
}

/// Keeps the rings of feeds until `stop`; to be unparked when a ring has been claimed, and when
/// there are `changes`.
pub(crate) fn run(changes: &Receiver<Change<Kept>>, counters: &Counters, stop: &AtomicBool) {
    let mut feeds: Vec<Kept> = Vec::new();
    let mut round = Instant::now();
    while !stop.load(Acquire) {
        for change in changes.try_iter() {
            match change {
                Change::Add(feed) => feeds.push(feed),
                Change::Retire(gone) => feeds.retain(|it| it.part != gone),
            }
        }
        feeds.iter_mut().for_each(Kept::populate);
        if round.elapsed() >= ROUND {
            round = Instant::now();
            let freed = feeds.iter_mut().map(Kept::free_dead).sum();
            counters.freed(freed);
        }
        thread::park_timeout(ROUND.saturating_sub(round.elapsed()));
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use ppt_segment::{Geometry, Identity, RingWriter};

    fn segment() -> Arc<Segment> {
        let geometry = Geometry::new(64, 6, 4).unwrap();
        let identity = Identity { nonce: 9, schema_hash: 0, geometry };
        let mut key = std::process::id() as u16;
        let random = || {
            key = key.wrapping_add(1);
            key
        };
        Arc::new(Segment::create(identity, None, (0, 0), random).unwrap())
    }

    #[test]
    fn two_free_rings_are_ahead() {
        let segment = segment();
        let mut kept = Kept::new(0, segment.clone(), 1, None);
        kept.populate();
        assert_eq!(kept.populated, [true, true, false, false]);
        assert!(segment.ring(0).claim(10) && segment.ring(1).claim(11));
        kept.populate();
        assert_eq!(kept.populated, [true; 4]);
    }

    #[test]
    fn only_silent_rings_of_dead_threads_are_freed() {
        let segment = segment();
        let alive = |tid| match tid {
            10 | 11 => Some(false),
            12 => Some(true),
            _ => None,
        };
        let mut kept = Kept::new(0, segment.clone(), 4, Some(Box::new(alive)));
        (0..4).for_each(|ring| assert!(segment.ring(ring).claim(10 + ring)));
        assert_eq!(kept.free_dead(), 0, "nobody is silent at first sight");
        RingWriter::new(segment.ring(1)).write([0]);
        assert_eq!(kept.free_dead(), 1);
        let states: Vec<_> = (0..4).map(|ring| segment.ring(ring).owner().state).collect();
        assert_eq!(states, [ring_state::FREE, 1, 1, 1]);
        assert!(segment.ring(0).claim(10), "a new claim is a new owner");
        assert_eq!(kept.free_dead(), 1, "now it is ring 1");
        assert_eq!(segment.ring(0).owner().state, ring_state::ACTIVE);
    }
}
