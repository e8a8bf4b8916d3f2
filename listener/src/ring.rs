//! Drains one ring.

use std::sync::atomic::AtomicU64;

use ppt_capture::{Cause, Lost};
use ppt_segment::{Batch, BrokenCursor, Ring, RingReader};

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
    /// Something went into the queue in this pass.
    pub pushed: bool,
    /// A ring was found with a new owner in this pass.
    pub claimed: bool,
}

/// One ring, as far as it has been drained.
pub(crate) struct RingDrain<'s> {
    reader: RingReader<'s, AtomicU64>,
    /// The ring, counted over all feeds.
    index: usize,
    owners: Owners,
    open: Option<Chunk>,
    /// Frames lost right before the next one, which no chunk states yet.
    lost: Lost,
    broken: Option<BrokenCursor>,
}

/// How a ring was left.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Closing {
    /// Sequence number of the first frame that was not looked at.
    pub next_seq: u64,
    /// Frames lost at its end, which no chunk states.
    pub lost: Lost,
    /// Set when it was given up.
    pub broken: Option<BrokenCursor>,
}

impl<'s> RingDrain<'s> {
    /// Starts at `cursor`.
    pub fn new(index: usize, ring: Ring<'s, AtomicU64>, cursor: u64) -> Self {
        Self {
            reader: RingReader::new(ring, cursor),
            index,
            owners: Owners::default(),
            open: None,
            lost: Lost::default(),
            broken: None,
        }
    }

    /// The cursor, if frames wait. A cursor that went back, or further than `possible` frames, is
    /// not one: the ring is given up.
    pub fn moved(&mut self, possible: u64) -> Option<u64> {
        let (next, tail) = (self.reader.next(), self.reader.ring().tail());
        if tail == next || self.broken.is_some() {
            return None;
        }
        if tail.wrapping_sub(next) > possible {
            self.broken = Some(BrokenCursor { next, tail });
            return None;
        }
        Some(tail)
    }

    /// Frames between what was drained and cursor `tail`.
    pub fn backlog(&self, tail: u64) -> u64 {
        tail - self.reader.next()
    }

    /// Takes every frame up to cursor `until`, by way of `scratch`, which holds at least one.
    pub fn drain(&mut self, until: u64, scratch: &mut [u64], out: &mut Outlet<'_>) {
        while self.reader.next() < until {
            match self.reader.poll(scratch) {
                Ok(batch) => self.take(&batch, scratch, out),
                Err(cursor) => {
                    self.broken = Some(cursor);
                    break;
                }
            }
        }
        self.reader.ring().set_attended(self.reader.next());
    }

    fn take(&mut self, batch: &Batch, scratch: &[u64], out: &mut Outlet<'_>) {
        self.lose(Cause::Overrun, batch.overrun, out);
        if batch.count == 0 {
            return;
        }
        let stride = self.reader.ring().stride();
        let next_seq = batch.first_seq + batch.count as u64;
        let cuts = self.owners.of(self.reader.ring(), batch.first_seq, next_seq);
        out.claimed |= cuts.claimed;
        let mut words = &scratch[batch.start..batch.start + batch.count * stride];
        let mut ends = cuts.iter().skip(1).map(|cut| cut.first_seq).chain([next_seq]);
        for cut in cuts.iter() {
            let count = ends.next().unwrap_or(next_seq) - cut.first_seq;
            let (part, rest) = words.split_at(count as usize * stride);
            self.take_of(cut.tid, cut.first_seq, part, out);
            words = rest;
        }
    }

    /// Frames of one thread; those that do not carry their number never were frames.
    fn take_of(&mut self, tid: u32, mut seq: u64, mut words: &[u64], out: &mut Outlet<'_>) {
        let stride = self.reader.ring().stride();
        let run = |words: &[u64], seq: u64, good: bool| {
            let frames = words.chunks_exact(stride).zip(seq..);
            frames.take_while(|(frame, seq)| (frame[0] == *seq) == good).count()
        };
        while !words.is_empty() {
            let good = run(words, seq, true);
            let (part, rest) = words.split_at(good * stride);
            self.append(tid, seq, part, out);
            seq += good as u64;

            let bad = run(rest, seq, false);
            self.lose(Cause::Corrupt, bad as u64, out);
            seq += bad as u64;
            words = &rest[bad * stride..];
        }
    }

    fn append(&mut self, tid: u32, mut seq: u64, mut words: &[u64], out: &mut Outlet<'_>) {
        let stride = self.reader.ring().stride();
        while !words.is_empty() {
            let goes_on = |open: &Chunk| {
                open.tid == tid && open.next_seq() == seq && open.room(stride * 8) > 0
            };
            if !self.open.as_ref().is_some_and(goes_on) {
                self.flush(out);
            }
            let open = self.open.get_or_insert_with(|| Chunk {
                ring: self.index,
                tid,
                first_seq: seq,
                lost_before: std::mem::take(&mut self.lost),
                drained_ns: out.now,
                ..Chunk::default()
            });
            let count = open.room(stride * 8).min(words.len() / stride);
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
                out.queue.recycle(chunk.bytes);
            }
        }
    }

    /// How it stands; the open chunk has been flushed.
    pub fn closing(&self) -> Closing {
        Closing { next_seq: self.reader.next() + 1, lost: self.lost, broken: self.broken }
    }
}
