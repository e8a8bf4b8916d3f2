//! How much of a capture of bounded size is left.

use std::io;

use ppt_capture::{BLOCK, CaptureWriter, CellRows, FileHeader, LARGE, Source};

use crate::cells::cells_of;

/// Bytes of a frames chunk without its frames, of its entry in the index, and of the zeros after.
const CHUNK: u64 = 192 + 64 + 63;
/// The same, if its payload is so large that it begins at a multiple of a block.
const LARGE_CHUNK: u64 = CHUNK + BLOCK as u64;
/// A gap chunk and its entry in the index.
const GAP: u64 = 128 + 64;
/// Gaps of every cause before further frames, and the next one.
pub(crate) const GAPS: usize = 3 * GAP as usize;
/// Heads of the index and of the end, the trailer, a last clock chunk, a message.
const FIXED: u64 = 2048;
/// An entry in the index, and most entries of one index.
const ENTRY: u64 = 64;
const ENTRIES: u64 = 4096;
/// The file's header, and a clock chunk, at most.
const HEADER: u64 = 256;
const CLOCK: u64 = 512;
/// Bytes that the end of a file takes for a ring, or for a source.
const RING: u64 = 64;
/// A cells chunk without its rows, its entry in the index, and the zeros after.
const READING: u64 = 128 + 64 + 63;

/// Where a reading of counters may go: into a file of at most so many bytes.
#[derive(Clone, Copy)]
pub(crate) enum Room {
    /// What has no room is in the next reading.
    Of(Option<u64>),
    /// There is no next one.
    Last(Option<u64>),
}

/// The existing part of a capture, as far as it matters for its size.
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
    /// Bytes of the copies of sources that the writer will write.
    pub owed: u64,
    /// Bytes that the last readings of counters and histograms may take.
    pub cells: u64,
}

impl WrittenSize {
    /// Bytes that the end will take: copies of sources, index, gaps of every cause on every ring,
    /// clocks, last readings, end.
    fn end(&self) -> u64 {
        FIXED
            + self.owed
            + self.chunks.min(ENTRIES) * ENTRY
            + self.rings * (3 * GAP + RING)
            + self.feeds * (GAP + RING)
            + self.cells
    }

    /// Bytes left for other things, in a file of at most `max`.
    pub fn room(&self, max: u64) -> u64 {
        max.saturating_sub(self.bytes + self.end())
    }

    /// Whether a further chunk fits if its frames take `stored` bytes.
    pub fn fits(&self, max: Option<u64>, stored: usize) -> bool {
        let around = if stored >= LARGE { LARGE_CHUNK } else { CHUNK };
        max.is_none_or(|max| self.room(max) >= around + stored as u64)
    }

    /// How many of `count` frames of `stride` bytes fit as one more chunk, if they are stored as they are.
    pub fn fitting(&self, max: Option<u64>, stride: u32, count: u32) -> u32 {
        let Some(max) = max else { return count };
        let room = self.room(max).saturating_sub(CHUNK);
        let large = room >= LARGE as u64;
        let frames = room.saturating_sub(if large { BLOCK as u64 } else { 0 }) / u64::from(stride);
        frames.min(u64::from(count)) as u32
    }
}

/// Bytes of a reading of `cells` cells of one segment that has one row: that of the last one, where there
/// is no room for more. Nothing for a segment without cells.
pub(crate) fn reading(cells: u32) -> u64 {
    let mut rows = CellRows::default();
    rows.push(None, 0, (0..cells).map(|cell| (cell, 0)));
    if rows.is_empty() { 0 } else { READING + rows.bytes().len() as u64 }
}

/// Bytes of a further source with `gaps` gaps: its chunk, the copy of that, and its parts of the
/// index and the end, and the last reading of its counters.
pub(crate) fn introduction(source: &Source, gaps: usize) -> u64 {
    // Nothing is refused by a sink; a source that cannot be written takes nothing.
    let chunk = CaptureWriter::create(io::sink(), &FileHeader::default()).and_then(|mut writer| {
        let before = writer.bytes();
        writer.source(0, source)?;
        Ok(writer.bytes() - before + writer.owed())
    });
    let last = reading(cells_of(source));
    chunk.unwrap_or(0) + ENTRY + GAP + RING + gaps as u64 * GAP + last
}

/// Bytes without which not one frame of `sources` goes into a capture: what comes before the first
/// and after the last one.
pub fn empty_size(sources: impl IntoIterator<Item = Source>) -> u64 {
    let empty = WrittenSize { bytes: HEADER + CLOCK, chunks: 1, ..WrittenSize::default() };
    let sources = sources.into_iter().map(|it| introduction(&it, 0)).sum::<u64>();
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
