//! Which slices one wants to see: those of frames of which an expression is true, or those of a name.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError};

use ppt_capture::columns::frame_id;
use ppt_predicate::{CheckedExpression, Chunk, FrameKind, Predicate, PredicateRow};

use crate::chunks::ChunkReader;
use crate::error::ViewError;
use crate::layout::{ChunkEntry, ViewLayout};
use crate::payload::frames;
use crate::slice::Slice;

/// Frames of which it is kept at once whether they are wanted: a bit for each.
const KEPT: u64 = 1 << 28;

/// What one wants to see.
#[derive(Debug, Clone)]
pub enum WantedSlices {
    /// Slices whose name has this part.
    Named(String),
    /// All slices of the frames of which an expression is true.
    OfFrames {
        /// The kind of frames; None: all kinds that have the fields.
        frame: Option<String>,
        /// The expression.
        expression: Predicate,
    },
}

/// What one wants to see of a view, and which frames are known to have it.
#[derive(Debug)]
pub struct SliceFilter {
    /// By capture and source.
    sources: Vec<Vec<SourceFilter>>,
    known: Mutex<KnownFrames>,
}

#[derive(Debug)]
struct SourceFilter {
    multi: bool,
    /// By kind of slices: whether these are wanted.
    kinds: Vec<bool>,
    /// By kind of frames; None: whatever frames hold.
    frames: Option<Vec<Option<CheckedExpression>>>,
}

#[derive(Debug, Default)]
struct KnownFrames {
    chunks: HashMap<usize, Arc<FoundFrames>>,
    frames: u64,
}

/// The frames of a chunk that are wanted.
#[derive(Debug, Default)]
pub(crate) struct FoundFrames {
    bits: Vec<u64>,
    /// How many.
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
    /// Holds what is wanted against the frames that there are.
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
            let of_source = |(source, info): (usize, &ppt_capture::SourceInfo)| {
                let kinds = &layout.source_kinds(capture, source).kinds;
                let (kinds, frames) = match wanted {
                    WantedSlices::Named(part) => {
                        (kinds.iter().map(|kind| kind.name.contains(part)).collect(), None)
                    }
                    WantedSlices::OfFrames { .. } => {
                        let own = programs.by_ref().take(info.schema.frames.len()).collect();
                        (vec![true; kinds.len()], Some(own))
                    }
                };
                SourceFilter { multi: info.schema.multi(), kinds, frames }
            };
            sources.push(contents.sources().iter().enumerate().map(of_source).collect());
        }
        Ok(SliceFilter { sources, known: Mutex::default() })
    }

    fn source(&self, entry: &ChunkEntry) -> &SourceFilter {
        &self.sources[entry.capture][entry.source]
    }

    /// Whether a slice of a chunk is wanted, of which these frames are.
    pub(crate) fn has(&self, entry: &ChunkEntry, found: &FoundFrames, slice: &Slice) -> bool {
        let is_kind = self.source(entry).kinds.get(usize::from(slice.kind));
        is_kind == Some(&true) && found.has(slice.frame)
    }

    /// The frames of a chunk that are wanted, if that is known.
    pub(crate) fn known(&self, chunk: usize) -> Option<Arc<FoundFrames>> {
        let known = self.known.lock().unwrap_or_else(PoisonError::into_inner);
        known.chunks.get(&chunk).cloned()
    }

    /// Reads which frames of a chunk are wanted.
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
        let own = self.source(entry);
        let mut found = FoundFrames::default();
        match &own.frames {
            None if own.kinds.contains(&true) => {
                let slices = reader.slices(chunk)?;
                let all = slices.slices.iter().chain(&slices.moments);
                let wanted =
                    all.filter(|slice| own.kinds.get(usize::from(slice.kind)) == Some(&true));
                wanted.for_each(|slice| found.add(slice.frame));
            }
            Some(programs) if programs.iter().any(Option::is_some) => {
                find_true(layout, reader, chunk, (own.multi, programs), &mut found)?;
            }
            _ => {}
        }
        let found = Arc::new(found);
        let mut known = self.known.lock().unwrap_or_else(PoisonError::into_inner);
        known.frames += u64::from(entry.chunk.count);
        if known.frames > KEPT {
            *known = KnownFrames { frames: entry.chunk.count.into(), ..KnownFrames::default() };
        }
        known.chunks.insert(chunk, found.clone());
        Ok(found)
    }
}

/// The programs of all kinds of frames, one capture and one source after the other.
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
    let is_asked = |kind: &FrameKind<'_>| only.as_ref().is_none_or(|only| *only == kind.frame.name);
    let asked: Vec<FrameKind<'_>> = kinds.iter().copied().filter(is_asked).collect();
    let mut compiled = expression.compile(&asked)?.into_iter();
    let program = |kind| if is_asked(kind) { compiled.next().flatten() } else { None };
    Ok(kinds.iter().map(program).collect())
}

/// Finds the frames of a chunk of which their program is true.
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
            let is_its = || threads.is_none_or(|threads| entry.share.has(threads, bytes));
            let frame = PredicateRow { chunk: &context, seqno, bytes };
            if program.matches(&frame) == Some(true) && is_its() {
                found.add(row);
            }
        });
    })?;
    Ok(())
}
