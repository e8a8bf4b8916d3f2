//! Drains one ring.

use std::sync::atomic::AtomicU64;

use ppt_capture::{Cause, Lost};
use ppt_segment::{Batch, BrokenCursor, Ring, RingReader};

use crate::account::Closing;
use crate::chunk::Chunk;
use crate::owners::Owners;
use crate::progress::Counters;
use crate::queue::Queue;

/// Where frames go, and what is noted about them on the way.
pub(crate) struct Outlet<'q> {
    pub queue: &'q Queue,
    pub counters: &'q Counters,
    /// CLOCK_MONOTONIC at the start of this pass over the rings, ns.
    pub now: u64,
    /// Frames that were written over before they were read, in this pass.
    pub overrun: u64,
    /// Bytes that fill a chunk.
    pub full: usize,
    /// Something went into the queue in this pass.
    pub pushed: bool,
    /// A ring was found with a new owner in this pass.
    pub claimed: bool,
}

/// How far one ring has been drained. The ring itself is lent to it, the same one each time: what
/// holds the segment may let it go when the ring is closed.
pub(crate) struct RingDrain {
    /// Frames before this index are accounted for.
    next: u64,
    /// The number of the segment, and the ring of it.
    place: (usize, u32),
    owners: Owners,
    open: Option<Chunk>,
    /// Frames lost right before the next one, which no chunk states yet.
    lost: Lost,
    broken: Option<BrokenCursor>,
}

impl RingDrain {
    /// Starts at `cursor`, in a ring of a segment.
    pub fn new(place: (usize, u32), cursor: u64) -> Self {
        Self {
            next: cursor,
            place,
            owners: Owners::default(),
            open: None,
            lost: Lost::default(),
            broken: None,
        }
    }

    /// The cursor, if frames wait. A cursor that went back, or further than `possible` frames, is
    /// not one: the ring is given up.
    pub fn moved(&mut self, ring: Ring<'_, AtomicU64>, possible: u64) -> Option<u64> {
        let (next, tail) = (self.next, ring.tail());
        if tail == next || self.broken.is_some() {
            return None;
        }
        // In this order: a cursor at the very end of its range goes on at 0 only if somebody lies.
        if tail < next || tail - next > possible {
            self.broken = Some(BrokenCursor { next, tail });
            return None;
        }
        Some(tail)
    }

    /// The cursor that it has been drained up to.
    pub fn next(&self) -> u64 {
        self.next
    }

    /// Frames between what was drained and cursor `tail`.
    pub fn backlog(&self, tail: u64) -> u64 {
        tail - self.next
    }

    /// Takes every frame up to cursor `until`, which was the ring's a moment ago, by way of `scratch`,
    /// which holds at least one. A cursor that went back since is not one, either: the ring is given
    /// up, or this would never end.
    pub fn drain(
        &mut self,
        ring: Ring<'_, AtomicU64>,
        until: u64,
        scratch: &mut [u64],
        out: &mut Outlet<'_>,
    ) {
        let mut reader = RingReader::new(ring, self.next);
        while self.next < until {
            match reader.poll(scratch) {
                Ok(batch) if batch.tail >= until => self.take(ring, &batch, scratch, out),
                Ok(Batch { tail, .. }) => {
                    self.broken = Some(BrokenCursor { next: self.next, tail });
                    break;
                }
                Err(cursor) => {
                    self.broken = Some(cursor);
                    break;
                }
            }
            self.next = reader.next();
        }
    }

    fn take(
        &mut self,
        ring: Ring<'_, AtomicU64>,
        batch: &Batch,
        scratch: &[u64],
        out: &mut Outlet<'_>,
    ) {
        out.overrun += batch.overrun;
        self.lose(Cause::Overrun, batch.overrun, out);
        if batch.count == 0 {
            return;
        }
        let stride = ring.stride();
        let next_seq = batch.first_seq + batch.count as u64;
        let cuts = self.owners.of(ring, batch.first_seq, next_seq);
        out.claimed |= cuts.claimed;
        let mut words = &scratch[batch.start..batch.start + batch.count * stride];
        let mut ends = cuts.iter().skip(1).map(|cut| cut.first_seq).chain([next_seq]);
        for cut in cuts.iter() {
            let count = ends.next().unwrap_or(next_seq) - cut.first_seq;
            let (part, rest) = words.split_at(count as usize * stride);
            self.take_of(stride, cut.tid, (cut.first_seq, part), out);
            words = rest;
        }
    }

    /// Frames of one thread; those that do not carry their number never were frames.
    fn take_of(
        &mut self,
        stride: usize,
        tid: u32,
        (mut seq, mut words): (u64, &[u64]),
        out: &mut Outlet<'_>,
    ) {
        let run = |words: &[u64], seq: u64, good: bool| {
            let frames = words.chunks_exact(stride).zip(seq..);
            frames.take_while(|(frame, seq)| (frame[0] == *seq) == good).count()
        };
        while !words.is_empty() {
            let good = run(words, seq, true);
            let (part, rest) = words.split_at(good * stride);
            self.append(stride, tid, (seq, part), out);
            seq += good as u64;

            let bad = run(rest, seq, false);
            self.lose(Cause::Corrupt, bad as u64, out);
            seq += bad as u64;
            words = &rest[bad * stride..];
        }
    }

    fn append(
        &mut self,
        stride: usize,
        tid: u32,
        (mut seq, mut words): (u64, &[u64]),
        out: &mut Outlet<'_>,
    ) {
        let full = out.full;
        while !words.is_empty() {
            let goes_on = |open: &Chunk| {
                open.tid == tid && open.next_seq() == seq && open.room(stride * 8, full) > 0
            };
            if !self.open.as_ref().is_some_and(goes_on) {
                self.flush(out);
            }
            let open = self.open.get_or_insert_with(|| Chunk {
                part: self.place.0,
                ring: self.place.1,
                tid,
                first_seq: seq,
                lost_before: std::mem::take(&mut self.lost),
                drained_ns: out.now,
                ..Chunk::default()
            });
            let count = open.room(stride * 8, full).min(words.len() / stride);
            let (part, rest) = words.split_at(count * stride);
            open.append(part, count, out.queue);
            seq += count as u64;
            words = rest;
        }
    }

    fn lose(&mut self, cause: Cause, count: u64, out: &Outlet<'_>) {
        if count > 0 {
            self.lost.add(cause, count);
            out.counters.lost(cause, count);
        }
    }

    /// When the first frame of the open chunk was drained.
    pub fn open_since(&self) -> Option<u64> {
        self.open.as_ref().map(|open| open.drained_ns)
    }

    /// Hands the open chunk on. Where the queue is full, its frames are lost, and what it would
    /// have stated is stated by the next one.
    pub fn flush(&mut self, out: &mut Outlet<'_>) {
        let Some(chunk) = self.open.take() else { return };
        let count = u64::from(chunk.count);
        // Before the disk thread can have taken it out again.
        out.counters.queued(count);
        match out.queue.push(chunk) {
            Ok(()) => out.pushed = true,
            Err(chunk) => {
                out.counters.unqueued(count);
                self.lost += chunk.lost_before;
                self.lose(Cause::Disk, count, out);
                out.queue.recycle(chunk.words);
            }
        }
    }

    /// How it stands; the open chunk has been flushed.
    pub fn closing(&self) -> Closing {
        let next_seq = self.next.saturating_add(1);
        Closing { ring: self.place.1, next_seq, lost: self.lost, broken: self.broken }
    }
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::Ordering::Relaxed;
    use std::time::Duration;

    use nix::sys::eventfd::EventFd;
    use ppt_segment::RingWriter;
    use ppt_segment::abi::ring_word;
    use proptest::prelude::*;

    use super::*;
    use crate::account::Entry;
    use crate::chunk::SMALL_CHUNK;
    use crate::queue::{Item, Next};

    const SLOTS: u64 = 16;
    const STRIDE: usize = 2;

    #[derive(Debug, Clone)]
    enum Step {
        Write(u8),
        /// Spoils the slot of the frame this many before the newest.
        Spoil(u8),
        Claim,
        Drain,
        Flush,
        /// The disk thread writes so many frames of a chunk.
        Disk(u32),
    }

    fn steps() -> impl Strategy<Value = Vec<Step>> {
        let step = prop_oneof![
            5 => (0..40u8).prop_map(Step::Write),
            1 => (0..16u8).prop_map(Step::Spoil),
            1 => Just(Step::Claim),
            4 => Just(Step::Drain),
            2 => Just(Step::Flush),
            2 => prop_oneof![Just(0), 1..20u32, Just(u32::MAX)].prop_map(Step::Disk),
        ];
        prop::collection::vec(step, 0..200)
    }

    #[test]
    fn a_cursor_that_goes_back_while_it_is_followed_is_given_up() {
        let zeros = |count| (0..count).map(|_| AtomicU64::new(0)).collect::<Vec<_>>();
        let (header, slots) = (zeros(ring_word::COUNT), zeros(SLOTS as usize * STRIDE));
        let ring = Ring::new(&header, &slots, STRIDE);
        let queue = Queue::new(1000, Default::default());
        let counters = Counters::new(EventFd::new().unwrap(), EventFd::new().unwrap());
        let mut out = Outlet {
            queue: &queue,
            counters: &counters,
            now: 0,
            overrun: 0,
            full: SMALL_CHUNK,
            pushed: false,
            claimed: false,
        };
        let mut drain = RingDrain::new((0, 0), 0);
        header[ring_word::TAIL].store(5, Relaxed);
        let until = drain.moved(ring, 100).unwrap();
        header[ring_word::TAIL].store(0, Relaxed);
        drain.drain(ring, until, &mut [0; STRIDE], &mut out);
        assert_eq!(drain.closing().broken, Some(BrokenCursor { next: 0, tail: 0 }));
    }

    proptest! {
        #![proptest_config(ProptestConfig { failure_persistence: None, ..<_>::default() })]

        /// Whatever happens to frames on their way: each is captured or lost, once, and what a
        /// chunk states as lost before it tiles with the chunk before.
        #[test]
        fn every_frame_is_accounted_for(steps in steps(), limit in 0..2000usize, batch in 1..20usize) {
            let zeros = |count| (0..count).map(|_| AtomicU64::new(0)).collect::<Vec<_>>();
            let (header, slots) = (zeros(ring_word::COUNT), zeros(SLOTS as usize * STRIDE));
            let ring = Ring::new(&header, &slots, STRIDE);
            let mut writer = RingWriter::new(ring);
            let queue = Queue::new(limit, Default::default());
            let counters = Counters::new(EventFd::new().unwrap(), EventFd::new().unwrap());
            let mut out =
                Outlet { queue: &queue, counters: &counters, now: 0, overrun: 0, full: SMALL_CHUNK, pushed: false, claimed: false };
            let mut drain = RingDrain::new((0, 0), 0);
            let mut entry = Entry::new(0, 0, 0, 0);
            let mut scratch = vec![0; batch * STRIDE];
            let (mut stated, mut tid) = (1, 0);
            let mut disk = |entry: &mut Entry, most: u32| {
                let Next::Item(Item::Chunk(chunk)) = queue.next(Duration::ZERO) else { return };
                let written = chunk.count.min(most);
                if written > 0 {
                    assert_eq!(chunk.first_seq - entry.lost_before(&chunk).total(), stated);
                    stated = chunk.first_seq + u64::from(written);
                }
                for (frame, seq) in chunk.bytes().chunks(STRIDE * 8).zip(chunk.first_seq..) {
                    assert_eq!(frame[..8], seq.to_le_bytes());
                    assert_eq!(frame[8..], (!seq).to_le_bytes());
                }
                entry.take(&chunk, written);
                counters.captured(u64::from(written));
                counters.lost(Cause::Disk, u64::from(chunk.count - written));
                counters.unqueued(u64::from(chunk.count));
            };
            for step in steps {
                match step {
                    Step::Write(count) => for _ in 0..count {
                        let seq = ring.tail() + 1;
                        writer.write([!seq]);
                    },
                    Step::Spoil(back) => if let Some(index) = ring.tail().checked_sub(u64::from(back) + 1) {
                        slots[(index % SLOTS) as usize * STRIDE].store(u64::MAX, Relaxed);
                    },
                    Step::Claim => {
                        ring.release(ring.owner().epoch);
                        tid += 1;
                        ring.claim(tid);
                    }
                    Step::Drain => if let Some(tail) = drain.moved(ring, u64::MAX) {
                        drain.drain(ring, tail, &mut scratch, &mut out);
                    },
                    Step::Flush => drain.flush(&mut out),
                    Step::Disk(most) => disk(&mut entry, most),
                }
            }
            if let Some(tail) = drain.moved(ring, u64::MAX) {
                drain.drain(ring, tail, &mut scratch, &mut out);
            }
            drain.flush(&mut out);
            for _ in 0..1000 {
                disk(&mut entry, u32::MAX);
            }
            let closing = drain.closing();
            entry.lose(closing.lost);
            prop_assert!(closing.broken.is_none());
            prop_assert_eq!(entry.account.next_seq, ring.tail() + 1);
            prop_assert_eq!(closing.next_seq, ring.tail() + 1);
            prop_assert!(entry.account.adds_up());
            let mut at = stated;
            for gap in entry.gaps(0) {
                prop_assert_eq!(gap.first_seq, at);
                at += gap.count;
            }
            prop_assert_eq!(at, ring.tail() + 1);
            let progress = counters.progress(Vec::new(), 0);
            prop_assert_eq!(progress.captured, entry.account.captured);
            prop_assert_eq!(progress.lost, entry.account.lost);
            prop_assert_eq!(progress.waiting, 0);
        }
    }

    #[test]
    fn a_cursor_that_no_writer_can_have_reached_closes_the_ring() {
        let zeros = |count| (0..count).map(|_| AtomicU64::new(0)).collect::<Vec<_>>();
        let (header, slots) = (zeros(ring_word::COUNT), zeros(SLOTS as usize * STRIDE));
        let ring = Ring::new(&header, &slots, STRIDE);
        let mut drain = RingDrain::new((0, 0), 0);
        header[ring_word::TAIL].store(1001, Relaxed);
        assert_eq!(drain.moved(ring, 1000), None);
        header[ring_word::TAIL].store(5, Relaxed);
        assert_eq!(drain.moved(ring, 1000), None, "once is enough");
        let closing = drain.closing();
        assert_eq!(closing.broken, Some(BrokenCursor { next: 0, tail: 1001 }));
        assert_eq!((closing.next_seq, closing.lost), (1, Lost::default()));

        // From the end of its range to the start: what was left there was no cursor either.
        let mut drain = RingDrain::new((0, 0), u64::MAX);
        assert_eq!(drain.moved(ring, 1000), None);
        assert_eq!(drain.closing().broken, Some(BrokenCursor { next: u64::MAX, tail: 5 }));
    }
}
