//! Reads chunks of captures, one after the other.

use std::io;
use std::ops::Range;
use std::sync::Arc;

use ppt_capture::{ChunkFile, Payload, Stamps};

use crate::catalog::{Catalog, ChunkAt};
use crate::chunk_row_source::kind_bit;
use crate::error::TableError;
use crate::rows::RowsInChunk;
use crate::set::{CaptureSet, OwnerKeys};
use crate::standard::ChunkRows;

/// Largest number of bytes of adjacent chunks that one read covers.
pub(crate) const MAX_READ: u64 = 1 << 20;

/// A chunk of a set.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct ChunkId {
    /// Index of the capture.
    pub capture: u32,
    /// Index of the chunk in the catalog of the capture.
    pub index: u32,
}

/// The catalog of a capture, and the owners of its chunks.
#[derive(Debug)]
pub(crate) struct CaptureFacts {
    pub catalog: Arc<Catalog>,
    pub owners: Vec<OwnerKeys>,
}

impl CaptureFacts {
    /// The facts of each capture of a set.
    pub fn of_captures(set: &CaptureSet) -> Vec<CaptureFacts> {
        let captures = set.captures().iter().enumerate();
        let facts = captures.map(|(index, capture)| {
            let catalog = capture.catalog().clone();
            let owners = set.owners(index, &catalog);
            CaptureFacts { catalog, owners }
        });
        facts.collect()
    }

    /// The owner of a chunk.
    pub fn owner(&self, chunk: &ChunkAt) -> Option<&OwnerKeys> {
        self.owners.get(chunk.owner as usize)
    }

    /// Bytes of a frame of a chunk.
    pub fn stride(&self, chunk: &ChunkAt) -> u64 {
        self.owner(chunk).map_or(0, |owner| self.catalog.sources[owner.info].schema.stride.into())
    }

    /// Whether a chunk may hold frames whose kind is not in their schema.
    pub fn may_hold_unknown(&self, chunk: &ChunkAt) -> bool {
        let Some(owner) = self.owner(chunk) else { return false };
        let kinds = self.catalog.sources[owner.info].schema.frames.len();
        // If the buffer has one kind, its frames carry no kind.
        let known = (0..kinds).fold(0, |known, id| known | kind_bit(id));
        kinds > 1 && (chunk.mask == 0 || chunk.mask & !known != 0 || kinds > 63)
    }
}

/// Reads chunks of captures, one after the other.
pub(crate) struct ChunkReader {
    set: Arc<CaptureSet>,
    /// By capture.
    facts: Arc<Vec<CaptureFacts>>,
    chosen: Arc<Vec<ChunkId>>,
    next: usize,
    end: usize,
    /// The open capture, and its index.
    file: Option<(u32, ChunkFile)>,
}

impl ChunkReader {
    /// A reader of this range of `chosen`.
    pub fn new(
        set: &Arc<CaptureSet>,
        facts: &Arc<Vec<CaptureFacts>>,
        chosen: &Arc<Vec<ChunkId>>,
        range: Range<usize>,
    ) -> ChunkReader {
        let reader = ChunkReader {
            set: set.clone(),
            facts: facts.clone(),
            chosen: chosen.clone(),
            next: range.start,
            end: range.end,
            file: None,
        };
        let chunks = reader.chosen[range].iter();
        set.watch().plan(chunks.map(|&chunk| u64::from(reader.chunk(chunk).len)).sum());
        reader
    }

    fn chunk(&self, id: ChunkId) -> &ChunkAt {
        &self.facts[id.capture as usize].catalog.chunks[id.index as usize]
    }

    /// The next chunk; None at the end.
    pub fn next(&self) -> Option<&ChunkAt> {
        (self.next < self.end).then(|| self.chunk(self.chosen[self.next]))
    }

    /// Skips all remaining chunks.
    pub fn stop(&mut self) {
        self.next = self.end;
    }

    /// Bytes from the beginning of a chunk to the end of the last chunk that one read covers.
    fn ahead(&self, capture: u32, first: &ChunkAt) -> u64 {
        let chunks = &self.facts[capture as usize].catalog.chunks;
        let mut end = first.offset + u64::from(first.len);
        for id in &self.chosen[self.next + 1..self.end] {
            let chunk = chunks.get(id.index as usize).filter(|_| id.capture == capture);
            let follows = chunk.filter(|chunk| chunk.offset == end.next_multiple_of(64));
            let Some(chunk) = follows else { break };
            let further = chunk.offset + u64::from(chunk.len);
            if further - first.offset > MAX_READ {
                break;
            }
            end = further;
        }
        end - first.offset
    }

    /// Passes the rows of the next chunk to `take`. None if no chunk is left, or the chunk is damaged or was
    /// overwritten.
    pub fn read<R>(
        &mut self,
        take: impl FnOnce(&ChunkRows<'_>) -> R,
    ) -> Result<Option<R>, TableError> {
        let Some(chunk) = self.next().copied() else { return Ok(None) };
        let ChunkId { capture, .. } = self.chosen[self.next];
        if self.set.watch().is_cancelled() {
            return Err(TableError::Cancelled);
        }
        self.set.watch().count(chunk.len.into());
        let opened = &self.set.captures()[capture as usize];
        let ahead = self.ahead(capture, &chunk);
        self.next += 1;
        if self.file.as_ref().is_none_or(|(open, _)| *open != capture) {
            self.file = Some((capture, ChunkFile::new(opened.file.clone())));
        }
        let Some((_, file)) = &mut self.file else { return Ok(None) };
        let failed =
            |error: io::Error| TableError::Read { path: opened.path.clone(), error: error.into() };
        Ok(match file.read(chunk.offset, chunk.len.into(), ahead).map_err(failed)? {
            Err(damage) => {
                opened.damage(damage);
                None
            }
            Ok(payload) => {
                let facts = &self.facts[capture as usize];
                with_chunk_rows(facts, capture as usize, &chunk, payload, take)
            }
        })
    }
}

/// Passes the rows of a chunk to `take`. None if the file was overwritten, and the payload is of another
/// chunk.
pub(crate) fn with_chunk_rows<R>(
    facts: &CaptureFacts,
    capture: usize,
    at: &ChunkAt,
    payload: Payload<'_>,
    take: impl FnOnce(&ChunkRows<'_>) -> R,
) -> Option<R> {
    let catalog = &facts.catalog;
    let owner = facts.owner(at).filter(|owner| {
        let head = &payload.head;
        (owner.source, owner.nonce, at.first_seq, at.count)
            == (head.source, head.nonce, head.first_seq, head.count)
    })?;
    let whole = payload.is_whole();
    let good: Vec<u32> = if whole { Vec::new() } else { payload.good().collect() };
    let rows = RowsInChunk {
        bytes: payload.bytes(),
        stride: payload.head.stride as usize,
        selected: (!whole).then_some(&good),
    };
    let namespace = catalog.sources[owner.info].source.process.time_namespace();
    let stamps = Stamps::new(&catalog.clocks, at.drained, namespace);
    let offset = catalog.offset();
    let kinds = None;
    Some(take(&ChunkRows { capture, catalog, at, owner, rows, kinds, stamps: &stamps, offset }))
}
