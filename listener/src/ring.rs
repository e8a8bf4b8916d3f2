//! Drains one ring.

use std::sync::Arc;
use std::sync::atomic::AtomicU64;

use ppt_capture::{Cause, Lost};
use ppt_segment::{BrokenCursor, PollResult, Ring, RingReader, lost_mark};

use crate::account::Closing;
use crate::buffer::WordBytes;
use crate::chunk::{Chunk, RingPlace, Sizes};
use crate::lanes::Lanes;
use crate::owners::Owners;
use crate::progress::Counters;
use ppt_capture::stamps::Stamps;

/// The outlet of frames to the sinks, with the facts noted about them.
pub(crate) struct Outlet<'q> {
    pub lanes: &'q mut Lanes,
    pub counters: &'q Counters,
    /// CLOCK_MONOTONIC at the start of this pass over the rings, ns.
    pub now: u64,
    /// CLOCK_MONOTONIC at the previous look at the rings of this pass, ns.
    pub since: u64,
    /// Frames that were overwritten before they were read, in this pass.
    pub overrun: u64,
    /// Bytes that fill a chunk.
    pub full: usize,
    /// Whether anything was handed on in this pass.
    pub pushed: bool,
    /// The largest number of owners of a ring since the previous look at it.
    pub claims: u32,
    /// Bytes that are copied, validated and inspected at a time.
    pub block: usize,
    /// Buffer for frames that must be sorted out.
    pub aside: Vec<WordBytes>,
}

/// Half of the first-level cache in bytes: the frames and their copy both pass through it.
pub(crate) const BLOCK: usize = 8 << 10;

/// Whether each of `frames` carries its sequence number.
fn are_numbered(frames: &[WordBytes], stride: usize, first_seq: u64) -> bool {
    let numbers = frames.chunks_exact(stride).zip(first_seq..);
    numbers.fold(0, |wrong, (frame, seq)| wrong | (u64::from_le_bytes(frame[0]) ^ seq)) == 0
}

/// The number of these slots that are marked as lost before they could be written.
fn marked(slots: &[WordBytes], stride: usize, first_seq: u64) -> u64 {
    let numbers = slots.chunks_exact(stride).zip(first_seq..);
    numbers.filter(|(slot, seq)| slot[0] == lost_mark(*seq).to_le_bytes()).count() as u64
}

/// Frames with consecutive sequence numbers.
struct FrameRun<'a> {
    first_seq: u64,
    words: &'a [WordBytes],
}

/// The drain state of one ring. Each call gets the ring itself, the same one each time: the owner
/// of the segment may release it when the ring is closed.
pub(crate) struct RingDrain {
    /// Frames before this index are accounted for.
    next: u64,
    place: RingPlace,
    /// The offsets of times and kinds in its frames.
    stamps: Arc<Stamps>,
    /// Whether ppt itself writes the frames. It marks those that were lost before they were
    /// written.
    marks: bool,
    owners: Owners,
    open: Option<Box<Chunk>>,
    /// Frames lost directly before the next one, which no chunk states yet.
    lost: Lost,
    broken: Option<BrokenCursor>,
    /// Number of frames in the previous chunk.
    usual: u32,
    /// The time at which frames were last found in the ring, ns of CLOCK_MONOTONIC.
    pub moved_ns: u64,
    /// Whether it is in the list of busy rings.
    pub is_busy: bool,
    /// Whether it is in the list of rings with an open chunk.
    pub is_listed: bool,
}

impl RingDrain {
    /// Starts at `cursor`, in a ring of a segment.
    pub fn new(place: RingPlace, stamps: Arc<Stamps>, cursor: u64, marks: bool) -> Self {
        Self {
            next: cursor,
            place,
            stamps,
            marks,
            usual: 0,
            moved_ns: 0,
            is_busy: false,
            is_listed: false,
            owners: Owners::default(),
            open: None,
            lost: Lost::default(),
            broken: None,
        }
    }

    /// The cursor, if frames wait. A cursor that went back, or advanced by more than `possible`
    /// frames, is invalid: the ring is given up.
    pub fn check_cursor(&mut self, ring: Ring<'_, AtomicU64>, possible: u64) -> Option<u64> {
        let (next, tail) = (self.next, ring.tail());
        if tail == next || self.broken.is_some() {
            return None;
        }
        // In this order: a cursor wraps to 0 only if the target wrote a wrong value.
        if tail < next || tail - next > possible {
            self.broken = Some(BrokenCursor { next, tail });
            return None;
        }
        Some(tail)
    }

    /// The cursor up to which it has been drained.
    pub fn next(&self) -> u64 {
        self.next
    }

    /// Number of frames between the drained position and cursor `tail`.
    pub fn backlog(&self, tail: u64) -> u64 {
        tail - self.next
    }

    /// Drains every frame up to cursor `until`, which was read a moment ago. A cursor that has gone
    /// back since is invalid, too: the ring is given up, or this would never end.
    ///
    /// Frames are copied directly into the chunk, a block at a time. Each frame is validated, and
    /// the facts that a chunk states are collected, while the block is in the first-level cache.
    pub fn drain(&mut self, ring: Ring<'_, AtomicU64>, until: u64, out: &mut Outlet<'_>) {
        let stride = ring.stride();
        let sizes = Sizes { stride, full: out.full };
        let mut reader = RingReader::new(ring, self.next);
        while self.next < until {
            let mut chunk = self.open_chunk(sizes, out);
            let wanted = chunk.room(sizes).min((until - self.next) as usize);
            // The chunk probably needs as much as the previous one.
            let usual = self.usual.saturating_sub(chunk.count) as usize;
            let reserved = wanted.max(usual.min(chunk.room(sizes)));
            chunk.reserve(reserved, sizes, out.lanes.pool());
            let count = (out.block / 8 / stride).clamp(1, wanted);
            match reader.poll(chunk.frames.room(count * stride)) {
                Ok(batch) if batch.tail >= until => self.add_batch(ring, &batch, chunk, out),
                other => {
                    self.open = Some(chunk);
                    let cursor = other.map_or_else(
                        |cursor| cursor,
                        |batch| BrokenCursor { next: self.next, tail: batch.tail },
                    );
                    self.broken = Some(cursor);
                    break;
                }
            }
            self.next = reader.next();
        }
    }

    /// The open chunk. A new one if that is full or there is none.
    fn open_chunk(&mut self, sizes: Sizes, out: &mut Outlet<'_>) -> Box<Chunk> {
        if self.open.as_ref().is_some_and(|open| open.room(sizes) == 0) {
            self.flush(out);
        }
        let RingPlace { segment: segment_number, ring } = self.place;
        let new = || Box::new(Chunk { segment_number, ring, ..Chunk::default() });
        self.open.take().unwrap_or_else(new)
    }

    /// Sets the owner and the first sequence number of `chunk`.
    fn begin(&mut self, chunk: &mut Chunk, (tid, seq): (u32, u64), out: &Outlet<'_>) {
        (chunk.tid, chunk.first_seq) = (tid, seq);
        (chunk.drained_ns, chunk.since_ns) = (out.now, out.since);
        chunk.lost_before = std::mem::take(&mut self.lost);
    }

    /// Adds a batch that was copied behind the content of `chunk`.
    fn add_batch(
        &mut self,
        ring: Ring<'_, AtomicU64>,
        batch: &PollResult,
        mut chunk: Box<Chunk>,
        out: &mut Outlet<'_>,
    ) {
        let stride = ring.stride();
        out.overrun += batch.overrun;
        self.lose(Cause::Overrun, batch.overrun, out);
        if batch.count == 0 {
            return self.open = Some(chunk);
        }
        let next_seq = batch.first_seq + batch.count as u64;
        let runs = self.owners.runs(ring, batch.first_seq, next_seq);
        out.claims = out.claims.max(runs.claims);
        let follows = |tid| chunk.tid == tid && chunk.next_seq() == batch.first_seq;
        let goes_on = |&tid: &u32| batch.start == 0 && (chunk.count == 0 || follows(tid));
        let tid = runs.only().filter(goes_on);
        let frames = &chunk.frames.room(batch.start + batch.count * stride)[batch.start..];
        if let Some(tid) = tid.filter(|_| are_numbered(frames, stride, batch.first_seq)) {
            if chunk.count == 0 {
                self.begin(&mut chunk, (tid, batch.first_seq), out);
            }
            chunk.take(batch.count, stride, &self.stamps);
            out.counters.copied(batch.count as u64);
            return self.open = Some(chunk);
        }
        // Some frames are lost, invalid, or another thread's: they are sorted out in a separate
        // buffer.
        let mut aside = std::mem::take(&mut out.aside);
        aside.clear();
        aside.extend_from_slice(frames);
        self.open = Some(chunk);
        let mut words = &aside[..];
        let mut ends = runs.iter().skip(1).map(|run| run.first_seq).chain([next_seq]);
        for run in runs.iter() {
            let count = ends.next().unwrap_or(next_seq) - run.first_seq;
            let (part, rest) = words.split_at(count as usize * stride);
            let part = FrameRun { first_seq: run.first_seq, words: part };
            self.add_run(stride, run.tid, part, out);
            words = rest;
        }
        out.aside = aside;
    }

    /// Adds the frames of one thread. Frames that do not carry their sequence number are invalid.
    fn add_run(&mut self, stride: usize, tid: u32, run: FrameRun<'_>, out: &mut Outlet<'_>) {
        let FrameRun { first_seq: mut seq, mut words } = run;
        let run = |words: &[WordBytes], seq: u64, good: bool| {
            let frames = words.chunks_exact(stride).zip(seq..);
            frames.take_while(|(frame, seq)| (frame[0] == seq.to_le_bytes()) == good).count()
        };
        while !words.is_empty() {
            let good = run(words, seq, true);
            let (part, rest) = words.split_at(good * stride);
            self.append(stride, tid, FrameRun { first_seq: seq, words: part }, out);
            seq += good as u64;

            let bad = run(rest, seq, false);
            let marked = if self.marks { marked(&rest[..bad * stride], stride, seq) } else { 0 };
            self.lose(Cause::Overrun, marked, out);
            self.lose(Cause::Corrupt, bad as u64 - marked, out);
            seq += bad as u64;
            words = &rest[bad * stride..];
        }
    }

    fn append(&mut self, stride: usize, tid: u32, run: FrameRun<'_>, out: &mut Outlet<'_>) {
        let FrameRun { first_seq: mut seq, mut words } = run;
        let sizes = Sizes { stride, full: out.full };
        while !words.is_empty() {
            let follows = |open: &Chunk| open.tid == tid && open.next_seq() == seq;
            if self.open.as_ref().is_some_and(|open| open.count > 0 && !follows(open)) {
                self.flush(out);
            }
            let mut open = self.open_chunk(sizes, out);
            if open.count == 0 {
                self.begin(&mut open, (tid, seq), out);
            }
            let count = open.room(sizes).min(words.len() / stride);
            let (part, rest) = words.split_at(count * stride);
            open.reserve(count, sizes, out.lanes.pool());
            open.frames.room(count * stride).copy_from_slice(part);
            open.take(count, stride, &self.stamps);
            out.counters.copied(count as u64);
            self.open = Some(open);
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

    /// The earliest time at which the first frame of the open chunk may have been written.
    pub fn open_since(&self) -> Option<u64> {
        self.open.as_ref().filter(|open| open.count > 0).map(|open| open.since_ns)
    }

    /// Hands on the open chunk.
    pub fn flush(&mut self, out: &mut Outlet<'_>) {
        let Some(mut chunk) = self.open.take() else { return };
        if chunk.count == 0 {
            return out.lanes.pool().give(chunk.frames);
        }
        // Read once per chunk: on a busy machine, the pass may have begun long ago.
        chunk.drained_by_ns = ppt_now::monotonic();
        self.usual = chunk.count;
        out.lanes.hand(*chunk);
        out.pushed = true;
    }

    /// The final state; the open chunk has been flushed.
    pub fn closing(&self) -> Closing {
        let next_seq = self.next.saturating_add(1);
        Closing { ring: self.place.ring, next_seq, lost: self.lost, broken: self.broken }
    }
}

#[cfg(test)]
mod tests;
