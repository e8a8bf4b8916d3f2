//! Chunks of captures, read one after the other.

use std::io;
use std::ops::Range;
use std::sync::Arc;

use ppt_capture::{ChunkFile, Payload, Stamps};

use crate::catalog::{Catalog, ChunkAt};
use crate::chunk_table::kind_bit;
use crate::error::TableError;
use crate::rows::RowsInChunk;
use crate::set::{CaptureSet, OwnerKeys};
use crate::standard::ChunkRows;

/// Bytes that are read at once where chunks follow each other.
const AHEAD: u64 = 1 << 20;

/// What is known of a capture.
#[derive(Debug)]
pub(crate) struct CaptureFacts {
    pub catalog: Arc<Catalog>,
    pub owners: Vec<OwnerKeys>,
}

impl CaptureFacts {
    /// Of each capture of a set.
    pub fn of_captures(set: &CaptureSet) -> Vec<CaptureFacts> {
        let captures = set.captures().iter().enumerate();
        let known = captures.map(|(index, capture)| {
            let catalog = capture.catalog().clone();
            let owners = set.owners(index, &catalog);
            CaptureFacts { catalog, owners }
        });
        known.collect()
    }

    /// Bytes of a frame of a chunk.
    pub fn stride(&self, chunk: &ChunkAt) -> u64 {
        let owner = self.owners.get(chunk.owner as usize);
        owner.map_or(0, |owner| self.catalog.sources[owner.info].schema.stride.into())
    }

    /// Whether a chunk may hold frames whose kind their schema does not have.
    pub fn may_hold_unknown(&self, chunk: &ChunkAt) -> bool {
        let Some(owner) = self.owners.get(chunk.owner as usize) else { return false };
        let kinds = self.catalog.sources[owner.info].schema.frames.len();
        // A frame of a buffer with one kind does not say what it is.
        let known = (0..kinds).fold(0, |known, id| known | kind_bit(id));
        kinds > 1 && (chunk.mask == 0 || chunk.mask & !known != 0 || kinds > 63)
    }
}

/// Chunks of captures on their way.
pub(crate) struct ChunkReader {
    set: Arc<CaptureSet>,
    /// By capture.
    known: Arc<Vec<CaptureFacts>>,
    /// Chunks by capture and index.
    chosen: Arc<Vec<(u32, u32)>>,
    next: usize,
    end: usize,
    /// The capture that is being read.
    file: Option<(u32, ChunkFile)>,
}

impl ChunkReader {
    /// Reads this range of `chosen`.
    pub fn new(
        set: &Arc<CaptureSet>,
        known: &Arc<Vec<CaptureFacts>>,
        chosen: &Arc<Vec<(u32, u32)>>,
        range: Range<usize>,
    ) -> ChunkReader {
        let reader = ChunkReader {
            set: set.clone(),
            known: known.clone(),
            chosen: chosen.clone(),
            next: range.start,
            end: range.end,
            file: None,
        };
        let chunks = reader.chosen[range].iter();
        set.watch().plan(chunks.map(|&chunk| u64::from(reader.chunk(chunk).len)).sum());
        reader
    }

    fn chunk(&self, (capture, index): (u32, u32)) -> &ChunkAt {
        &self.known[capture as usize].catalog.chunks[index as usize]
    }

    /// The chunk that is read next; None at the end.
    pub fn next(&self) -> Option<&ChunkAt> {
        (self.next < self.end).then(|| self.chunk(self.chosen[self.next]))
    }

    /// Reads no more.
    pub fn stop(&mut self) {
        self.next = self.end;
    }

    /// Bytes from a chunk on that are wanted together with it: those of chunks right behind it.
    fn ahead(&self, capture: u32, first: &ChunkAt) -> u64 {
        let known = &self.known[capture as usize].catalog.chunks;
        let mut end = first.offset + u64::from(first.len);
        for &(other, index) in &self.chosen[self.next + 1..self.end] {
            let chunk = &known.get(index as usize).filter(|_| other == capture);
            let follows = chunk.filter(|chunk| chunk.offset == end.next_multiple_of(64));
            let Some(chunk) = follows else { break };
            let further = chunk.offset + u64::from(chunk.len);
            if further - first.offset > AHEAD {
                break;
            }
            end = further;
        }
        end - first.offset
    }

    /// Gives the rows of the next chunk to `take`. None: there is none, it is damaged, or another one is
    /// there now.
    pub fn read<R>(
        &mut self,
        take: impl FnOnce(&ChunkRows<'_>) -> R,
    ) -> Result<Option<R>, TableError> {
        let Some(chunk) = self.next().copied() else { return Ok(None) };
        let (capture, _) = self.chosen[self.next];
        if self.set.watch().is_cancelled() {
            return Err(TableError::Cancelled);
        }
        self.set.watch().count(chunk.len.into());
        let opened = &self.set.captures()[capture as usize];
        let ahead = self.ahead(capture, &chunk);
        self.next += 1;
        if self.file.as_ref().is_none_or(|(of, _)| *of != capture) {
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
                each_chunk(&self.known[capture as usize], (capture as usize, &chunk), payload, take)
            }
        })
    }
}

/// Gives the rows of a chunk of a capture to `take`. None: another chunk is there now, because the file
/// was written over.
pub(crate) fn each_chunk<R>(
    known: &CaptureFacts,
    (capture, at): (usize, &ChunkAt),
    payload: Payload<'_>,
    take: impl FnOnce(&ChunkRows<'_>) -> R,
) -> Option<R> {
    let CaptureFacts { catalog, owners } = known;
    let owner = owners.get(at.owner as usize).filter(|owner| {
        let head = &payload.head;
        (owner.source, owner.nonce, at.first_seq, at.count)
            == (head.source, head.nonce, head.first_seq, head.count)
    })?;
    let whole = payload.is_whole();
    let good: Vec<u32> = if whole { Vec::new() } else { payload.good().collect() };
    let rows = RowsInChunk {
        bytes: payload.bytes(),
        stride: payload.head.stride as usize,
        which: (!whole).then_some(&good),
    };
    let namespace = catalog.sources[owner.info].source.process.time_namespace();
    let stamps = Stamps::new(&catalog.clocks, at.drained, namespace);
    let offset = catalog.offset();
    let kinds = None;
    Some(take(&ChunkRows { capture, catalog, at, owner, rows, kinds, stamps: &stamps, offset }))
}
