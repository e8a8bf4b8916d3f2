//! The heads of the chunks of a growing capture. Each head is read once.

use std::fs::File;

use ppt_capture::{
    Capture, CaptureError, CaptureItem, Chunk, ClockId, EndReason, Passed, SeriesPart,
};

/// Position and size of a chunk of frames, from its head.
#[derive(Debug, Clone, Copy)]
pub(crate) struct ChunkSize {
    /// The offset in the file, bytes.
    pub offset: u64,
    /// The length, bytes.
    pub len: u64,
    pub ordinal: u64,
    /// The number of its frames.
    pub count: u32,
    /// The number of readings of ticks before it.
    pub ticks: usize,
}

/// The heads of the chunks that a capture has so far.
pub(crate) struct ChunkHeads {
    capture: Capture,
    /// `chunks` lacks the chunks that begin before this byte.
    from: u64,
    pub chunks: Vec<ChunkSize>,
    pub part: Option<SeriesPart>,
    /// The number of readings of ticks.
    pub ticks: usize,
    /// Whether a part of the file is not a valid chunk.
    pub is_damaged: bool,
}

impl std::fmt::Debug for ChunkHeads {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("ChunkHeads").field("chunks", &self.chunks.len()).finish_non_exhaustive()
    }
}

impl ChunkHeads {
    pub fn open(file: &File) -> Result<ChunkHeads, CaptureError> {
        let capture = Capture::open_beginning(file.try_clone()?, u64::MAX)?;
        Ok(ChunkHeads {
            capture,
            from: 0,
            chunks: Vec::new(),
            part: None,
            ticks: 0,
            is_damaged: false,
        })
    }

    /// Whether `chunks` has all chunks from this byte on.
    pub fn has(&self, from: u64) -> bool {
        self.from <= from
    }

    /// Reads the chunks that were written since the last call. Drops chunks that begin before `from`.
    pub fn read(&mut self, from: u64) -> Result<(), CaptureError> {
        self.capture.go_on()?;
        while let Some(item) = self.capture.read_heads()? {
            let passed = match item {
                CaptureItem::Damage(_) => {
                    self.is_damaged = true;
                    continue;
                }
                CaptureItem::Chunk(Chunk::Passed(passed)) => passed,
                CaptureItem::Chunk(Chunk::Frames(frames)) => frames.passed(),
                CaptureItem::Chunk(Chunk::Series(part)) => {
                    self.part = Some(part);
                    continue;
                }
                CaptureItem::Chunk(Chunk::Clock(readings)) => {
                    let of_ticks = readings.iter().filter(|reading| reading.a == ClockId::Tick);
                    self.ticks += of_ticks.count();
                    continue;
                }
                CaptureItem::Chunk(_) => continue,
            };
            let Passed { offset, len, ordinal, head, .. } = passed;
            self.chunks.push(ChunkSize {
                offset,
                len,
                ordinal,
                count: head.count,
                ticks: self.ticks,
            });
        }
        self.from = from;
        self.chunks.retain(|chunk| chunk.offset >= from);
        Ok(())
    }

    /// Bytes of the capture up to the end of its last whole chunk.
    pub fn whole(&self) -> u64 {
        let finish = self.capture.finish();
        finish.cut.unwrap_or(finish.len)
    }

    pub fn end(&self) -> Option<EndReason> {
        self.capture.finish().end.map(|end| end.reason)
    }

    pub fn has_counters(&self) -> bool {
        self.capture.sources().any(|info| !info.metrics.is_empty())
    }
}

#[cfg(test)]
mod tests {
    use std::fs::OpenOptions;
    use std::io::Write;

    use ppt_capture::frame_dsl::schema::Schema;
    use ppt_capture::{CaptureWriter, End, FileHeader, FramesHead, Segment, Source};

    use super::*;

    const SCHEMA: &str = r#"{"v":1,"buffer":"b","slots":16,"stride":16,"frames":[{"name":"it",
        "kind":"plain","size":16,"fields":[{"name":"n","type":"u64","offset":8}]}]}"#;

    /// A capture of `chunks` chunks of three frames.
    fn capture(chunks: u64) -> Vec<u8> {
        let schema = Schema::from_json(SCHEMA.as_bytes()).unwrap();
        let header = FileHeader { capture_id: [3; 16], ..FileHeader::default() };
        let mut writer = CaptureWriter::create(Vec::new(), &header).unwrap();
        let source = Source {
            schema_json: schema.to_json().into_bytes(),
            schema_hash: schema.hash(),
            buffer: schema.buffer.clone(),
            segments: vec![Segment { nonce: 7, rings: 1, slots: 16, stride: 16 }],
            ..Source::default()
        };
        writer.source(0, &source).unwrap();
        for chunk in 0..chunks {
            let first_seq = 3 * chunk + 1;
            let frames: Vec<u8> = (first_seq..first_seq + 3)
                .flat_map(|n| [n, n])
                .flat_map(u64::to_le_bytes)
                .collect();
            let head = FramesHead {
                first_seq,
                nonce: 7,
                stride: 16,
                count: 3,
                drained_mono_ns: chunk + 1,
                ..FramesHead::default()
            };
            writer.frames(&head, &frames).unwrap();
        }
        let end = End::new(EndReason::Stopped, 9, 9);
        writer.end(&end).unwrap()
    }

    #[test]
    fn a_capture_that_grows_is_read_as_one_that_is_there() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("out.bin");
        let bytes = capture(20);
        let mut out = OpenOptions::new().create(true).append(true).open(&path).unwrap();
        // The header is written in one step.
        let mut written = 256.min(bytes.len());
        out.write_all(&bytes[..written]).unwrap();
        let file = File::open(&path).unwrap();
        let mut growing = ChunkHeads::open(&file).unwrap();
        let mut step = 1;
        while written < bytes.len() {
            step = step % 113 + 7;
            let until = bytes.len().min(written + step);
            out.write_all(&bytes[written..until]).unwrap();
            written = until;
            growing.read(0).unwrap();
            let mut fresh = ChunkHeads::open(&file).unwrap();
            fresh.read(0).unwrap();
            let content = |heads: &ChunkHeads| {
                let places: Vec<_> =
                    heads.chunks.iter().map(|chunk| (chunk.offset, chunk.ordinal)).collect();
                (places, heads.whole(), heads.end(), heads.is_damaged)
            };
            assert_eq!(content(&growing), content(&fresh), "{written} bytes");
        }
        assert_eq!((growing.chunks.len(), growing.end()), (20, Some(EndReason::Stopped)));
        assert_eq!(growing.whole(), bytes.len() as u64);
        growing.read(growing.chunks[15].offset).unwrap();
        assert!(growing.chunks.len() == 5 && !growing.has(0), "the others are forgotten");
    }
}
