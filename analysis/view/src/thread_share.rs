//! The shares of threads in a chunk. Its frames may be about other threads than the one that wrote them.

use std::collections::{BTreeMap, HashMap};

use ppt_capture::columns::FrameThreads;
use ppt_capture::{ChunkFile, Payload};
use ppt_tables::{Contents, FrameChunk};

use crate::error::ViewError;
use crate::payload::{frames, payload};

/// The most other threads that get a share of a chunk, because each share reads the chunk again. Frames about
/// further threads stay in the share of the writer.
const MAX_THREADS: usize = 256;

/// The frames of a chunk that are about one thread.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct ThreadShare {
    /// The thread. 0 for the thread that wrote the chunk.
    pub thread: i32,
    /// The number of frames.
    pub count: u32,
    /// The thread that wrote the chunk.
    writer: i32,
    /// The largest id of a thread with a share.
    last: i32,
}

impl ThreadShare {
    /// A share with all frames of a chunk.
    pub fn whole(count: u32) -> ThreadShare {
        ThreadShare { thread: 0, count, writer: 0, last: 0 }
    }

    /// Whether a frame belongs to the share.
    #[inline]
    pub fn has(&self, threads: &FrameThreads, frame: &[u8]) -> bool {
        let other = threads.of(frame).filter(|&other| other != self.writer && other <= self.last);
        other.unwrap_or(0) == self.thread
    }
}

/// Identifies a chunk in a capture, and its content.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(crate) struct ChunkId {
    pub ordinal: u64,
    pub crc: u32,
}

/// The shares of the chunks of one capture.
pub(crate) type CaptureShares = HashMap<ChunkId, Vec<ThreadShare>>;

/// The shares of chunks, by the ids of captures.
pub(crate) type KnownShares = HashMap<String, CaptureShares>;

/// The shares of a chunk that the thread `writer` wrote, its own share first. A damaged chunk has only that
/// share.
///
/// # Errors
/// The capture cannot be read.
pub(crate) fn shares(
    contents: &Contents,
    file: &mut ChunkFile,
    chunk: &FrameChunk,
    (threads, writer): (&FrameThreads, Option<u32>),
) -> Result<Vec<ThreadShare>, ViewError> {
    let writer = writer.and_then(|tid| i32::try_from(tid).ok()).unwrap_or(0);
    let counts = payload(contents, file, chunk, |payload| others(payload, threads, writer))?;
    let mut counts = counts.unwrap_or_default();
    while counts.len() > MAX_THREADS {
        counts.pop_last();
    }
    let last = counts.last_key_value().map_or(0, |other| *other.0);
    let own = chunk.count.saturating_sub(counts.values().sum::<u32>());
    let counts = std::iter::once((0, own)).chain(counts);
    Ok(counts.map(|(thread, count)| ThreadShare { thread, count, writer, last }).collect())
}

/// The number of frames about each other thread.
fn others(payload: &Payload<'_>, threads: &FrameThreads, writer: i32) -> BTreeMap<i32, u32> {
    let mut counts = BTreeMap::new();
    frames(payload, |_, frame| {
        if let Some(other) = threads.of(frame).filter(|&other| other != writer) {
            *counts.entry(other).or_default() += 1;
        }
    });
    counts
}
