//! `points`: the data that entered and left each point, one row for each pair.

use std::sync::Arc;

use arrow_array::StringArray;
use arrow_schema::{DataType, Field, Schema, SchemaRef};

use super::named::NamedTable;
use crate::bounds::{Bounded, BoundedText, Bounds};
use crate::builder::{Builder, word_type};
use crate::causality::{DataIdentity, PointDirectory};
use crate::chunk_scan::{ChunkRowSource, ChunkScan, Ts, Wanted, kind_bit};
use crate::error::{SetError, TableError};
use crate::rows::RowsInChunk;
use crate::set::CaptureSet;
use crate::standard::{ChunkRows, STANDARD, Standard};
use crate::table::{CaptureTable, Planned, Scan, TableRequest};

pub(super) fn make(set: &Arc<CaptureSet>) -> Result<Vec<NamedTable>, SetError> {
    let points = Arc::new(Points::new(set));
    Ok(vec![NamedTable::fixed("points", PointTable { set: set.clone(), points })])
}

/// A column after the standard ones.
#[derive(Debug, Clone, Copy)]
enum PointColumn {
    Point,
    InType,
    InHash,
    OutType,
    OutHash,
}

const OWN: [(&str, PointColumn); 5] = [
    ("point", PointColumn::Point),
    ("in_type", PointColumn::InType),
    ("in_hash", PointColumn::InHash),
    ("out_type", PointColumn::OutType),
    ("out_hash", PointColumn::OutHash),
];

#[derive(Debug)]
struct PointTable {
    set: Arc<CaptureSet>,
    points: Arc<Points>,
}

impl CaptureTable for PointTable {
    fn schema(&self) -> &SchemaRef {
        &self.points.schema
    }

    fn bounded(&self, column: usize) -> Option<Bounded> {
        match STANDARD.get(column) {
            Some(standard) => Some(standard.bounded()),
            None => (column == STANDARD.len()).then_some(Bounded::Word(BoundedText::Name)),
        }
    }

    fn plan(&self, request: &TableRequest<'_>) -> Result<Planned, TableError> {
        let scan: Arc<dyn Scan> = Arc::new(ChunkScan::new(&self.set, &self.points, request)?);
        Ok(scan.into())
    }
}

#[derive(Debug)]
struct Points {
    directory: PointDirectory,
    schema: SchemaRef,
    words: Vec<Option<Arc<StringArray>>>,
}

impl Points {
    fn new(set: &CaptureSet) -> Points {
        let directory = PointDirectory::new(set);
        let standard = STANDARD.iter().map(|standard| {
            (standard.field(&Default::default()), standard.dictionary(set.names()))
        });
        let own = OWN.map(|(name, column)| {
            let (ty, all) = match column {
                PointColumn::Point => (word_type(), Some(directory.point_words.clone())),
                PointColumn::InType | PointColumn::OutType => {
                    (word_type(), Some(directory.type_words.clone()))
                }
                PointColumn::InHash | PointColumn::OutHash => (DataType::Utf8, None),
            };
            (Field::new(name, ty, true), all)
        });
        let (fields, words): (Vec<Field>, Vec<_>) = standard.chain(own).unzip();
        Points { directory, schema: Arc::new(Schema::new(fields)), words }
    }
}

/// Data that entered a point, and data that left it.
struct Pair {
    entered: Option<DataIdentity>,
    left: Option<DataIdentity>,
}

impl ChunkRowSource for Points {
    fn schema(&self) -> &SchemaRef {
        &self.schema
    }

    fn dictionary(&self, column: usize) -> Option<Arc<StringArray>> {
        self.words[column].clone()
    }

    fn wanted(&self, capture: usize, source: u16, bounds: &Bounds) -> Wanted {
        let multi = self.directory.multi(capture, source);
        let kinds = self.directory.forms(capture, source).fold(0, |kinds, (id, form)| {
            if bounds.has_word(BoundedText::Name, self.directory.name(form.point)) {
                kinds | if multi { kind_bit(id) } else { u64::MAX }
            } else {
                kinds
            }
        });
        Wanted { kinds, frame_is_row: false, ts: Ts::Other }
    }

    fn append(&self, chunk: &ChunkRows<'_>, columns: &[usize], to: &mut [Builder]) -> usize {
        let values = chunk.values(chunk.rows);
        let (mut rows, mut frames, mut pairs) = (Vec::new(), Vec::new(), Vec::<Pair>::new());
        let (mut times, mut points) = (Vec::new(), Vec::new());
        self.directory.each(chunk, |row, frame, form| {
            let ts = form.at.and_then(|at| values.epoch(at, frame));
            let ins = form.ins.iter().copied().map(Some);
            let ins = ins.chain(form.ins.is_empty().then_some(None));
            for entered in ins {
                let outs = form.outs.iter().copied().map(Some);
                for left in outs.chain(form.has_implied_outs().then_some(entered)) {
                    rows.push(row);
                    frames.push(frame);
                    pairs.push(Pair { entered, left });
                    times.push(ts);
                    points.push(form.point);
                }
            }
        });
        let taken = RowsInChunk { selected: Some(&rows), ..chunk.rows };
        for (&column, builder) in columns.iter().zip(to) {
            let own = match STANDARD.get(column) {
                Some(Standard::Ts) => {
                    let mut times = times.iter();
                    builder.each(taken, |_| times.next().copied().flatten());
                    continue;
                }
                Some(standard) => {
                    chunk.standard(*standard, taken, builder);
                    continue;
                }
                None => OWN[column - STANDARD.len()].1,
            };
            let side = |pair: &Pair| match own {
                PointColumn::InType | PointColumn::InHash => pair.entered,
                _ => pair.left,
            };
            let mut all = pairs.iter().map(side);
            match own {
                PointColumn::Point => {
                    builder.extend(points.iter().map(|&point| self.directory.point_key(point)));
                }
                PointColumn::InType | PointColumn::OutType => {
                    builder.each(taken, |_| all.next().flatten().map(|identity| identity.type_key));
                }
                PointColumn::InHash | PointColumn::OutHash => {
                    for (frame, identity) in frames.iter().zip(all) {
                        let bytes = identity
                            .and_then(|identity| Some((identity.bytes(frame)?, identity.width)));
                        let text = bytes.map(|(bytes, width)| hex::encode(&bytes[..width]));
                        builder.text(text.as_deref().map(str::as_bytes));
                    }
                }
            }
        }
        rows.len()
    }
}
