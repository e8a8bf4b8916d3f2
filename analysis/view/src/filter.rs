//! Filters of slices: those of frames for which an expression is true, or those with a name.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError};

use ppt_capture::columns::frame_id;
use ppt_predicate::{CheckedExpression, Chunk, FrameKind, Predicate, PredicateRow};

use crate::chunk_reader::ChunkReader;
use crate::error::ViewError;
use crate::layout::{ChunkEntry, ViewLayout};
use crate::payload::frames;
use crate::slice::Slice;

/// The most frames with cached results, which take one bit each.
const MAX_CACHED_FRAMES: u64 = 1 << 28;

/// The condition of a filter.
#[derive(Debug, Clone)]
pub enum WantedSlices {
    /// Slices whose name contains this text.
    Named(String),
    /// All slices of the frames for which an expression is true.
    OfFrames {
        /// The kind of frames. None for all kinds with the fields of the expression.
        frame: Option<String>,
        /// The expression, as it was parsed.
        expression: Predicate,
    },
}

/// A filter of the slices of a view, with a cache of its results.
#[derive(Debug)]
pub struct SliceFilter {
    /// The filters, indexed by capture and source.
    sources: Vec<Vec<SourceFilter>>,
    cache: Mutex<CachedFrames>,
}

#[derive(Debug)]
struct SourceFilter {
    multi: bool,
    /// Whether a kind of slices is wanted.
    kinds: Vec<bool>,
    /// The expression of each kind of frames. None if the content of frames does not matter.
    frames: Option<Vec<Option<CheckedExpression>>>,
}

#[derive(Debug, Default)]
struct CachedFrames {
    chunks: HashMap<usize, Arc<FoundFrames>>,
    /// The number of frames in these chunks.
    frames: u64,
}

/// The frames of a chunk that match a filter.
#[derive(Debug, Default)]
pub(crate) struct FoundFrames {
    bits: Vec<u64>,
    /// The number of frames that match.
    pub count: u64,
}

impl FoundFrames {
    fn add(&mut self, frame: u32) {
        let (word, bit) = (frame as usize / 64, 1 << (frame % 64));
        if self.bits.len() <= word {
            self.bits.resize(word + 1, 0);
        }
        self.count += u64::from(self.bits[word] & bit == 0);
        self.bits[word] |= bit;
    }

    fn has(&self, frame: u32) -> bool {
        self.bits.get(frame as usize / 64).is_some_and(|word| word & (1 << (frame % 64)) != 0)
    }
}

impl SliceFilter {
    /// Compiles a condition for all kinds of frames of a view.
    ///
    /// # Errors
    /// The expression fits no kind of frames.
    pub(crate) fn new(
        layout: &ViewLayout,
        wanted: &WantedSlices,
    ) -> Result<SliceFilter, ViewError> {
        let mut programs = programs(layout, wanted)?.into_iter();
        let mut sources = Vec::new();
        for (capture, contents) in layout.captures.iter().enumerate() {
            let source_filter = |(source, info): (usize, &ppt_capture::SourceInfo)| {
                let kinds = &layout.source_kinds(capture, source).kinds;
                let (kinds, frames) = match wanted {
                    WantedSlices::Named(part) => {
                        (kinds.iter().map(|kind| kind.name.contains(part)).collect(), None)
                    }
                    WantedSlices::OfFrames { .. } => {
                        let of_source = programs.by_ref().take(info.schema.frames.len());
                        (vec![true; kinds.len()], Some(of_source.collect()))
                    }
                };
                SourceFilter { multi: info.schema.multi(), kinds, frames }
            };
            sources.push(contents.sources().iter().enumerate().map(source_filter).collect());
        }
        Ok(SliceFilter { sources, cache: Mutex::default() })
    }

    fn source(&self, entry: &ChunkEntry) -> &SourceFilter {
        &self.sources[entry.capture][entry.source]
    }

    /// Whether a slice matches. `found` are the frames of its chunk that match.
    pub(crate) fn has(&self, entry: &ChunkEntry, found: &FoundFrames, slice: &Slice) -> bool {
        let is_wanted = self.source(entry).kinds.get(usize::from(slice.kind));
        is_wanted == Some(&true) && found.has(slice.frame)
    }

    /// The frames of a chunk that match. None if the chunk is not in the cache.
    pub(crate) fn cached(&self, chunk: usize) -> Option<Arc<FoundFrames>> {
        let cache = self.cache.lock().unwrap_or_else(PoisonError::into_inner);
        cache.chunks.get(&chunk).cloned()
    }

    /// Reads a chunk and finds the frames that match.
    ///
    /// # Errors
    /// The capture cannot be read.
    pub(crate) fn find(
        &self,
        layout: &ViewLayout,
        reader: &mut ChunkReader<'_>,
        chunk: usize,
    ) -> Result<Arc<FoundFrames>, ViewError> {
        let entry = &layout.chunks[chunk];
        let source = self.source(entry);
        let mut found = FoundFrames::default();
        match &source.frames {
            None if source.kinds.contains(&true) => {
                let slices = reader.slices(chunk)?;
                let is_wanted =
                    |slice: &&Slice| source.kinds.get(usize::from(slice.kind)) == Some(&true);
                let wanted = slices.slices.iter().chain(&slices.moments).filter(is_wanted);
                wanted.for_each(|slice| found.add(slice.frame));
            }
            Some(programs) if programs.iter().any(Option::is_some) => {
                find_true(layout, reader, chunk, (source.multi, programs), &mut found)?;
            }
            _ => {}
        }
        let found = Arc::new(found);
        let mut cache = self.cache.lock().unwrap_or_else(PoisonError::into_inner);
        cache.frames += u64::from(entry.chunk.count);
        if cache.frames > MAX_CACHED_FRAMES {
            *cache = CachedFrames { frames: entry.chunk.count.into(), ..CachedFrames::default() };
        }
        cache.chunks.insert(chunk, found.clone());
        Ok(found)
    }
}

/// The expressions for all kinds of frames, in the order of captures and sources. None for other kinds than
/// the requested ones.
fn programs(
    layout: &ViewLayout,
    wanted: &WantedSlices,
) -> Result<Vec<Option<CheckedExpression>>, ViewError> {
    let WantedSlices::OfFrames { frame: only, expression } = wanted else { return Ok(Vec::new()) };
    let sources = layout.captures.iter().flat_map(|contents| contents.sources());
    let kinds = sources.flat_map(|info| {
        let (buffer, schema) = (info.source.buffer.as_str(), &info.schema);
        schema.frames.iter().map(move |frame| FrameKind { buffer, schema, frame })
    });
    let kinds: Vec<FrameKind<'_>> = kinds.collect();
    let is_requested =
        |kind: &FrameKind<'_>| only.as_ref().is_none_or(|only| *only == kind.frame.name);
    let requested: Vec<FrameKind<'_>> = kinds.iter().copied().filter(is_requested).collect();
    let mut compiled = expression.compile(&requested)?.into_iter();
    let program = |kind| if is_requested(kind) { compiled.next().flatten() } else { None };
    Ok(kinds.iter().map(program).collect())
}

/// Finds the frames of a chunk for which the expression of their kind is true.
fn find_true(
    layout: &ViewLayout,
    reader: &mut ChunkReader<'_>,
    chunk: usize,
    (multi, programs): (bool, &[Option<CheckedExpression>]),
    found: &mut FoundFrames,
) -> Result<(), ViewError> {
    let entry = &layout.chunks[chunk];
    let contents = &layout.captures[entry.capture];
    let stamps = contents.stamps(&entry.chunk);
    let pid = contents.sources()[entry.source].source.process.pid;
    let threads = layout.other_threads(entry);
    reader.payload(chunk, |payload| {
        let head = &payload.head;
        let context = Chunk { stamps: &stamps, offset: contents.offset(), head, pid };
        frames(payload, |row, bytes| {
            let id = if multi { usize::from(frame_id(bytes)) } else { 0 };
            let Some(Some(program)) = programs.get(id) else { return };
            let seqno = head.first_seq.saturating_add(row.into());
            let is_in_share = || threads.is_none_or(|threads| entry.share.has(threads, bytes));
            let frame = PredicateRow { chunk: &context, seqno, bytes };
            if program.matches(&frame) == Some(true) && is_in_share() {
                found.add(row);
            }
        });
    })?;
    Ok(())
}
