//! Reads the slices of chunks, and keeps those that were read last.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use ppt_capture::{ChunkFile, Payload};

use crate::error::ViewError;
use crate::layout::ViewLayout;
use crate::payload::payload;
use crate::slice::{ChunkSlices, Slice};

/// Reads chunks, for one thread.
pub(crate) struct ChunkReader<'a> {
    layout: &'a ViewLayout,
    /// The capture that is being read.
    file: Option<(usize, ChunkFile)>,
}

impl<'a> ChunkReader<'a> {
    pub fn new(layout: &'a ViewLayout) -> Self {
        ChunkReader { layout, file: None }
    }

    /// The slices of a chunk; none where the chunk is damaged, or another one is there now.
    ///
    /// # Errors
    /// The capture cannot be read.
    pub fn slices(&mut self, number: usize) -> Result<ChunkSlices, ViewError> {
        let layout = self.layout;
        let entry = &layout.chunks[number];
        let contents = &layout.captures[entry.capture];
        let read = self.payload(number, |payload| {
            let (stamps, kinds) = (contents.stamps(&entry.chunk), layout.kinds(entry));
            let is_its = |frame: &[u8]| match layout.other_threads(entry) {
                None => true,
                Some(threads) => entry.share.has(threads, frame),
            };
            ChunkSlices::read(payload, kinds, &stamps, contents.offset(), is_its)
        })?;
        Ok(read.unwrap_or_default())
    }

    /// Gives one frame of a chunk to `take`.
    ///
    /// # Errors
    /// The capture cannot be read.
    pub fn frame<R>(
        &mut self,
        number: usize,
        frame: u32,
        take: impl FnOnce(&[u8]) -> R,
    ) -> Result<Option<R>, ViewError> {
        let taken = self.payload(number, |payload| {
            let stride = payload.head.stride as usize;
            let is_good = payload.is_whole() || payload.good().any(|number| number == frame);
            let bytes = payload.bytes().chunks_exact(stride).nth(frame as usize);
            bytes.filter(|_| is_good).map(take)
        })?;
        Ok(taken.flatten())
    }

    /// Gives the frames of a chunk to `take`; None where the chunk is damaged, or another one is there now.
    ///
    /// # Errors
    /// The capture cannot be read.
    pub fn payload<R>(
        &mut self,
        number: usize,
        take: impl FnOnce(&Payload<'_>) -> R,
    ) -> Result<Option<R>, ViewError> {
        let entry = &self.layout.chunks[number];
        let contents = &self.layout.captures[entry.capture];
        if self.file.as_ref().is_none_or(|(of, _)| *of != entry.capture) {
            self.file = Some((entry.capture, ChunkFile::new(contents.file().clone())));
        }
        let Some((_, file)) = &mut self.file else { return Ok(None) };
        payload(contents, file, &entry.chunk, take)
    }
}

/// The slices of a chunk, and how deep each lies.
#[derive(Debug)]
pub(crate) struct OpenChunk {
    pub slices: Arc<ChunkSlices>,
    /// Beside what is around the whole chunk.
    pub depths: Vec<u32>,
}

impl OpenChunk {
    fn bytes(&self) -> usize {
        bytes(&self.slices) + 4 * self.depths.len()
    }
}

/// Bytes that slices take.
fn bytes(slices: &ChunkSlices) -> usize {
    (slices.slices.capacity() + slices.moments.capacity()) * size_of::<Slice>() + 128
}

/// Chunks that were opened last.
#[derive(Debug, Default)]
pub(crate) struct Recent(Mutex<CachedChunk>);

#[derive(Debug, Default)]
struct CachedChunk {
    chunks: HashMap<usize, (Arc<OpenChunk>, u64)>,
    bytes: usize,
    /// Counts uses.
    now: u64,
}

impl Recent {
    fn locked(&self) -> MutexGuard<'_, CachedChunk> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub fn get(&self, number: usize) -> Option<Arc<OpenChunk>> {
        let mut kept = self.locked();
        kept.now += 1;
        let now = kept.now;
        let (chunk, used) = kept.chunks.get_mut(&number)?;
        *used = now;
        Some(chunk.clone())
    }

    /// Keeps a chunk, and no more than `most` bytes.
    pub fn keep(&self, number: usize, chunk: &Arc<OpenChunk>, most: usize) {
        let mut kept = self.locked();
        kept.now += 1;
        let now = kept.now;
        kept.bytes += chunk.bytes();
        if let Some((old, _)) = kept.chunks.insert(number, (chunk.clone(), now)) {
            kept.bytes -= old.bytes();
        }
        while kept.bytes > most {
            let oldest = kept.chunks.iter().min_by_key(|chunk| chunk.1.1).map(|chunk| *chunk.0);
            let Some((old, _)) = oldest.and_then(|number| kept.chunks.remove(&number)) else {
                break;
            };
            kept.bytes -= old.bytes();
        }
    }
}
