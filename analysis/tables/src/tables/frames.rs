//! `frames`: every frame of every buffer, also frames of unknown kinds.

use std::collections::{HashMap, HashSet};
use std::sync::Arc;

use arrow_array::StringArray;
use arrow_schema::{Field, Schema, SchemaRef};
use ppt_capture::columns::{Time, frame_id};

use super::named::NamedTable;
use crate::bounds::{Bounded, BoundedText, Bounds};
use crate::builder::{Builder, Dictionary, word_type};
use crate::chunk_scan::{ChunkRowSource, ChunkScan, Ts, Wanted, kind_bit};
use crate::error::{SetError, TableError};
use crate::set::CaptureSet;
use crate::standard::{ChunkRows, STANDARD, Standard};
use crate::table::{CaptureTable, Planned, Scan, TableRequest};

pub(super) fn make(set: &Arc<CaptureSet>) -> Result<Vec<NamedTable>, SetError> {
    let frames = Arc::new(AllFrames::new(set));
    Ok(vec![NamedTable::fixed("frames", FramesTable { set: set.clone(), frames })])
}

#[derive(Debug)]
struct FramesTable {
    set: Arc<CaptureSet>,
    frames: Arc<AllFrames>,
}

impl CaptureTable for FramesTable {
    fn schema(&self) -> &SchemaRef {
        &self.frames.schema
    }

    fn bounded(&self, column: usize) -> Option<Bounded> {
        match STANDARD.get(column) {
            Some(standard) => Some(standard.bounded()),
            None => Some(Bounded::Word(BoundedText::Frame)),
        }
    }

    fn plan(&self, request: &TableRequest<'_>) -> Result<Planned, TableError> {
        let scan: Arc<dyn Scan> = Arc::new(ChunkScan::new(&self.set, &self.frames, request)?);
        Ok(scan.into())
    }
}

#[derive(Debug)]
struct AllFrames {
    schema: SchemaRef,
    words: Vec<Option<Arc<StringArray>>>,
    /// By capture and source.
    sources: HashMap<(usize, u16), SourceFrames>,
}

/// The kinds of frames of a source, by id.
#[derive(Debug)]
struct SourceFrames {
    names: Vec<String>,
    keys: Vec<i32>,
    at: Vec<Option<Time>>,
}

impl SourceFrames {
    fn kind(&self, frame: &[u8]) -> usize {
        if self.keys.len() == 1 { 0 } else { frame_id(frame).into() }
    }
}

impl AllFrames {
    fn new(set: &CaptureSet) -> AllFrames {
        let mut frames = Dictionary::default();
        let mut sources = HashMap::new();
        for (capture, opened) in set.captures().iter().enumerate() {
            for info in &opened.catalog().sources {
                let kinds = &info.schema.frames;
                let source = SourceFrames {
                    names: kinds.iter().map(|frame| frame.name.clone()).collect(),
                    keys: kinds.iter().map(|frame| frames.key(&frame.name)).collect(),
                    at: kinds.iter().map(|frame| frame.at().and_then(Time::from_field)).collect(),
                };
                sources.insert((capture, info.id), source);
            }
        }
        let standard = STANDARD.iter().map(|column| column.field(&HashSet::new()));
        let fields = standard.chain([Field::new("frame", word_type(), true)]);
        let known = STANDARD.iter().map(|column| column.dictionary(set.names()));
        AllFrames {
            schema: Arc::new(Schema::new(fields.collect::<Vec<_>>())),
            words: known.chain([Some(frames.array())]).collect(),
            sources,
        }
    }
}

impl ChunkRowSource for AllFrames {
    fn schema(&self) -> &SchemaRef {
        &self.schema
    }

    fn dictionary(&self, column: usize) -> Option<Arc<StringArray>> {
        self.words[column].clone()
    }

    fn wanted(&self, capture: usize, source: u16, bounds: &Bounds) -> Wanted {
        let Some(source) = self.sources.get(&(capture, source)) else { return Wanted::NOTHING };
        let ts = source.at.iter().flatten().next().map_or(Ts::Null, |&at| Ts::At(at));
        let kinds = match bounds.words_of(BoundedText::Frame) {
            None => u64::MAX,
            Some(words) => {
                let named = source.names.iter().enumerate().filter(|entry| words.contains(entry.1));
                named.fold(0, |kinds, (id, _)| kinds | kind_bit(id))
            }
        };
        Wanted { kinds, frame_is_row: true, ts }
    }

    fn append(&self, chunk: &ChunkRows<'_>, columns: &[usize], to: &mut [Builder]) -> usize {
        let Some(source) = self.sources.get(&(chunk.capture, chunk.owner.source)) else { return 0 };
        let rows = chunk.rows;
        let values = chunk.values(rows);
        for (&column, builder) in columns.iter().zip(to) {
            match STANDARD.get(column) {
                Some(Standard::Ts) => match source.at[..] {
                    [Some(at)] => builder.time(at, &values),
                    [None] => builder.nulls(rows.len()),
                    _ => builder.each(rows, |frame| {
                        let at = source.at.get(source.kind(frame)).copied().flatten()?;
                        values.epoch(at, frame)
                    }),
                },
                Some(standard) => chunk.standard(*standard, rows, builder),
                None => builder.each(rows, |frame| source.keys.get(source.kind(frame)).copied()),
            }
        }
        rows.len()
    }
}
