//! The shares of threads in a chunk whose frames may be about other threads than the one that wrote them.

use std::collections::{BTreeMap, HashMap};

use ppt_capture::columns::FrameThreads;
use ppt_capture::{ChunkFile, Payload};
use ppt_tables::{Contents, FrameChunk};

use crate::error::ViewError;
use crate::payload::{frames, payload};

/// Other threads that get a share of a chunk; frames about further ones stay with the writer's, so that a
/// chunk is not read more often than that.
const MOST_THREADS: usize = 256;

/// The frames of a chunk that are about one thread.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct ThreadShare {
    /// The thread; 0: the one that wrote the chunk.
    pub thread: i32,
    /// How many frames.
    pub count: u32,
    /// The thread that wrote the chunk.
    writer: i32,
    /// The last thread that has a share.
    last: i32,
}

impl ThreadShare {
    /// All frames of a chunk.
    pub fn whole(count: u32) -> ThreadShare {
        ThreadShare { thread: 0, count, writer: 0, last: 0 }
    }

    /// Whether a frame is in it.
    #[inline]
    pub fn has(&self, threads: &FrameThreads, frame: &[u8]) -> bool {
        let other = threads.of(frame).filter(|&other| other != self.writer && other <= self.last);
        other.unwrap_or(0) == self.thread
    }
}

/// The shares of chunks by number and checksum, by the ids of captures.
pub(crate) type KnownShares = HashMap<String, HashMap<(u64, u32), Vec<ThreadShare>>>;

/// The shares of a chunk that this thread wrote, its own one first. Where nothing can be read, there is no
/// other.
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
    while counts.len() > MOST_THREADS {
        counts.pop_last();
    }
    let last = counts.last_key_value().map_or(0, |other| *other.0);
    let own = chunk.count.saturating_sub(counts.values().sum::<u32>());
    let all = std::iter::once((0, own)).chain(counts);
    Ok(all.map(|(thread, count)| ThreadShare { thread, count, writer, last }).collect())
}

/// How many frames are about each other thread.
fn others(payload: &Payload<'_>, threads: &FrameThreads, writer: i32) -> BTreeMap<i32, u32> {
    let mut counts = BTreeMap::new();
    frames(payload, |_, frame| {
        if let Some(other) = threads.of(frame).filter(|&other| other != writer) {
            *counts.entry(other).or_default() += 1;
        }
    });
    counts
}
