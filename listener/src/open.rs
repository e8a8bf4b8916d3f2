//! One capture file that is being written.

use std::collections::HashMap;
use std::io::{self, Write};
use std::sync::Arc;

use ppt_capture::{CaptureWriter, End, EndReason, FileHeader, MAX_SOURCES, SeriesPart, Source};

use crate::counted_output::CountedOutput;
use crate::limit::WrittenSize;
use crate::progress::SinkCounters;
use ppt_now::Clocks;

/// Bytes of a clock or drops chunk, at most.
const SMALL: u64 = 512;

/// A capture file and its writer.
pub(crate) struct OpenFile<W> {
    writer: CaptureWriter<CountedOutput<W>>,
    /// The id of the capture.
    id: [u8; 16],
    /// `None` for the first file of its series.
    part: Option<SeriesPart>,
    state: FileState,
    written: WrittenSize,
    /// The number of each feed in this file.
    sources: HashMap<usize, u16>,
    counters: Arc<SinkCounters>,
}

enum FileState {
    Open,
    /// The file takes no more frames. An error states the reason, unless the file has its full
    /// size.
    Full(Option<io::Error>),
    /// A write has failed. The capture may continue in another file.
    Broken(io::Error),
    Failed(io::Error),
}

impl<W: Write> OpenFile<W> {
    /// Begins a file in `out`.
    pub fn create(out: W, header: &FileHeader, counters: &Arc<SinkCounters>) -> io::Result<Self> {
        let output = CountedOutput::new(out, Arc::clone(counters));
        let writer = CaptureWriter::create(output, header)?;
        Ok(Self {
            written: WrittenSize { bytes: writer.bytes(), ..WrittenSize::default() },
            writer,
            id: header.capture_id,
            part: None,
            state: FileState::Open,
            sources: HashMap::new(),
            counters: Arc::clone(counters),
        })
    }

    /// States that the file continues the series of `former`, of which the last `keep` files are
    /// kept (0: all). The earlier files hold `captured_before` frames.
    pub fn continues(&mut self, former: &Self, keep: u32, captured_before: u64) {
        let part = SeriesPart {
            series: former.part.map_or(former.id, |part| part.series),
            previous: former.id,
            number: former.part.map_or(1, |part| part.number).saturating_add(1),
            keep,
            captured_before,
        };
        self.part = Some(part);
        self.write(|writer| writer.series(&part));
    }

    /// Writes the chunks that precede the first frame and need no account.
    pub fn begin<'a>(
        &mut self,
        sources: impl Iterator<Item = (usize, &'a Source)>,
        clocks: &Clocks,
    ) -> io::Result<()> {
        for (feed, source) in sources {
            self.source(feed, source);
        }
        let readings = clocks.readings();
        self.write(|writer| writer.clock(&readings));
        match std::mem::replace(&mut self.state, FileState::Open) {
            FileState::Broken(error) | FileState::Failed(error) => Err(error),
            state => {
                self.state = state;
                Ok(())
            }
        }
    }

    /// Whether it takes frames.
    pub fn is_open(&self) -> bool {
        matches!(self.state, FileState::Open)
    }

    /// Whether nothing can be written any more.
    pub fn has_failed(&self) -> bool {
        matches!(self.state, FileState::Broken(_) | FileState::Failed(_))
    }

    /// The error of a write that has just failed: the caller continues in another file, or
    /// [fails](Self::fail) with it.
    pub fn broken(&mut self) -> Option<io::Error> {
        let FileState::Broken(error) = &mut self.state else { return None };
        Some(std::mem::replace(error, io::ErrorKind::Other.into()))
    }

    /// Whether it has the maximum number of sources.
    pub fn has_all_sources(&self) -> bool {
        self.sources.len() >= MAX_SOURCES
    }

    /// The number of the source of `feed`, if the file has it.
    pub fn source_of(&self, feed: usize) -> Option<u16> {
        self.sources.get(&feed).copied()
    }

    /// Writes the source of `feed`, or a newer version of it. Returns whether the file has it.
    pub fn source(&mut self, feed: usize, source: &Source) -> bool {
        if !self.is_open() {
            return false;
        }
        let id = self.source_of(feed).unwrap_or(self.sources.len() as u16);
        if self.write(|writer| writer.source(id, source)) {
            self.sources.insert(feed, id);
            self.written.feeds = self.sources.len() as u64;
            return true;
        }
        false
    }

    /// Writes a further chunk, if the file takes chunks. Returns whether the chunk is in the file.
    pub fn write(
        &mut self,
        chunk: impl FnOnce(&mut CaptureWriter<CountedOutput<W>>) -> io::Result<()>,
    ) -> bool {
        if self.has_failed() {
            return false;
        }
        match chunk(&mut self.writer) {
            Ok(()) => {
                self.written.bytes = self.writer.bytes();
                self.written.chunks = self.writer.chunks();
                self.written.owed = self.writer.owed();
                true
            }
            Err(error) => {
                self.state = FileState::Broken(error);
                false
            }
        }
    }

    /// Writes an optional chunk, in a file of at most `max` bytes.
    pub fn small(
        &mut self,
        max: Option<u64>,
        chunk: impl FnOnce(&mut CaptureWriter<CountedOutput<W>>) -> io::Result<()>,
    ) {
        let fits = max.is_none_or(|max| self.written.room(max) >= SMALL);
        if fits && self.is_open() {
            self.write(chunk);
        }
    }

    /// Whether chunks with payloads of these sizes fit into a file of at most `max` bytes.
    pub fn has_room(&self, max: Option<u64>, mut payloads: impl Iterator<Item = usize>) -> bool {
        let Some(max) = max else { return true };
        let mut room = self.written.room(max);
        payloads.all(|bytes| {
            let takes = SMALL + bytes as u64;
            let fits = room >= takes;
            room = room.saturating_sub(takes);
            fits
        })
    }

    /// Reserves `bytes` for last readings of counters and histograms.
    pub fn keep_for_cells(&mut self, bytes: u64) {
        self.written.cells = bytes;
    }

    /// The size written so far, if its end lists `rings` rings.
    pub fn written(&mut self, rings: u64) -> WrittenSize {
        self.written.rings = rings;
        self.written
    }

    /// The file takes no more frames, because it has reached its maximum size.
    pub fn fill(&mut self) {
        if self.is_open() {
            self.state = FileState::Full(None);
            self.counters.end(EndReason::MaxSize);
        }
    }

    /// The file takes no more frames, because there is no next file.
    pub fn refuse(&mut self, error: io::Error) {
        self.state = FileState::Full(Some(error));
        self.counters.end(EndReason::Failed);
    }

    /// The file takes nothing more.
    pub fn fail(&mut self, error: io::Error) {
        self.state = FileState::Failed(error);
        self.counters.end(EndReason::Failed);
    }

    /// Ends the file. Returns whether the end is written.
    pub fn end(&mut self, end: &End) -> bool {
        !self.has_failed()
            && match self.writer.finish(end) {
                Ok(()) => true,
                Err(error) => {
                    self.state = FileState::Broken(error);
                    false
                }
            }
    }

    /// Why it takes no more, if not because of its size.
    pub fn into_error(self) -> Option<io::Error> {
        match self.state {
            FileState::Broken(error) | FileState::Failed(error) => Some(error),
            FileState::Full(error) => error,
            FileState::Open => None,
        }
    }
}
