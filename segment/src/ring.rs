//! The lossy single-writer ring: steps w2 to w6 and r1 to r6 of `docs/ring-protocol.md`.
//!
//! The cursor `tail` is the only synchronisation. While `tail == T` the writer may be inside slot
//! `T mod N`, which held frame `T - N`. So a reader copies a batch, fences, reads `tail` again, and
//! keeps index `i` only while `i + N >= tail + MARGIN`. No thread waits, and validation writes
//! nothing.

use std::sync::atomic::Ordering::{Acquire, Relaxed, Release};

use crate::abi::{MARGIN, ring_word};
use crate::word::{Copied, SharedWord};

/// Largest possible cursor: 46 years at 3 frames per nanosecond.
const CURSOR_END: u64 = 1 << 62;

/// One ring in shared memory: its header and its slots.
#[derive(Debug)]
pub struct Ring<'a, W> {
    header: &'a [W],
    slots: &'a [W],
    stride: usize,
    mask: u64,
}

impl<W> Clone for Ring<'_, W> {
    fn clone(&self) -> Self {
        *self
    }
}
impl<W> Copy for Ring<'_, W> {}

impl<'a, W: SharedWord> Ring<'a, W> {
    /// A ring over `header` and `slots`. The number of slots is a power of two, and each has
    /// `stride` words.
    ///
    /// # Panics
    /// If the lengths do not match: they come from our own geometry.
    pub fn new(header: &'a [W], slots: &'a [W], stride: usize) -> Self {
        let count = slots.len() / stride;
        assert!(header.len() >= ring_word::COUNT);
        assert!(slots.len() % stride == 0 && count.is_power_of_two());
        Self { header, slots, stride, mask: count as u64 - 1 }
    }

    /// Number of slots.
    pub fn slot_count(&self) -> u64 {
        self.mask + 1
    }

    /// Words of one slot.
    pub fn stride(&self) -> usize {
        self.stride
    }

    /// Header word `index`, one of [`ring_word`].
    pub(crate) fn header(&self, index: usize) -> &'a W {
        &self.header[index]
    }

    /// Number of frames published so far.
    pub fn tail(&self) -> u64 {
        self.header[ring_word::TAIL].load(Acquire)
    }

    /// The cursor's word, for [`publish`].
    pub fn tail_word(&self) -> &'a W {
        self.header(ring_word::TAIL)
    }

    /// Cursor up to which sessions have accounted for frames.
    pub fn attended(&self) -> u64 {
        self.header[ring_word::ATTENDED].load(Relaxed)
    }

    /// Returns the frames between the cursors `from` and `tail` that no session accounted for: the
    /// first sequence number and the count. `None` if there are none, or if no writer can reach `tail`.
    pub fn unattended(&self, from: u64, tail: u64) -> Option<(u64, u64)> {
        let from = self.attended().max(from);
        (from < tail && tail <= CURSOR_END).then(|| (from + 1, tail - from))
    }

    /// Stores the cursor up to which this session has accounted for frames, for the next session.
    pub fn set_attended(&self, cursor: u64) {
        self.header[ring_word::ATTENDED].store(cursor, Relaxed);
    }

    fn slot(&self, index: u64) -> &'a [W] {
        let start = (index & self.mask) as usize * self.stride;
        &self.slots[start..start + self.stride]
    }

    /// r3: copies `count` frames from index `first` on to the front of `buffer`, word by word.
    fn copy<T: Copied>(&self, first: u64, count: usize, buffer: &mut [T]) {
        let start = (first & self.mask) as usize * self.stride;
        let words = count * self.stride;
        // Two parts if the copy wraps around the end of the ring.
        let (before, behind) = buffer[..words].split_at_mut(words.min(self.slots.len() - start));
        let stretches = [(before, &self.slots[start..]), (behind, self.slots)];
        for (to, from) in stretches {
            for (to, from) in to.iter_mut().zip(from) {
                *to = T::copied(from.load(Relaxed));
            }
        }
    }
}

/// w3, before the first word of a frame: a reader of a word that is stored after this also reads a
/// cursor of at least the previous frame.
///
/// This, [`put`] and [`publish`] are one write in three steps, for writers that keep their own
/// position in the ring. [`RingWriter`] uses them, and so do the models.
#[inline(always)]
pub fn open<W: SharedWord>() {
    W::fence(Release);
}

/// w4: stores one word of a frame, except the first.
#[inline(always)]
pub fn put<W: SharedWord>(word: &W, value: u64) {
    word.store(value, Relaxed);
}

/// w5: writes the sequence number into the first word, and advances the cursor `tail`.
#[inline(always)]
pub fn publish<W: SharedWord>(first: &W, tail: &W, seq: u64) {
    first.store(seq, Relaxed);
    tail.store(seq, Release);
}

/// The writing end; the caller owns the ring (see [`crate::owner`]).
#[derive(Debug)]
pub struct RingWriter<'a, W> {
    ring: Ring<'a, W>,
    next: u64,
}

impl<'a, W: SharedWord> RingWriter<'a, W> {
    /// Continues the ring's sequence.
    pub fn new(ring: Ring<'a, W>) -> Self {
        Self { next: ring.header(ring_word::TAIL).load(Relaxed), ring }
    }

    /// Writes one frame: `words` are all of its words except the first, which holds the sequence
    /// number. Returns that number.
    pub fn write(&mut self, words: impl IntoIterator<Item = u64>) -> u64 {
        let seq = self.next + 1;
        let slot = self.ring.slot(self.next);
        open::<W>();
        for (word, value) in slot[1..].iter().zip(words) {
            put(word, value);
        }
        publish(&slot[0], self.ring.header(ring_word::TAIL), seq);
        self.next = seq;
        seq
    }

    /// Consumes a sequence number whose frame was lost before it could be written, and returns it.
    /// A reader finds the [mark](lost_mark) of that number in the slot of the frame.
    pub fn lose(&mut self) -> u64 {
        let seq = self.next + 1;
        open::<W>();
        self.ring.slot(self.next)[0].store(lost_mark(seq), Relaxed);
        self.ring.header(ring_word::TAIL).store(seq, Release);
        self.next = seq;
        seq
    }
}

/// The first word of a slot whose frame, with number `seq`, was lost before it could be written.
/// Only ppt itself writes it, programs never do.
pub const fn lost_mark(seq: u64) -> u64 {
    !seq
}

/// The reading end: any number of readers, each with its own position.
#[derive(Debug)]
pub struct RingReader<'a, W> {
    ring: Ring<'a, W>,
    next: u64,
    margin: u64,
}

/// The ring's cursor went backwards or jumped further than frames can be written.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct BrokenCursor {
    /// The position up to which frames had been read.
    pub next: u64,
    /// The value of the cursor.
    pub tail: u64,
}

/// The result of one poll.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct PollResult {
    /// Sequence number of the first frame in the buffer.
    pub first_seq: u64,
    /// Number of frames in the buffer.
    pub count: usize,
    /// Word of the buffer at which the first frame starts.
    pub start: usize,
    /// Frames overwritten before they could be copied; they come before `first_seq`.
    pub overrun: u64,
    /// The cursor as it was when the poll began.
    pub tail: u64,
}

impl<'a, W: SharedWord> RingReader<'a, W> {
    /// Furthest possible move of a cursor between two polls.
    const JUMP: u64 = 1 << 48;

    /// Starts at frame index `next`, a recent cursor or one of an earlier session.
    pub fn new(ring: Ring<'a, W>, next: u64) -> Self {
        Self::with_margin(ring, next, MARGIN as u64)
    }

    /// A reader with another margin: for models that show why [`MARGIN`] is needed.
    #[doc(hidden)]
    pub fn with_margin(ring: Ring<'a, W>, next: u64, margin: u64) -> Self {
        Self { ring, next, margin }
    }

    /// Frame index that the next poll starts at: everything before it is accounted for.
    pub fn next(&self) -> u64 {
        self.next
    }

    /// The ring that is read.
    pub fn ring(&self) -> Ring<'a, W> {
        self.ring
    }

    /// Copies the oldest unread frames into `buffer`, as many as fit. A small buffer stays in the
    /// first-level cache while it is copied and validated, and leaves a writer little time to lap
    /// it.
    ///
    /// Frames `[first_seq, first_seq + count)` are in `buffer` from word `start` on, and each is
    /// exactly what one write stored. The buffer's other words are meaningless.
    ///
    /// # Errors
    /// The cursor went backwards, or further than any thread can write.
    pub fn poll<T: Copied>(&mut self, buffer: &mut [T]) -> Result<PollResult, BrokenCursor> {
        let slots = self.ring.slot_count();
        let oldest = |tail: u64| tail.saturating_add(self.margin).saturating_sub(slots);

        let tail = self.ring.header(ring_word::TAIL).load(Acquire);
        if tail < self.next || tail - self.next > Self::JUMP || tail > CURSOR_END {
            return Err(BrokenCursor { next: self.next, tail });
        }
        let low = self.next.max(oldest(tail).min(tail));
        let high = tail.min(low + (buffer.len() / self.ring.stride) as u64);
        self.ring.copy(low, (high - low) as usize, buffer);
        // r4: a copied word of a later frame brings that frame's predecessor tail with it.
        W::fence(Acquire);
        let after = self.ring.header(ring_word::TAIL).load(Relaxed);
        let valid = low.max(oldest(after)).min(high);

        let batch = PollResult {
            first_seq: valid + 1,
            count: (high - valid) as usize,
            start: (valid - low) as usize * self.ring.stride,
            overrun: valid - self.next,
            tail,
        };
        self.next = high;
        Ok(batch)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::atomic::AtomicU64;

    const STRIDE: usize = 3;

    struct RingMemory {
        header: Vec<AtomicU64>,
        slots: Vec<AtomicU64>,
    }

    impl RingMemory {
        fn new(slots: usize) -> Self {
            let zeros = |n| (0..n).map(|_| AtomicU64::new(0)).collect();
            Self { header: zeros(ring_word::COUNT), slots: zeros(slots * STRIDE) }
        }
        fn ring(&self) -> Ring<'_, AtomicU64> {
            Ring::new(&self.header, &self.slots, STRIDE)
        }
    }

    #[test]
    fn frames_come_back_in_order() {
        let memory = RingMemory::new(8);
        let mut writer = RingWriter::new(memory.ring());
        let mut reader = RingReader::new(memory.ring(), 0);
        let mut buffer = [0; 8 * STRIDE];
        for round in 0..10u64 {
            for i in 0..5 {
                writer.write([round, i]);
            }
            let batch = reader.poll(&mut buffer).unwrap();
            assert_eq!((batch.first_seq, batch.count, batch.overrun), (round * 5 + 1, 5, 0));
            for (i, frame) in buffer[batch.start..].chunks(STRIDE).take(5).enumerate() {
                assert_eq!(frame, [round * 5 + 1 + i as u64, round, i as u64]);
            }
        }
    }

    #[test]
    fn laps_are_counted_exactly() {
        let memory = RingMemory::new(8);
        let mut writer = RingWriter::new(memory.ring());
        let mut reader = RingReader::new(memory.ring(), 0);
        let mut buffer = [0; 3 * STRIDE];
        for _ in 0..100 {
            writer.write([0, 0]);
        }
        let batch = reader.poll(&mut buffer).unwrap();
        assert_eq!((batch.overrun, batch.first_seq, batch.count), (93, 94, 3));
        assert_eq!(reader.next(), 96);
        let batch = reader.poll(&mut buffer).unwrap();
        assert_eq!((batch.overrun, batch.first_seq, batch.count), (0, 97, 3));
    }

    #[test]
    fn a_lost_number_is_marked() {
        let memory = RingMemory::new(8);
        let mut writer = RingWriter::new(memory.ring());
        assert_eq!((writer.write([5, 5]), writer.lose(), writer.write([6, 6])), (1, 2, 3));
        let mut buffer = [0; 8 * STRIDE];
        let batch = RingReader::new(memory.ring(), 0).poll(&mut buffer).unwrap();
        assert_eq!((batch.first_seq, batch.count, batch.overrun), (1, 3, 0));
        let firsts: Vec<_> = buffer.chunks(STRIDE).take(3).map(|chunk| chunk[0]).collect();
        assert_eq!(firsts, [1, lost_mark(2), 3]);
    }

    #[test]
    fn a_cursor_that_runs_backwards_is_refused() {
        let memory = RingMemory::new(8);
        let mut reader = RingReader::new(memory.ring(), 10);
        let broken = reader.poll(&mut [0; STRIDE]).unwrap_err();
        assert_eq!(broken, BrokenCursor { next: 10, tail: 0 });
        memory.header[0].store(1 << 60, Relaxed);
        assert!(reader.poll(&mut [0; STRIDE]).is_err());
    }

    #[test]
    fn what_no_session_accounted_for() {
        let memory = RingMemory::new(8);
        let ring = memory.ring();
        assert_eq!(ring.unattended(0, 0), None);
        assert_eq!(ring.unattended(0, 10), Some((1, 10)));
        ring.set_attended(4);
        assert_eq!(ring.unattended(0, 10), Some((5, 6)));
        assert_eq!(ring.unattended(7, 10), Some((8, 3)), "this session stated more");
        assert_eq!(ring.unattended(0, 4), None);
        assert_eq!(ring.unattended(0, 1 << 62), Some((5, (1 << 62) - 4)));
        assert_eq!(ring.unattended(0, (1 << 62) + 1), None, "no writing gets there");
    }

    #[test]
    fn a_cursor_near_the_end_of_u64_does_not_overflow() {
        let memory = RingMemory::new(8);
        memory.header[0].store(u64::MAX, Relaxed);
        let mut reader = RingReader::new(memory.ring(), u64::MAX - 5);
        assert!(reader.poll(&mut [0; STRIDE * 8]).is_err());
    }
}
