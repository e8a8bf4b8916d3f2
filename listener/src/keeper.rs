//! The keeper thread: maintenance of rings that no other thread waits for.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering::Acquire};
use std::sync::mpsc::Receiver;
use std::thread;
use std::time::{Duration, Instant};

use ppt_segment::abi::{PAGE, ring_state};
use ppt_segment::{FIRST_BYTES, RINGS_AHEAD, Segment};

use crate::feed::{Alive, FeedChange};
use crate::progress::Counters;

/// Interval between checks for dead owners.
const ROUND: Duration = Duration::from_secs(1);
/// Longest time of a round; the next round continues from there. So the check for dead threads
/// costs a bounded share of a CPU with any number of threads.
const TURN: Duration = Duration::from_millis(2);

/// The first lap of a ring. Later laps find its memory populated.
struct Lap {
    /// The approximate cursor up to which the memory is populated.
    populated: u64,
    /// The cursor at the end of the lap.
    end: u64,
}

/// The rings of one segment.
pub(crate) struct KeptSegment {
    number: usize,
    segment: Arc<Segment>,
    alive: Option<Alive>,
    /// The number of rings, from the first, that are populated.
    populated: u32,
    /// The free rings among these.
    ahead: Vec<u32>,
    /// The epoch of the owner and the cursor of each ring at the last check.
    last_states: Vec<(u32, u64)>,
    /// The first laps of rings that were not populated at once.
    laps: Vec<Lap>,
    /// The next ring to check.
    next_ring: u32,
}

impl KeptSegment {
    /// The first `populated` rings are populated already, and begin at the cursors `first`.
    pub fn new(
        number: usize,
        segment: Arc<Segment>,
        populated: u32,
        first: &[u64],
        alive: Option<Alive>,
    ) -> Self {
        let rings = segment.geometry().rings();
        // No claim has epoch 0, so no owner counts as idle at the first check.
        let last_states = first.iter().map(|&first| (0, first)).collect();
        let populated = populated.min(rings);
        let geometry = segment.geometry();
        let lap = |&first: &u64| Lap {
            // At least one page is populated.
            populated: first.saturating_add(PAGE / geometry.stride() as u64),
            end: first.saturating_add(geometry.slots()),
        };
        let is_large = geometry.ring_bytes() > PAGE;
        let laps = first.iter().filter(|_| is_large).map(lap).collect();
        Self {
            number,
            segment,
            alive,
            populated,
            ahead: Vec::new(),
            last_states,
            laps,
            next_ring: 0,
        }
    }

    /// Populates the next part of a ring during its first lap: enough for twice the `moved` frames
    /// since the last check, and a little more.
    fn stay_ahead(&mut self, ring: u32, tail: u64, moved: u64) {
        let geometry = self.segment.geometry();
        let stride = geometry.stride() as u64;
        let next = 2 * moved.min(geometry.slots());
        let Some(lap) = self.laps.get_mut(ring as usize) else { return };
        if lap.populated < lap.end && tail.saturating_add(next) > lap.populated {
            let ahead = next + FIRST_BYTES / stride;
            lap.populated = tail.saturating_add(ahead);
            // If this fails, the thread takes page faults, with no other effect.
            let _ = self.segment.populate_ring(ring, ahead * stride);
        }
    }

    /// Populates the next rings that threads will claim. They take the lowest free ones.
    fn populate(&mut self) {
        let is_free = |ring: u32| self.segment.ring(ring).owner().state == ring_state::FREE;
        self.ahead.retain(|&ring| is_free(ring));
        if self.ahead.len() >= RINGS_AHEAD {
            return;
        }
        self.ahead = (0..self.populated).filter(|&ring| is_free(ring)).take(RINGS_AHEAD).collect();
        while self.ahead.len() < RINGS_AHEAD && self.populated < self.segment.geometry().rings() {
            if is_free(self.populated) {
                // If this fails, a thread's first frames take page faults, with no other effect.
                let _ = self.segment.populate_ring(self.populated, FIRST_BYTES);
                self.ahead.push(self.populated);
            }
            self.populated += 1;
        }
    }

    /// Checks the next ring: populates memory ahead of its owner, and frees it if its owner ended
    /// without doing so. Returns whether it freed the ring.
    fn check(&mut self) -> bool {
        let number = self.next_ring;
        self.next_ring += 1;
        let ring = self.segment.ring(number);
        let (owner, tail) = (ring.owner(), ring.tail());
        let now = (owner.epoch, tail);
        let before = std::mem::replace(&mut self.last_states[number as usize], now);
        let silent = before == now;
        if before.1 != tail {
            self.stay_ahead(number, tail, tail.saturating_sub(before.1));
        }
        let ring = self.segment.ring(number);
        if owner.state != ring_state::ACTIVE || !silent {
            return false;
        }
        // The history names one thread for the epoch, that of this claim.
        let (Some(alive), Some(tenure)) = (&mut self.alive, ring.tenure(owner.epoch)) else {
            return false;
        };
        let freed = alive(tenure.tid) == Some(false) && ring.release(owner.epoch);
        if freed {
            self.segment.count_release();
        }
        freed
    }

    /// Whether the round has checked all its rings.
    fn is_done(&self) -> bool {
        self.next_ring == self.segment.geometry().rings()
    }
}

/// Maintains the rings of feeds.
struct Keeper<'a> {
    feeds: Vec<KeptSegment>,
    /// The next feed to check.
    next_feed: usize,
    counters: &'a Counters,
    stop: &'a AtomicBool,
}

impl Keeper<'_> {
    /// Checks for dead owners from where the last turn ended: every ring once, or as many as time
    /// allows.
    fn turn(&mut self) {
        let begun = Instant::now();
        for _ in 0..=self.feeds.len() {
            let Some(feed) = self.feeds.get_mut(self.next_feed) else {
                self.next_feed = 0;
                continue;
            };
            while !feed.is_done() {
                if feed.check() {
                    self.counters.freed(1);
                }
                if self.stop.load(Acquire) || begun.elapsed() >= TURN {
                    return;
                }
            }
            feed.next_ring = 0;
            self.next_feed += 1;
        }
    }
}

/// Maintains the rings of feeds until `stop`. Unpark it when a ring has been claimed, and after
/// sending `changes`.
pub(crate) fn run(
    changes: &Receiver<FeedChange<KeptSegment>>,
    counters: &Counters,
    stop: &AtomicBool,
) {
    let mut keeper = Keeper { feeds: Vec::new(), next_feed: 0, counters, stop };
    let mut round = Instant::now();
    while !stop.load(Acquire) {
        for change in changes.try_iter() {
            match change {
                FeedChange::Add(feed) => keeper.feeds.push(feed),
                FeedChange::Retire(gone) => keeper.feeds.retain(|feed| feed.number != gone),
            }
        }
        keeper.feeds.iter_mut().for_each(KeptSegment::populate);
        if round.elapsed() >= ROUND {
            round = Instant::now();
            keeper.turn();
        }
        thread::park_timeout(ROUND.saturating_sub(round.elapsed()));
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::atomic::AtomicU32;
    use std::sync::atomic::Ordering::Relaxed;

    use nix::sys::eventfd::EventFd;
    use ppt_segment::{Created, Geometry, RingWriter, SegmentIdentity};

    use crate::progress::SinkCounters;

    fn segment(rings: u32) -> Arc<Segment> {
        segment_of(Geometry::new(64, 6, rings).unwrap())
    }

    fn segment_of(geometry: Geometry) -> Arc<Segment> {
        let identity = SegmentIdentity { nonce: 9, schema_hash: 0, geometry };
        let mut key = std::process::id() as u16;
        let random = || {
            key = key.wrapping_add(1);
            key
        };
        Arc::new(Segment::create(identity, None, Created::default(), random).unwrap())
    }

    fn counters() -> Counters {
        Counters::new(EventFd::new().unwrap())
    }

    fn freed(counters: &Counters) -> u64 {
        let sink = SinkCounters::new(EventFd::new().unwrap());
        counters.progress(&sink, Vec::new(), 0).freed
    }

    #[test]
    fn two_free_rings_are_ahead() {
        let segment = segment(4);
        let mut kept = KeptSegment::new(0, segment.clone(), 1, &[0; 4], None);
        kept.populate();
        assert_eq!((kept.populated, &kept.ahead[..]), (2, &[0, 1][..]));
        assert!(segment.ring(0).claim(10) && segment.ring(1).claim(11));
        kept.populate();
        assert_eq!((kept.populated, &kept.ahead[..]), (4, &[2, 3][..]));
        assert!(segment.ring(2).claim(12) && segment.ring(1).release(1));
        kept.populate();
        assert_eq!(kept.ahead, [1, 3]);
        assert!([1, 3].into_iter().all(|ring| segment.ring(ring).claim(13)));
        kept.populate();
        assert!(kept.ahead.is_empty(), "there are no more");
    }

    #[test]
    fn memory_is_ahead_of_a_ring_in_its_first_lap() {
        const SOME: u64 = FIRST_BYTES / 4096;
        let segment = segment_of(Geometry::new(4096, 10, 1).unwrap());
        let mut kept = KeptSegment::new(0, segment.clone(), 1, &[0], Some(Box::new(|_| None)));
        let mut writer = RingWriter::new(segment.ring(0));
        let mut after = |frames| {
            (0..frames).for_each(|_| _ = writer.write([0]));
            kept.next_ring = 0;
            assert!(!kept.check());
            kept.laps[0].populated
        };
        assert_eq!(after(0), 1);
        assert_eq!(after(10), 10 + 20 + SOME);
        assert_eq!(after(10), 30 + SOME, "there is enough");
        assert_eq!(after(100), 120 + 200 + SOME);
        assert_eq!(after(700), 820 + 1400 + SOME, "to the end of the lap");
        assert_eq!(after(3000), 820 + 1400 + SOME, "the lap has begun again");

        // A session that takes over a ring reads its cursor, and treats it as idle.
        let before = segment.ring(0).tail();
        let mut kept = KeptSegment::new(0, segment.clone(), 1, &[before], None);
        assert!(!kept.check());
        assert_eq!(kept.laps[0].populated, before + 1);
    }

    #[test]
    fn only_silent_rings_of_dead_threads_are_freed() {
        let segment = segment(4);
        let alive = |tid| match tid {
            10 | 11 => Some(false),
            12 => Some(true),
            _ => None,
        };
        let (counters, stop) = (counters(), AtomicBool::new(false));
        let kept = KeptSegment::new(0, segment.clone(), 4, &[0; 4], Some(Box::new(alive)));
        let mut keeper =
            Keeper { feeds: vec![kept], next_feed: 0, counters: &counters, stop: &stop };
        let mut round = || {
            // A busy machine may need more turns until every ring has been checked.
            let mut asked = 0;
            while asked == 0 || keeper.next_feed != 0 || keeper.feeds[0].next_ring != 0 {
                keeper.turn();
                asked += 1;
            }
            freed(&counters)
        };
        (0..4).for_each(|ring| assert!(segment.ring(ring).claim(10 + ring)));
        assert_eq!(round(), 0, "nobody is silent at first sight");
        RingWriter::new(segment.ring(1)).write([0]);
        assert_eq!(round(), 1);
        let states: Vec<_> = (0..4).map(|ring| segment.ring(ring).owner().state).collect();
        assert_eq!(states, [ring_state::FREE, 1, 1, 1]);
        assert!(segment.ring(0).claim(10), "a new claim is a new owner");
        assert_eq!(round(), 2, "now it is ring 1");
        assert_eq!(segment.ring(0).owner().state, ring_state::ACTIVE);
    }

    #[test]
    fn a_turn_is_bounded_and_the_next_goes_on_where_it_ended() {
        const RINGS: u32 = 64;
        let (one, two) = (segment(RINGS), segment(RINGS));
        let asked = Arc::new(AtomicU32::new(0));
        let kept = |segment: &Arc<Segment>| {
            let asked = asked.clone();
            // This takes all the time of a turn.
            let alive = move |_| {
                asked.fetch_add(1, Relaxed);
                thread::sleep(TURN);
                Some(false)
            };
            (0..RINGS).for_each(|ring| assert!(segment.ring(ring).claim(10 + ring)));
            let mut kept = KeptSegment::new(
                0,
                segment.clone(),
                RINGS,
                &[0; RINGS as usize],
                Some(Box::new(alive)),
            );
            (0..RINGS).for_each(|_| assert!(!kept.check()));
            kept.next_ring = 0;
            kept
        };
        let (counters, stop) = (counters(), AtomicBool::new(false));
        let feeds = vec![kept(&one), kept(&two)];
        let mut keeper = Keeper { feeds, next_feed: 0, counters: &counters, stop: &stop };
        for turn in 1..=2 * u64::from(RINGS) {
            keeper.turn();
            assert_eq!((freed(&counters), u64::from(asked.load(Relaxed))), (turn, turn));
        }
        keeper.turn();
        assert_eq!(freed(&counters), 2 * u64::from(RINGS), "all are");

        (0..RINGS).for_each(|ring| assert!(one.ring(ring).claim(77)));
        keeper.turn();
        keeper.turn();
        let before = asked.load(Relaxed);
        stop.store(true, Relaxed);
        keeper.turn();
        assert!(asked.load(Relaxed) <= before + 1, "it stops at once");
    }
}
