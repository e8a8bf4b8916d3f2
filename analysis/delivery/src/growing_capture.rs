//! A capture that may still grow.

use std::fs::File;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::{Duration, Instant};

use ppt_capture::{Capture, CaptureError, EndReason, FileHeader, SeriesPart};
use ppt_output::is_written;
use ppt_tables::{CaptureSet, SetError};

use crate::chunk_heads::{ChunkHeads, ChunkSize};

/// A capture without an end and without a writer counts as cut if it did not change for this time.
const QUIET_TIME: Duration = Duration::from_secs(3);

/// A capture that may still grow. Its file stays open, so its content can be read after its removal.
#[derive(Debug)]
pub struct GrowingCapture {
    path: PathBuf,
    file: Arc<File>,
    id: String,
    series: String,
    number: u32,
    frames_before: u64,
    /// The length of the file in bytes, and the time at which it was first seen.
    len: u64,
    len_since: Instant,
    /// The result of the last look at a file of this length.
    last_growth: Option<CaptureGrowth>,
    /// None before the first look, and for a damaged capture.
    heads: Option<ChunkHeads>,
    is_damaged: bool,
}

/// The content of a capture after some position, at one moment.
#[derive(Debug, Clone, Default)]
pub struct CaptureGrowth {
    chunks: Vec<ChunkSize>,
    /// The position, in bytes of the capture.
    from: u64,
    /// Whether there may be readings of counters. They are in no chunk of frames.
    has_counters: bool,
    /// The number of readings of ticks.
    ticks: usize,
    /// Bytes of the capture up to the end of its last whole chunk.
    whole: u64,
    /// Why the capture has ended. None if it has no end chunk.
    pub end: Option<EndReason>,
    /// Whether the capture has no end chunk and no writer.
    pub is_cut: bool,
    /// Whether the file is shorter than the position or holds another capture, because it was truncated
    /// or overwritten.
    pub is_gone: bool,
}

/// The end of a range of chunks, and what the range has.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct RangeEnd {
    /// The number after that of the last chunk.
    pub until_chunk: u64,
    /// The first byte of the capture after the range.
    pub until_byte: u64,
    /// The number of frames in the range.
    pub frames: u64,
    /// Whether the range has all chunks that the capture has.
    pub is_all: bool,
}

/// The header of a capture. None if it is damaged.
fn header(file: &File) -> Result<Option<FileHeader>, CaptureError> {
    Ok(Capture::open_beginning(file.try_clone()?, u64::MAX)?.header().cloned())
}

impl GrowingCapture {
    /// Opens the capture at `path`. None if its header is not written yet.
    ///
    /// # Errors
    /// The file cannot be read, or is not a capture.
    pub fn open(path: &Path) -> Result<Option<GrowingCapture>, SetError> {
        let fail = |error| SetError::Capture { path: path.to_owned(), error };
        let file = File::open(path).map_err(|error| fail(error.into()))?;
        let kind = file.metadata().map_err(|error| fail(error.into()))?;
        if kind.is_dir() {
            return Err(fail(CaptureError::Directory));
        }
        let header = match header(&file) {
            Ok(header) => header,
            Err(CaptureError::Empty) => return Ok(None),
            // A reader may see a part of the header while it is being written.
            Err(CaptureError::Header) if is_written(&file) => return Ok(None),
            Err(error) => return Err(fail(error)),
        };
        let header = header.ok_or_else(|| fail(CaptureError::Header))?;
        let id = hex::encode(header.capture_id);
        Ok(Some(GrowingCapture {
            path: path.to_owned(),
            file: Arc::new(file),
            series: id.clone(),
            id,
            number: 1,
            frames_before: 0,
            len: 0,
            len_since: Instant::now(),
            last_growth: None,
            heads: None,
            is_damaged: false,
        }))
    }

    /// The id of the capture, 32 hex digits.
    pub fn id(&self) -> &str {
        &self.id
    }

    /// The id of its series, which is the id of the first file.
    pub fn series(&self) -> &str {
        &self.series
    }

    /// The number of the file in the series, from 1.
    pub fn number(&self) -> u32 {
        self.number
    }

    /// The number of frames in all earlier files of the series.
    pub fn frames_before(&self) -> u64 {
        self.frames_before
    }

    /// The path at which the file was found.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Whether [`GrowingCapture::look`] may find an end, or `bytes` bytes of frames after the first `from`
    /// bytes. The answer needs only the length of the file.
    pub fn may_have(&self, from: u64, bytes: u64) -> bool {
        let Ok(file) = self.file.metadata() else { return true };
        let is_short = file.len() >= from && file.len() - from < bytes;
        // A look at a file of known length reads nothing.
        self.heads.is_none() || file.len() == self.len || !is_short || !is_written(&self.file)
    }

    /// The current content of the capture after its first `from` bytes.
    ///
    /// # Errors
    /// The file cannot be read.
    pub fn look(&mut self, from: u64) -> Result<CaptureGrowth, SetError> {
        let fail = |error: std::io::Error| SetError::Capture {
            path: self.path.clone(),
            error: error.into(),
        };
        // This comes before the length, so that the length includes the last bytes of a writer that ended.
        let is_written = is_written(&self.file);
        let len = self.file.metadata().map_err(fail)?.len();
        if len != self.len {
            (self.len, self.len_since) = (len, Instant::now());
            self.last_growth = None;
        }
        if len < from {
            return Ok(CaptureGrowth { from, is_gone: true, ..CaptureGrowth::default() });
        }
        let mut growth = match self.last_growth.take() {
            Some(growth) if growth.from == from => growth,
            _ => self.read(from)?,
        };
        self.last_growth = Some(growth.clone());
        let is_quiet = self.len_since.elapsed() > QUIET_TIME;
        growth.is_cut = growth.end.is_none() && !is_written && is_quiet;
        Ok(growth)
    }

    /// Reads the heads of the chunks that were written since the last call.
    fn read(&mut self, from: u64) -> Result<CaptureGrowth, SetError> {
        let fail = |error| SetError::Capture { path: self.path.clone(), error };
        let id = header(&self.file).map_err(fail)?.map(|header| hex::encode(header.capture_id));
        if id.as_ref() != Some(&self.id) {
            return Ok(CaptureGrowth { from, is_gone: true, ..CaptureGrowth::default() });
        }
        if self.is_damaged {
            return self.read_all(from);
        }
        let mut heads = match self.heads.take().filter(|heads| heads.has(from)) {
            Some(heads) => heads,
            None => ChunkHeads::open(&self.file).map_err(fail)?,
        };
        heads.read(from).map_err(fail)?;
        if heads.is_damaged {
            // The damaged places are known only after the whole capture was read.
            self.is_damaged = true;
            return self.read_all(from);
        }
        self.set_series(heads.part.as_ref());
        let whole = heads.whole();
        let growth = CaptureGrowth {
            chunks: heads.chunks.clone(),
            from,
            has_counters: heads.has_counters(),
            ticks: heads.ticks,
            whole,
            end: heads.end(),
            is_cut: false,
            is_gone: whole < from,
        };
        self.heads = Some(heads);
        Ok(growth)
    }

    /// Like [`GrowingCapture::read`], but reads the capture from its beginning.
    fn read_all(&mut self, from: u64) -> Result<CaptureGrowth, SetError> {
        let set = Arc::new(CaptureSet::open_part(&self.path, &self.file, from..u64::MAX)?);
        let contents = set.contents();
        let Some(contents) = contents.first() else {
            return Ok(CaptureGrowth { from, ..CaptureGrowth::default() });
        };
        self.set_series(contents.part());
        let chunks = contents.chunks().into_iter().map(|chunk| ChunkSize {
            offset: chunk.offset,
            len: chunk.len,
            ordinal: chunk.ordinal,
            count: chunk.count,
            ticks: 0,
        });
        Ok(CaptureGrowth {
            chunks: chunks.collect(),
            from,
            has_counters: contents.sources().iter().any(|info| !info.metrics.is_empty()),
            ticks: 0,
            whole: contents.bytes(),
            end: contents.end().map(|end| end.reason),
            is_cut: false,
            is_gone: contents.bytes() < from,
        })
    }

    /// Records the series of the capture, and its position there.
    fn set_series(&mut self, part: Option<&SeriesPart>) {
        if let Some(part) = part {
            self.series = hex::encode(part.series);
            (self.number, self.frames_before) = (part.number, part.captured_before);
        }
    }

    /// The rows in a range of bytes of the capture.
    ///
    /// # Errors
    /// The file cannot be read.
    pub fn part(&self, bytes: std::ops::Range<u64>) -> Result<CaptureSet, SetError> {
        CaptureSet::open_part(&self.path, &self.file, bytes)
    }
}

impl CaptureGrowth {
    /// Bytes of all chunks of frames after the position.
    pub fn bytes(&self) -> u64 {
        self.chunks.iter().map(|chunk| chunk.len).sum()
    }

    /// Bytes of the capture up to the end of its last whole chunk.
    pub fn whole(&self) -> u64 {
        self.whole
    }

    /// Frames of all kinds after the position.
    pub fn frames(&self) -> u64 {
        self.chunks.iter().map(|chunk| u64::from(chunk.count)).sum()
    }

    /// Whether the whole chunks of the capture have at least this number of bytes.
    pub fn reaches(&self, bytes: u64) -> bool {
        self.whole >= bytes
    }

    /// Whether the capture does not grow any more.
    pub fn is_over(&self) -> bool {
        self.end.is_some() || self.is_cut || self.is_gone
    }

    /// The end of a range of everything after the last frames, which begins at the chunk `from`.
    pub fn rest(&self, from: u64) -> RangeEnd {
        RangeEnd {
            until_chunk: from + 1,
            until_byte: self.whole,
            frames: self.frames(),
            is_all: true,
        }
    }

    /// The end of a range that begins at the chunk `from`. The range has at least `bytes` bytes of frames, or
    /// all frames if the capture has fewer. None if there are neither frames nor possible readings of counters.
    ///
    /// Times need two readings of ticks. A range with a first reading therefore ends after the second one.
    pub fn range_end(&self, from: u64, bytes: u64) -> Option<RangeEnd> {
        if self.ticks == 1 && !self.is_over() {
            return None;
        }
        let (mut sum, mut taken) = (0, 0);
        while taken < self.chunks.len() && (sum < bytes || self.chunks[taken].ticks == 1) {
            sum += self.chunks[taken].len;
            taken += 1;
        }
        let (range, rest) = self.chunks.split_at(taken);
        let last = range.iter().map(|chunk| chunk.ordinal + 1).max();
        let may_have_readings = self.has_counters && self.whole > self.from;
        let last = last.or(may_have_readings.then_some(from))?;
        Some(RangeEnd {
            // The names of two ranges differ even if damage changed the numbers of chunks.
            until_chunk: last.max(from + 1),
            until_byte: rest.first().map_or(self.whole, |next| next.offset),
            frames: range.iter().map(|chunk| u64::from(chunk.count)).sum(),
            is_all: rest.is_empty(),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn growth(chunks: &[(u64, u64)]) -> CaptureGrowth {
        let mut growth = CaptureGrowth { whole: 256, ..CaptureGrowth::default() };
        for &(ordinal, len) in chunks {
            growth.chunks.push(ChunkSize {
                offset: growth.whole,
                len,
                ordinal,
                count: 2,
                ticks: 0,
            });
            growth.whole += len + 64;
        }
        growth
    }

    #[test]
    fn ranges_follow_each_other_without_a_hole() {
        let growth = growth(&[(1, 100), (2, 100), (5, 100), (6, 100)]);
        let range_end = growth.range_end(0, 150).unwrap();
        let expected = RangeEnd { until_chunk: 3, until_byte: 584, frames: 4, is_all: false };
        assert_eq!(range_end, expected);
        assert_eq!(range_end.until_byte, growth.chunks[2].offset);
        let all = growth.range_end(0, u64::MAX).unwrap();
        let expected =
            RangeEnd { until_chunk: 7, until_byte: growth.whole, frames: 8, is_all: true };
        assert_eq!(all, expected);
        assert_eq!(growth.range_end(0, 400), Some(expected), "as many bytes as there are");
        assert_eq!(growth.range_end(0, 1).unwrap().frames, 2, "one chunk at least");
    }

    #[test]
    fn readings_of_counters_need_no_frames() {
        let some = CaptureGrowth { has_counters: true, from: 200, ..growth(&[]) };
        let expected = RangeEnd { until_chunk: 10, until_byte: 256, frames: 0, is_all: true };
        assert_eq!(some.range_end(9, 1), Some(expected));
        assert_eq!(CaptureGrowth { from: 256, ..some.clone() }.range_end(9, 1), None);
        assert_eq!(CaptureGrowth { has_counters: false, ..some }.range_end(9, 1), None);
    }

    #[test]
    fn a_range_has_two_readings_of_ticks_or_none() {
        let mut growth = growth(&[(1, 100), (2, 100), (3, 100)]);
        (growth.chunks[0].ticks, growth.chunks[1].ticks, growth.chunks[2].ticks) = (1, 1, 2);
        growth.ticks = 1;
        assert_eq!(growth.range_end(0, 1), None);
        growth.ticks = 2;
        assert_eq!(growth.range_end(0, 1).unwrap().until_chunk, 3);
        growth.ticks = 1;
        growth.end = Some(EndReason::Stopped);
        assert!(growth.range_end(0, 1).is_some(), "nothing more comes");
    }

    #[test]
    fn a_chunk_that_comes_late_makes_no_name_twice() {
        let late = growth(&[(3, 100)]).range_end(9, 1).unwrap();
        assert_eq!(late.until_chunk, 10);
        assert_eq!(growth(&[]).range_end(9, 1), None);
    }
}
