//! Memory that frames are copied into, and that they are written from.

use std::sync::{Mutex, PoisonError};

use memmap2::{Advice, MmapMut};
use ppt_capture::BLOCK;

/// Bytes of a full chunk, where few rings are busy: the larger, the fewer writes.
pub(crate) const LARGE_CHUNK: usize = 2 << 20;
/// Bytes of a full chunk, where many rings fill one each.
pub(crate) const SMALL_CHUNK: usize = 512 << 10;

/// Bytes that a chunk takes for itself, and no full one's memory.
pub(crate) const FEW_BYTES: usize = SMALL_CHUNK / 2;

/// A word of a frame, little-endian.
pub(crate) type Bytes = [u8; 8];

/// Words, one after the other, and room for more. A large one begins at a multiple of [`BLOCK`]: so
/// it can be written past the page cache as it is.
#[derive(Debug, Default)]
pub(crate) struct WordBuffer {
    memory: BufferMemory,
    len: usize,
}

/// The memory of the bytes.
#[derive(Debug)]
enum BufferMemory {
    Small(Vec<Bytes>),
    Large(MmapMut),
}

impl Default for BufferMemory {
    fn default() -> Self {
        Self::Small(Vec::new())
    }
}

impl BufferMemory {
    fn words(&self) -> &[Bytes] {
        match self {
            Self::Small(words) => words,
            Self::Large(bytes) => bytes.as_chunks().0,
        }
    }

    fn words_mut(&mut self) -> &mut [Bytes] {
        match self {
            Self::Small(words) => words,
            Self::Large(bytes) => bytes.as_chunks_mut().0,
        }
    }
}

impl WordBuffer {
    /// Room for `bytes`.
    pub fn new(bytes: usize) -> Self {
        let large = || {
            let memory = MmapMut::map_anon(bytes.next_multiple_of(BLOCK)).ok()?;
            // One fault instead of hundreds, and one page that the kernel holds for each write.
            let _ = memory.advise(Advice::HugePage);
            Some(BufferMemory::Large(memory))
        };
        let memory = if bytes >= SMALL_CHUNK { large() } else { None };
        let small = || BufferMemory::Small(vec![[0; 8]; bytes.div_ceil(8)]);
        Self { memory: memory.unwrap_or_else(small), len: 0 }
    }

    /// Words that it can hold.
    pub fn capacity(&self) -> usize {
        self.memory.words().len()
    }

    /// Words that it holds.
    pub fn len(&self) -> usize {
        self.len
    }

    /// Bytes of memory that it takes.
    pub fn memory(&self) -> usize {
        self.capacity() * 8
    }

    /// The words.
    pub fn words(&self) -> &[Bytes] {
        &self.memory.words()[..self.len]
    }

    /// Room for the next `count` words, which mean nothing until they are [kept](Self::keep).
    ///
    /// # Panics
    /// If there is not so much.
    pub fn room(&mut self, count: usize) -> &mut [Bytes] {
        let end = self.len;
        &mut self.memory.words_mut()[end..end + count]
    }

    /// Keeps the first `count` words of what was written into its room; returns them.
    ///
    /// # Panics
    /// If there is not so much.
    pub fn keep(&mut self, count: usize) -> &[Bytes] {
        let end = self.len;
        self.len += count;
        &self.memory.words()[end..self.len]
    }

    /// The same words with room for `words` in all, in other memory if need be. Few words, as many a
    /// chunk has, take about what they need; the others a full chunk's `full` bytes, which are used
    /// again and again.
    pub fn reserve(&mut self, words: usize, full: usize, pool: &Pool) {
        if words <= self.capacity() {
            return;
        }
        let bytes = words * 8;
        let mut larger = match bytes <= FEW_BYTES {
            true => Self::new(bytes.next_power_of_two()),
            false => pool.take(full.max(bytes)),
        };
        larger.room(self.len).copy_from_slice(self.words());
        larger.keep(self.len);
        pool.give(std::mem::replace(self, larger));
    }
}

/// Empty buffers of each size kept for the next chunks.
const SPARE: usize = 16;

/// Large buffers that are used again: their pages are there.
#[derive(Debug, Default)]
pub(crate) struct Pool {
    small: Mutex<Vec<WordBuffer>>,
    large: Mutex<Vec<WordBuffer>>,
}

impl Pool {
    /// An empty buffer with room for `bytes`, which is [`SMALL_CHUNK`], or [`LARGE_CHUNK`], or for one
    /// frame that needs more.
    fn take(&self, bytes: usize) -> WordBuffer {
        let mut spare = self.of(bytes).lock().unwrap_or_else(PoisonError::into_inner);
        let fits = spare.pop_if(|it| it.capacity() * 8 >= bytes);
        drop(spare);
        fits.unwrap_or_else(|| WordBuffer::new(bytes))
    }

    /// Takes a buffer back; small ones are not worth it.
    pub fn give(&self, mut buffer: WordBuffer) {
        let bytes = buffer.capacity() * 8;
        if bytes >= SMALL_CHUNK {
            buffer.len = 0;
            let mut spare = self.of(bytes).lock().unwrap_or_else(PoisonError::into_inner);
            if spare.len() < SPARE {
                spare.push(buffer);
            }
        }
    }

    fn of(&self, bytes: usize) -> &Mutex<Vec<WordBuffer>> {
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
