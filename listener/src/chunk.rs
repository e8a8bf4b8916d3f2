//! Frames on their way from a ring to the file.

use ppt_capture::{Lost, MAX_FRAMES};

use crate::queue::Queue;

/// Bytes of a full chunk.
pub(crate) const CHUNK_BYTES: usize = 512 << 10;

/// Frames of one ring and one owner, without a hole.
#[derive(Debug, Default)]
pub(crate) struct Chunk {
    /// The ring, counted over all feeds.
    pub ring: usize,
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
    pub bytes: Vec<u8>,
}

impl Chunk {
    /// The sequence number after the last frame.
    pub fn next_seq(&self) -> u64 {
        self.first_seq + u64::from(self.count)
    }

    /// Frames of `stride` bytes that it can still take.
    pub fn room(&self, stride: usize) -> usize {
        let most = (CHUNK_BYTES / stride).min(MAX_FRAMES as usize);
        most - self.count as usize
    }

    /// Appends `count` frames, which there must be room for.
    pub fn append(&mut self, words: &[u64], count: usize, queue: &Queue) {
        let old = self.bytes.len();
        self.make_room(old + words.len() * 8, queue);
        self.bytes.resize(old + words.len() * 8, 0);
        for (bytes, word) in self.bytes[old..].chunks_exact_mut(8).zip(words) {
            bytes.copy_from_slice(&word.to_le_bytes());
        }
        self.count += count as u32;
    }

    /// Small chunks, of which there may be many, take about what they need; the others take a full
    /// chunk's buffer, which is used again and again.
    fn make_room(&mut self, len: usize, queue: &Queue) {
        if len > self.bytes.capacity() && len > CHUNK_BYTES / 4 {
            let mut full = queue.buffer();
            full.extend_from_slice(&self.bytes);
            self.bytes = full;
        }
    }
}
