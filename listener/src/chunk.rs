//! Frames on their way from a ring to the sinks.

use std::sync::Arc;

use ppt_capture::{BLOCK, Lost, MAX_FRAMES, checksum};

use crate::buffer::{Pool, WordBuffer};
use ppt_capture::stamps::{StampFindings, Stamps};

/// The sizes of chunks and their frames.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Sizes {
    /// Words of a frame.
    pub stride: usize,
    /// Bytes that fill a chunk.
    pub full: usize,
}

/// A ring of a session.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct RingPlace {
    /// The number of the segment.
    pub segment: usize,
    /// The ring in that segment.
    pub ring: u32,
}

/// Consecutive frames of one ring and one owner.
#[derive(Debug, Default)]
pub(crate) struct Chunk {
    /// The number of the segment.
    pub segment_number: usize,
    /// The ring in that segment.
    pub ring: u32,
    /// Thread that owned the ring; 0 = unknown.
    pub tid: u32,
    /// Sequence number of the first frame.
    pub first_seq: u64,
    /// Number of frames.
    pub count: u32,
    /// Frames lost directly before this chunk, on the way here.
    pub lost_before: Lost,
    /// CLOCK_MONOTONIC when the first frame was drained, ns.
    pub drained_ns: u64,
    /// CLOCK_MONOTONIC after the last frame was drained, ns. Set when the chunk is handed on.
    pub drained_by_ns: u64,
    /// The earliest time at which the first frame may have been written, ns of CLOCK_MONOTONIC.
    pub since_ns: u64,
    /// Facts about its frames, collected while draining.
    pub found: StampFindings,
    /// The checksum of its frames.
    pub crc: u32,
    /// The frames as they were in the ring, little-endian.
    pub frames: WordBuffer,
}

impl Chunk {
    /// The sequence number after the last frame.
    pub fn next_seq(&self) -> u64 {
        self.first_seq + u64::from(self.count)
    }

    /// Number of frames that still fit. A full chunk consists of whole blocks, if enough frames fit
    /// for that.
    pub fn room(&self, Sizes { stride, full }: Sizes) -> usize {
        let most = (full / 8 / stride).clamp(1, MAX_FRAMES as usize);
        // A block is a power of two, so the number of frames that fill whole blocks is one, too.
        let of_blocks = (BLOCK >> (8 * stride).trailing_zeros()).max(1);
        let most = if most >= of_blocks { most / of_blocks * of_blocks } else { most };
        most.saturating_sub(self.count as usize)
    }

    /// The frames as bytes.
    pub fn bytes(&self) -> &[u8] {
        self.frames.words().as_flattened()
    }

    /// Makes room for `count` more frames.
    pub fn reserve(&mut self, count: usize, Sizes { stride, full }: Sizes, pool: &Pool) {
        self.frames.reserve(self.frames.len() + count * stride, full, pool);
    }

    /// Appends the first `count` of the validated frames that were copied behind the existing ones.
    /// All facts are collected now, while the frames are in a cache.
    pub fn take(&mut self, count: usize, stride: usize, stamps: &Stamps) {
        let frames = self.frames.keep(count * stride);
        stamps.see(frames, stride, &mut self.found);
        self.crc = checksum(self.crc, frames.as_flattened());
        self.count += count as u32;
    }
}

/// Consecutive frames of one ring and one thread, as one sink gets them. Copies share the memory.
#[derive(Debug, Clone)]
pub struct Frames {
    pub(crate) chunk: Arc<Chunk>,
    /// Frames lost directly before, including those for which this sink was too slow.
    pub(crate) lost_before: Lost,
}

impl Frames {
    /// The number of their segment: see [`Introduction::segment_number`].
    ///
    /// [`Introduction::segment_number`]: crate::Introduction::segment_number
    pub fn segment_number(&self) -> usize {
        self.chunk.segment_number
    }

    /// The ring in that segment.
    pub fn ring(&self) -> u32 {
        self.chunk.ring
    }

    /// The thread that wrote them, in the target's numbering; 0 = unknown.
    pub fn tid(&self) -> u32 {
        self.chunk.tid
    }

    /// Sequence number of the first.
    pub fn first_seq(&self) -> u64 {
        self.chunk.first_seq
    }

    /// The number of frames, at least 1.
    pub fn count(&self) -> u32 {
        self.chunk.count
    }

    /// The time at which the first frame was drained, ns of CLOCK_MONOTONIC.
    pub fn drained_ns(&self) -> u64 {
        self.chunk.drained_ns
    }

    /// The time by which all of them were drained, on the same clock.
    pub fn drained_by_ns(&self) -> u64 {
        self.chunk.drained_by_ns
    }

    /// Frames lost directly before: overwritten or corrupt ones, and those for which this sink was
    /// too slow.
    pub fn lost_before(&self) -> Lost {
        self.lost_before
    }

    /// The frames as in the ring, one after the other.
    pub fn bytes(&self) -> &[u8] {
        self.chunk.bytes()
    }

    /// `count` frames after the first `before`, of `stride` words each, copied into their own
    /// memory.
    pub(crate) fn part(&self, before: u32, count: u32, stride: usize, stamps: &Stamps) -> Frames {
        let Chunk { segment_number, ring, tid, drained_ns, drained_by_ns, since_ns, .. } =
            *self.chunk;
        let first_seq = self.chunk.first_seq + u64::from(before);
        let words = &self.chunk.frames.words()[before as usize * stride..];
        let words = &words[..count as usize * stride];
        let mut frames = WordBuffer::new(words.len() * 8);
        frames.room(words.len()).copy_from_slice(words);
        let lost_before = if before == 0 { self.lost_before } else { Lost::default() };
        let mut chunk = Chunk {
            segment_number,
            ring,
            tid,
            first_seq,
            lost_before,
            drained_ns,
            drained_by_ns,
            since_ns,
            frames,
            ..Chunk::default()
        };
        chunk.take(count as usize, stride, stamps);
        Frames { chunk: Arc::new(chunk), lost_before }
    }

    /// Copies the frames to memory of about their size, for a caller that keeps them for long.
    pub(crate) fn compact(&self) -> Frames {
        let words = self.chunk.frames.words();
        let bytes = words.len() * 8;
        if self.chunk.frames.memory() <= bytes + bytes / 32 + BLOCK {
            return self.clone();
        }
        let mut frames = WordBuffer::new(bytes);
        frames.room(words.len()).copy_from_slice(words);
        frames.keep(words.len());
        let Chunk { found, crc, count, .. } = *self.chunk;
        let Chunk { segment_number, ring, tid, first_seq, .. } = *self.chunk;
        let Chunk { drained_ns, drained_by_ns, since_ns, .. } = *self.chunk;
        let chunk = Chunk {
            segment_number,
            ring,
            tid,
            first_seq,
            count,
            lost_before: self.chunk.lost_before,
            drained_ns,
            drained_by_ns,
            since_ns,
            found,
            crc,
            frames,
        };
        Frames { chunk: Arc::new(chunk), lost_before: self.lost_before }
    }

    /// Bytes of memory that the frames use.
    pub(crate) fn weight(&self) -> usize {
        self.chunk.frames.memory() + size_of::<Chunk>()
    }

    /// Returns the memory for reuse, unless it is still shared.
    pub(crate) fn give_back(self, pool: &Pool) {
        if let Some(chunk) = Arc::into_inner(self.chunk) {
            pool.give(chunk.frames);
        }
    }
}

#[cfg(test)]
impl From<Chunk> for Frames {
    fn from(chunk: Chunk) -> Self {
        Self { lost_before: chunk.lost_before, chunk: Arc::new(chunk) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::buffer::{LARGE_CHUNK, SMALL_CHUNK};

    #[test]
    fn a_full_chunk_is_whole_blocks() {
        let chunk = Chunk::default();
        for stride in 2..=512 {
            for full in [SMALL_CHUNK, LARGE_CHUNK] {
                let frames = chunk.room(Sizes { stride, full });
                let bytes = frames * stride * 8;
                assert!((1..=MAX_FRAMES as usize).contains(&frames) && bytes <= full, "{stride}");
                let few = full / 8 / stride < BLOCK;
                assert!(bytes.is_multiple_of(BLOCK) || few, "{frames} of {stride} in {full}");
            }
        }
        let large = Sizes { stride: 6, full: LARGE_CHUNK };
        assert_eq!(chunk.room(large) * 48, 510 * BLOCK);
        assert_eq!(Chunk { count: 43_500, ..chunk }.room(large), 20);
    }
}
