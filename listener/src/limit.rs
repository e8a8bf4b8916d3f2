//! Computes the remaining room in a capture of bounded size.

use std::io;

use ppt_capture::{ALIGNED_PAYLOAD_FROM, BLOCK, CaptureWriter, CellRows, FileHeader, Source};

use crate::cells::cells_of;

/// Bytes of a frames chunk without its frames, of its index entry, and of the padding after it.
const CHUNK: u64 = 192 + 64 + 63;
/// [`CHUNK`] with a payload so large that it is block-aligned.
const LARGE_CHUNK: u64 = CHUNK + BLOCK as u64;
/// A gap chunk and its entry in the index.
const GAP: u64 = 128 + 64;
/// Bytes of gaps of every cause before further frames, and of the next one.
pub(crate) const GAPS: usize = 3 * GAP as usize;
/// Bytes of the heads of index and end, the trailer, a last clock chunk, and a message.
const FIXED: u64 = 2048;
/// Bytes of an index entry, and the largest number of entries in one index.
const ENTRY: u64 = 64;
const ENTRIES: u64 = 4096;
/// The file's header, and a clock chunk, at most.
const HEADER: u64 = 256;
const CLOCK: u64 = 512;
/// Bytes in the end of a file for each ring or source.
const RING: u64 = 64;
/// Bytes of a cells chunk without its rows, of its index entry, and of the padding after it.
const READING: u64 = 128 + 64 + 63;

/// The room for a reading of counters, in a file of at most this many bytes.
#[derive(Clone, Copy)]
pub(crate) enum Room {
    /// Adds without room go into the next reading.
    Of(Option<u64>),
    /// There is no next reading.
    Last(Option<u64>),
}

/// The written part of a capture, as far as it affects the size.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct WrittenSize {
    /// Bytes of the file.
    pub bytes: u64,
    /// Chunks in it.
    pub chunks: u64,
    /// Rings that its end will list.
    pub rings: u64,
    /// Feeds.
    pub feeds: u64,
    /// Bytes of the source copies that the writer will write.
    pub owed: u64,
    /// Bytes that the last readings of counters and histograms may take.
    pub cells: u64,
}

impl WrittenSize {
    /// Bytes of the end: copies of sources, index, gaps of every cause for every ring, clocks, last
    /// readings, end chunk.
    fn end(&self) -> u64 {
        FIXED
            + self.owed
            + self.chunks.min(ENTRIES) * ENTRY
            + self.rings * (3 * GAP + RING)
            + self.feeds * (GAP + RING)
            + self.cells
    }

    /// Remaining bytes for other chunks, in a file of at most `max` bytes.
    pub fn room(&self, max: u64) -> u64 {
        max.saturating_sub(self.bytes + self.end())
    }

    /// Whether a further chunk fits if its frames take `stored` bytes.
    pub fn fits(&self, max: Option<u64>, stored: usize) -> bool {
        let around = if stored >= ALIGNED_PAYLOAD_FROM { LARGE_CHUNK } else { CHUNK };
        max.is_none_or(|max| self.room(max) >= around + stored as u64)
    }

    /// The number of uncompressed frames of `stride` bytes that fit in one more chunk, at most `count`.
    pub fn fitting(&self, max: Option<u64>, stride: u32, count: u32) -> u32 {
        let Some(max) = max else { return count };
        let room = self.room(max).saturating_sub(CHUNK);
        let large = room >= ALIGNED_PAYLOAD_FROM as u64;
        let frames = room.saturating_sub(if large { BLOCK as u64 } else { 0 }) / u64::from(stride);
        frames.min(u64::from(count)) as u32
    }
}

/// Bytes of a reading of `cells` cells of one segment in one row, which is the last reading if
/// there is no room for more. 0 for a segment without cells.
pub(crate) fn reading(cells: u32) -> u64 {
    let mut rows = CellRows::default();
    rows.push(None, 0, (0..cells).map(|cell| (cell, 0)));
    if rows.is_empty() { 0 } else { READING + rows.bytes().len() as u64 }
}

/// Bytes of a further source with `gaps` gaps: its chunk, the copy of that, its parts of the index
/// and the end, and the last reading of its counters.
pub(crate) fn introduction(source: &Source, gaps: usize) -> u64 {
    // The sink accepts every write. An invalid source takes no room.
    let chunk = CaptureWriter::create(io::sink(), &FileHeader::default()).and_then(|mut writer| {
        let before = writer.bytes();
        writer.source(0, source)?;
        Ok(writer.bytes() - before + writer.owed())
    });
    let last = reading(cells_of(source));
    chunk.unwrap_or(0) + ENTRY + GAP + RING + gaps as u64 * GAP + last
}

/// Bytes that a capture of `sources` needs for its parts before the first and after the last frame.
pub fn empty_size(sources: impl IntoIterator<Item = Source>) -> u64 {
    let empty = WrittenSize { bytes: HEADER + CLOCK, chunks: 1, ..WrittenSize::default() };
    let sources = sources.into_iter().map(|source| introduction(&source, 0)).sum::<u64>();
    empty.bytes + empty.end() + sources + CHUNK
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_fits_grows_with_the_file_that_is_allowed() {
        let written =
            WrittenSize { bytes: 10_000, chunks: 10, rings: 4, feeds: 1, owed: 500, cells: 300 };
        assert_eq!(written.fitting(None, 64, 1000), 1000);
        assert_eq!(written.fitting(Some(0), 64, 1000), 0);
        assert_eq!(written.fitting(Some(10_000), 64, 1000), 0);
        let fixed = 10_000 + written.end() + CHUNK;
        assert_eq!(written.fitting(Some(fixed + 64 * 7 + 63), 64, 1000), 7);
        assert!(written.fits(Some(fixed + 448), 448) && !written.fits(Some(fixed + 447), 448));
        assert_eq!(written.fitting(Some(1 << 40), 64, 1000), 1000);
    }
}
