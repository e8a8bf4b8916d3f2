//! How much of a capture of bounded size is left.

use std::io;

use ppt_capture::{CaptureWriter, FileHeader, Source};

/// Bytes of a frames chunk without its frames, of its entry in the index, and of the zeros after.
const CHUNK: u64 = 192 + 64 + 63;
/// A gap chunk and its entry in the index.
const GAP: u64 = 128 + 64;
/// Heads of the index and of the end, the trailer, a last clock chunk, a message.
const FIXED: u64 = 2048;
/// An entry in the index, and most entries of one index.
const ENTRY: u64 = 64;
const ENTRIES: u64 = 4096;
/// A clock chunk, at most.
const CLOCK: u64 = 512;
/// What the end says of a ring, or of a source.
const RING: u64 = 64;

/// What of a capture exists, as far as it matters for its size.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct Written {
    /// Bytes of the file.
    pub bytes: u64,
    /// Chunks in it.
    pub chunks: u64,
    /// Rings that its end will list.
    pub rings: u64,
    /// Feeds.
    pub feeds: u64,
}

impl Written {
    /// Bytes that the end will take: index, gaps of every cause on every ring, clocks, end.
    fn end(&self) -> u64 {
        FIXED
            + self.chunks.min(ENTRIES) * ENTRY
            + self.rings * (3 * GAP + RING)
            + self.feeds * (GAP + RING)
    }

    /// Bytes left for other things, in a file of at most `max`.
    pub fn room(&self, max: u64) -> u64 {
        max.saturating_sub(self.bytes + self.end())
    }

    /// Whether one more chunk fits whose frames take `stored` bytes.
    pub fn fits(&self, max: Option<u64>, stored: usize) -> bool {
        max.is_none_or(|max| self.room(max) >= CHUNK + stored as u64)
    }

    /// How many of `count` frames of `stride` bytes fit as one more chunk, if they are stored as they are.
    pub fn fitting(&self, max: Option<u64>, stride: u32, count: u32) -> u32 {
        let Some(max) = max else { return count };
        let frames = self.room(max).saturating_sub(CHUNK) / u64::from(stride);
        frames.min(u64::from(count)) as u32
    }
}

/// Bytes without which not one frame of `sources` goes into a capture: what comes before the first
/// and after the last one.
pub fn empty_size(sources: impl IntoIterator<Item = Source>) -> u64 {
    let mut written = Written::default();
    // Nothing is refused by a sink; what is wrong with a source is said when it is listened to.
    if let Ok(mut writer) = CaptureWriter::create(io::sink(), &FileHeader::default()) {
        for (id, source) in (0..).zip(sources) {
            let _ = writer.source(id, &source);
            written.feeds += 1;
        }
        written.bytes = writer.bytes();
    }
    // A clock chunk, and each source with an entry in the index.
    written.chunks = 1 + written.feeds;
    written.bytes + CLOCK + written.end() + CHUNK
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_fits_grows_with_the_file_that_is_allowed() {
        let written = Written { bytes: 10_000, chunks: 10, rings: 4, feeds: 1 };
        assert_eq!(written.fitting(None, 64, 1000), 1000);
        assert_eq!(written.fitting(Some(0), 64, 1000), 0);
        assert_eq!(written.fitting(Some(10_000), 64, 1000), 0);
        let fixed = 10_000 + written.end() + CHUNK;
        assert_eq!(written.fitting(Some(fixed + 64 * 7 + 63), 64, 1000), 7);
        assert!(written.fits(Some(fixed + 448), 448) && !written.fits(Some(fixed + 447), 448));
        assert_eq!(written.fitting(Some(1 << 40), 64, 1000), 1000);
    }
}
