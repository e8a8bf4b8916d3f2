//! Reads the slices of chunks, and caches the latest ones.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use ppt_capture::{ChunkFile, Payload};

use crate::error::ViewError;
use crate::layout::ViewLayout;
use crate::payload::payload;
use crate::slice::{ChunkSlices, Slice};

/// Reads chunks in one thread.
pub(crate) struct ChunkReader<'a> {
    layout: &'a ViewLayout,
    /// The number and the file of the capture that was read last.
    file: Option<(usize, ChunkFile)>,
}

impl<'a> ChunkReader<'a> {
    pub fn new(layout: &'a ViewLayout) -> Self {
        ChunkReader { layout, file: None }
    }

    /// The slices of a chunk. Empty if the chunk is damaged or was overwritten.
    ///
    /// # Errors
    /// The capture cannot be read.
    pub fn slices(&mut self, number: usize) -> Result<ChunkSlices, ViewError> {
        let layout = self.layout;
        let entry = &layout.chunks[number];
        let contents = &layout.captures[entry.capture];
        let read = self.payload(number, |payload| {
            let (stamps, kinds) = (contents.stamps(&entry.chunk), layout.kinds(entry));
            let is_in_share = |frame: &[u8]| match layout.other_threads(entry) {
                None => true,
                Some(threads) => entry.share.has(threads, frame),
            };
            ChunkSlices::read(payload, kinds, &stamps, contents.offset(), is_in_share)
        })?;
        Ok(read.unwrap_or_default())
    }

    /// Passes one frame of a chunk to `take`. None if the chunk does not have it.
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

    /// Passes the payload of a chunk to `take`. None if the chunk is damaged or was overwritten.
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
        if self.file.as_ref().is_none_or(|(capture, _)| *capture != entry.capture) {
            self.file = Some((entry.capture, ChunkFile::new(contents.file().clone())));
        }
        let Some((_, file)) = &mut self.file else { return Ok(None) };
        payload(contents, file, &entry.chunk, take)
    }
}

/// The slices of a chunk with their depths.
#[derive(Debug)]
pub(crate) struct OpenChunk {
    pub slices: Arc<ChunkSlices>,
    /// The depths of the slices. The slices that contain the whole chunk do not count.
    pub depths: Vec<u32>,
}

impl OpenChunk {
    fn bytes(&self) -> usize {
        bytes(&self.slices) + 4 * self.depths.len()
    }
}

/// The memory of slices in bytes.
fn bytes(slices: &ChunkSlices) -> usize {
    (slices.slices.capacity() + slices.moments.capacity()) * size_of::<Slice>() + 128
}

/// The chunks that were used last.
#[derive(Debug, Default)]
pub(crate) struct ChunkCache(Mutex<CachedChunks>);

#[derive(Debug, Default)]
struct CachedChunks {
    chunks: HashMap<usize, CachedChunk>,
    bytes: usize,
    /// The number of uses of all chunks.
    uses: u64,
}

#[derive(Debug)]
struct CachedChunk {
    chunk: Arc<OpenChunk>,
    /// The number of its latest use.
    last_use: u64,
}

impl ChunkCache {
    fn lock(&self) -> MutexGuard<'_, CachedChunks> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub fn get(&self, number: usize) -> Option<Arc<OpenChunk>> {
        let mut cache = self.lock();
        cache.uses += 1;
        let last_use = cache.uses;
        let cached = cache.chunks.get_mut(&number)?;
        cached.last_use = last_use;
        Some(cached.chunk.clone())
    }

    /// Adds a chunk. Drops the chunks that were not used for longest if all take more than `max_bytes`.
    pub fn insert(&self, number: usize, chunk: &Arc<OpenChunk>, max_bytes: usize) {
        let mut cache = self.lock();
        cache.uses += 1;
        let cached = CachedChunk { chunk: chunk.clone(), last_use: cache.uses };
        cache.bytes += chunk.bytes();
        if let Some(old) = cache.chunks.insert(number, cached) {
            cache.bytes -= old.chunk.bytes();
        }
        while cache.bytes > max_bytes {
            let oldest = cache.chunks.iter().min_by_key(|entry| entry.1.last_use);
            let oldest = oldest.map(|entry| *entry.0);
            let Some(old) = oldest.and_then(|number| cache.chunks.remove(&number)) else { break };
            cache.bytes -= old.chunk.bytes();
        }
    }
}
