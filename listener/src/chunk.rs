//! Frames on their way from a ring to the file.

use ppt_capture::{Lost, MAX_FRAMES};

use crate::queue::Queue;

/// Bytes of a full chunk, where few rings are busy: the larger, the fewer writes.
pub(crate) const LARGE_CHUNK: usize = 2 << 20;
/// Bytes of a full chunk, where many rings fill one each.
pub(crate) const SMALL_CHUNK: usize = 512 << 10;

/// Frames of one ring and one owner, without a hole.
#[derive(Debug, Default)]
pub(crate) struct Chunk {
    /// The number of the segment.
    pub part: usize,
    /// The ring of it.
    pub ring: u32,
    /// Thread that owned the ring; 0 = unknown.
    pub tid: u32,
    /// Sequence number of the first frame.
    pub first_seq: u64,
    /// Number of frames.
    pub count: u32,
    /// Frames lost right before.
    pub lost_before: Lost,
    /// CLOCK_MONOTONIC when the first frame was drained, ns.
    pub drained_ns: u64,
    /// The frames as they were in the ring, little-endian.
    pub words: Vec<[u8; 8]>,
}

impl Chunk {
    /// The sequence number after the last frame.
    pub fn next_seq(&self) -> u64 {
        self.first_seq + u64::from(self.count)
    }

    /// Frames of `stride` bytes that it can still take, if `full` bytes fill it.
    pub fn room(&self, stride: usize, full: usize) -> usize {
        let most = (full / stride).min(MAX_FRAMES as usize);
        most.saturating_sub(self.count as usize)
    }

    /// The frames, byte by byte.
    pub fn bytes(&self) -> &[u8] {
        self.words.as_flattened()
    }

    /// Appends `count` frames, which there must be room for.
    pub fn append(&mut self, words: &[u64], count: usize, queue: &Queue) {
        self.make_room(self.words.len() + words.len(), queue);
        self.words.extend(words.iter().map(|word| word.to_le_bytes()));
        self.count += count as u32;
    }

    /// Chunks of a few frames, of which there may be many, take about what they need; the others
    /// take a full chunk's buffer, which is used again and again.
    fn make_room(&mut self, words: usize, queue: &Queue) {
        let len = words * 8;
        if words <= self.words.capacity() || len <= SMALL_CHUNK / 4 {
            return;
        }
        let full = if len <= SMALL_CHUNK { SMALL_CHUNK } else { LARGE_CHUNK };
        let mut buffer = queue.buffer(full);
        buffer.extend_from_slice(&self.words);
        queue.recycle(std::mem::replace(&mut self.words, buffer));
    }
}
