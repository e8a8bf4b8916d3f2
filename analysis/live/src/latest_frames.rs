//! The latest frames, kept so that a user can save them.

use std::collections::VecDeque;
use std::hash::{BuildHasher, Hasher, RandomState};
use std::io::{self, Write};
use std::sync::Arc;
use std::time::{SystemTime, UNIX_EPOCH};

use ppt_capture::{
    CaptureWriter, ClockReading, Drops, End, EndReason, FileHeader, FramesHead, Gap, Lost, Source,
};

/// A chunk of the latest frames.
pub(crate) enum KeptChunk {
    /// The head of the chunk, and its frames.
    Frames(FramesHead, Vec<u8>),
    Gap(Gap),
}

/// The latest chunks, within a limit of memory.
pub(crate) struct LatestChunks {
    max_bytes: usize,
    bytes: usize,
    chunks: VecDeque<Arc<KeptChunk>>,
}

impl LatestChunks {
    /// Keeps at most `max_bytes` bytes.
    pub fn new(max_bytes: usize) -> Self {
        LatestChunks { max_bytes, bytes: 0, chunks: VecDeque::new() }
    }

    /// Adds a chunk of frames. Its losses count only if `loss_is_new`.
    pub fn add_frames(&mut self, head: FramesHead, loss_is_new: bool, bytes: &[u8]) {
        if bytes.len() <= self.max_bytes {
            let lost_before = if loss_is_new { head.lost_before } else { Lost::default() };
            self.push(KeptChunk::Frames(FramesHead { lost_before, ..head }, bytes.to_vec()));
        }
    }

    pub fn add_gap(&mut self, gap: Gap) {
        if self.max_bytes > 0 {
            self.push(KeptChunk::Gap(gap));
        }
    }

    fn push(&mut self, chunk: KeptChunk) {
        self.bytes += chunk.size();
        self.chunks.push_back(Arc::new(chunk));
        while self.bytes > self.max_bytes {
            let Some(oldest) = self.chunks.pop_front() else { break };
            self.bytes -= oldest.size();
        }
    }

    pub fn chunks(&self) -> Vec<Arc<KeptChunk>> {
        self.chunks.iter().cloned().collect()
    }
}

impl KeptChunk {
    /// The memory of the chunk, in bytes.
    fn size(&self) -> usize {
        size_of::<KeptChunk>()
            + if let KeptChunk::Frames(_, bytes) = self { bytes.len() } else { 0 }
    }
}

/// The latest frames, as a separate capture.
pub struct Latest {
    pub(crate) header: FileHeader,
    pub(crate) sources: Vec<(u16, Source)>,
    pub(crate) clocks: Vec<ClockReading>,
    pub(crate) chunks: Vec<Arc<KeptChunk>>,
    pub(crate) drops: Vec<Drops>,
}

impl Latest {
    /// The number of frames.
    pub fn frames(&self) -> u64 {
        let count = |kept: &Arc<KeptChunk>| match &**kept {
            KeptChunk::Frames(head, _) => u64::from(head.count),
            KeptChunk::Gap(_) => 0,
        };
        self.chunks.iter().map(count).sum()
    }

    /// Writes a capture with an id of its own. `tool` is the name of the writer in its header.
    ///
    /// # Errors
    /// Write errors of `out`.
    pub fn write(&self, out: impl Write, tool: &str) -> io::Result<()> {
        let mut capture_id = [0; 16];
        capture_id[..8].copy_from_slice(&RandomState::new().build_hasher().finish().to_le_bytes());
        capture_id[8..].copy_from_slice(&RandomState::new().build_hasher().finish().to_le_bytes());
        let header = FileHeader { capture_id, tool: tool.to_owned(), ..self.header.clone() };
        let mut writer = CaptureWriter::create(out, &header)?;
        for (id, source) in &self.sources {
            writer.source(*id, source)?;
        }
        writer.clock(&self.clocks)?;
        for chunk in &self.chunks {
            match &**chunk {
                KeptChunk::Frames(head, bytes) => writer.frames(head, bytes)?,
                KeptChunk::Gap(gap) => writer.gap(gap)?,
            }
        }
        self.drops.iter().try_for_each(|drop| writer.drops(drop))?;
        let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
        let last = self.chunks.iter().rev().find_map(|chunk| match &**chunk {
            KeptChunk::Frames(head, _) => Some(head.drained_mono_ns),
            KeptChunk::Gap(_) => None,
        });
        writer.finish(&End {
            reason: EndReason::Stopped,
            message: "the latest frames that ppt top had seen".to_owned(),
            rings: Vec::new(),
            drops: self.drops.iter().map(|drop| (drop.source, drop.dropped)).collect(),
            realtime_ns: now.as_nanos() as u64,
            mono_ns: last.unwrap_or(header.created_mono_ns),
        })
    }
}
