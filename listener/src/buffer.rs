//! The memory that frames are copied into and written from.

use std::sync::{Mutex, PoisonError};

use memmap2::{Advice, MmapMut};
use ppt_capture::BLOCK;

/// Bytes of a full chunk if few rings are busy. Larger chunks need fewer writes.
pub(crate) const LARGE_CHUNK: usize = 2 << 20;
/// Bytes of a full chunk if many rings each fill one.
pub(crate) const SMALL_CHUNK: usize = 512 << 10;

/// A chunk up to this size gets memory of its own size rather than a full chunk's.
pub(crate) const FEW_BYTES: usize = SMALL_CHUNK / 2;

/// A word of a frame, little-endian.
pub(crate) type WordBytes = [u8; 8];

/// A growable sequence of words. A large buffer begins at a multiple of [`BLOCK`], so that it can
/// be written past the page cache without a copy.
#[derive(Debug, Default)]
pub(crate) struct WordBuffer {
    memory: BufferMemory,
    len: usize,
}

/// The memory of the bytes.
#[derive(Debug)]
enum BufferMemory {
    Small(Vec<WordBytes>),
    Large(MmapMut),
}

impl Default for BufferMemory {
    fn default() -> Self {
        Self::Small(Vec::new())
    }
}

impl BufferMemory {
    fn words(&self) -> &[WordBytes] {
        match self {
            Self::Small(words) => words,
            Self::Large(bytes) => bytes.as_chunks().0,
        }
    }

    fn words_mut(&mut self) -> &mut [WordBytes] {
        match self {
            Self::Small(words) => words,
            Self::Large(bytes) => bytes.as_chunks_mut().0,
        }
    }
}

impl WordBuffer {
    /// A buffer with room for `bytes`.
    pub fn new(bytes: usize) -> Self {
        let large = || {
            let memory = MmapMut::map_anon(bytes.next_multiple_of(BLOCK)).ok()?;
            // One fault instead of hundreds, and one page for the kernel to pin per write.
            let _ = memory.advise(Advice::HugePage);
            Some(BufferMemory::Large(memory))
        };
        let memory = if bytes >= SMALL_CHUNK { large() } else { None };
        let small = || BufferMemory::Small(vec![[0; 8]; bytes.div_ceil(8)]);
        Self { memory: memory.unwrap_or_else(small), len: 0 }
    }

    /// Capacity in words.
    pub fn capacity(&self) -> usize {
        self.memory.words().len()
    }

    /// Length in words.
    pub fn len(&self) -> usize {
        self.len
    }

    /// Bytes of memory used.
    pub fn memory(&self) -> usize {
        self.capacity() * 8
    }

    /// The words.
    pub fn words(&self) -> &[WordBytes] {
        &self.memory.words()[..self.len]
    }

    /// Room for the next `count` words. Their content is meaningless until they are
    /// [kept](Self::keep).
    ///
    /// # Panics
    /// If the capacity is too small.
    pub fn room(&mut self, count: usize) -> &mut [WordBytes] {
        let end = self.len;
        &mut self.memory.words_mut()[end..end + count]
    }

    /// Keeps the first `count` words that were written into the room, and returns them.
    ///
    /// # Panics
    /// If the capacity is too small.
    pub fn keep(&mut self, count: usize) -> &[WordBytes] {
        let end = self.len;
        self.len += count;
        &self.memory.words()[end..self.len]
    }

    /// Ensures room for `words` in total, moving to other memory if needed. A chunk with few words
    /// takes about what it needs; any other takes a full chunk's `full` bytes, which are reused.
    pub fn reserve(&mut self, words: usize, full: usize, pool: &Pool) {
        if words <= self.capacity() {
            return;
        }
        let bytes = words * 8;
        let mut larger = if bytes <= FEW_BYTES {
            Self::new(bytes.next_power_of_two())
        } else {
            pool.take(full.max(bytes))
        };
        larger.room(self.len).copy_from_slice(self.words());
        larger.keep(self.len);
        pool.give(std::mem::replace(self, larger));
    }
}

/// Number of empty buffers of each size that are kept for the next chunks.
const SPARE: usize = 16;

/// Large buffers for reuse: their pages are already present.
#[derive(Debug, Default)]
pub(crate) struct Pool {
    small: Mutex<Vec<WordBuffer>>,
    large: Mutex<Vec<WordBuffer>>,
}

impl Pool {
    /// An empty buffer with room for `bytes`: [`SMALL_CHUNK`], [`LARGE_CHUNK`], or the size of one
    /// frame that is larger.
    fn take(&self, bytes: usize) -> WordBuffer {
        let mut spare = self.pool(bytes).lock().unwrap_or_else(PoisonError::into_inner);
        let fits = spare.pop_if(|buffer| buffer.capacity() * 8 >= bytes);
        drop(spare);
        fits.unwrap_or_else(|| WordBuffer::new(bytes))
    }

    /// Takes a buffer back, unless it is small.
    pub fn give(&self, mut buffer: WordBuffer) {
        let bytes = buffer.capacity() * 8;
        if bytes >= SMALL_CHUNK {
            buffer.len = 0;
            let mut spare = self.pool(bytes).lock().unwrap_or_else(PoisonError::into_inner);
            if spare.len() < SPARE {
                spare.push(buffer);
            }
        }
    }

    fn pool(&self, bytes: usize) -> &Mutex<Vec<WordBuffer>> {
        if bytes >= LARGE_CHUNK { &self.large } else { &self.small }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn it_grows_and_large_ones_are_aligned_and_used_again() {
        let pool = Pool::default();
        let mut buffer = WordBuffer::default();
        let mut expected = Vec::new();
        for words in [1, 7, 100, 5000, 20_000, 60_000, 200_000, 262_144] {
            buffer.reserve(words, LARGE_CHUNK, &pool);
            assert!(buffer.capacity() >= words);
            let more = words - buffer.len();
            let at = expected.len() as u64;
            let new = (at..at + more as u64).map(u64::to_le_bytes);
            buffer.room(more).iter_mut().zip(new.clone()).for_each(|(to, from)| *to = from);
            assert_eq!(buffer.keep(more).len(), more);
            expected.extend(new);
            assert!(buffer.words() == expected, "{words}");
            if words * 8 > FEW_BYTES {
                assert_eq!(buffer.words().as_ptr().addr() % BLOCK, 0, "{words}");
            }
        }
        let place = buffer.words().as_ptr();
        pool.give(buffer);
        let again = pool.take(LARGE_CHUNK);
        assert_eq!((again.len(), again.words().as_ptr()), (0, place));
        assert!(pool.take(4 * LARGE_CHUNK).capacity() * 8 >= 4 * LARGE_CHUNK);
    }
}
