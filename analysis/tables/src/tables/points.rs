//! `points`: what entered and left each point, one row for each pair of them.

use std::sync::Arc;

use arrow_array::StringArray;
use arrow_schema::{DataType, Field, Schema, SchemaRef};

use super::named::Named;
use crate::bounds::{Bounded, Bounds, Word};
use crate::builder::{Builder, word_type};
use crate::causality::{Identity, Known, hex};
use crate::error::{SetError, TableError};
use crate::of_chunks::{ChunkScan, OfChunks, Ts, Wanted, kind_bit};
use crate::rows::Rows;
use crate::set::CaptureSet;
use crate::standard::{ChunkRows, STANDARD, Standard};
use crate::table::{Planned, Request, Scan, Table};

pub(super) fn make(set: &Arc<CaptureSet>) -> Result<Vec<Named>, SetError> {
    let of = Arc::new(Points::new(set));
    Ok(vec![Named::fixed("points", PointTable { set: set.clone(), of })])
}

/// A column behind the standard ones.
#[derive(Debug, Clone, Copy)]
enum Column {
    Point,
    InType,
    InHash,
    OutType,
    OutHash,
}

const OWN: [(&str, Column); 5] = [
    ("point", Column::Point),
    ("in_type", Column::InType),
    ("in_hash", Column::InHash),
    ("out_type", Column::OutType),
    ("out_hash", Column::OutHash),
];

#[derive(Debug)]
struct PointTable {
    set: Arc<CaptureSet>,
    of: Arc<Points>,
}

impl Table for PointTable {
    fn schema(&self) -> &SchemaRef {
        &self.of.schema
    }

    fn bounded(&self, column: usize) -> Option<Bounded> {
        match STANDARD.get(column) {
            Some(standard) => Some(standard.bounded()),
            None => (column == STANDARD.len()).then_some(Bounded::Word(Word::Name)),
        }
    }

    fn plan(&self, request: &Request<'_>) -> Result<Planned, TableError> {
        let scan: Arc<dyn Scan> = Arc::new(ChunkScan::new(&self.set, &self.of, request)?);
        Ok(scan.into())
    }
}

#[derive(Debug)]
struct Points {
    known: Known,
    schema: SchemaRef,
    words: Vec<Option<Arc<StringArray>>>,
}

impl Points {
    fn new(set: &CaptureSet) -> Points {
        let known = Known::new(set);
        let standard =
            STANDARD.iter().map(|it| (it.field(&Default::default()), it.dictionary(set.names())));
        let own = OWN.map(|(name, column)| {
            let (ty, all) = match column {
                Column::Point => (word_type(), Some(known.point_words.clone())),
                Column::InType | Column::OutType => (word_type(), Some(known.type_words.clone())),
                Column::InHash | Column::OutHash => (DataType::Utf8, None),
            };
            (Field::new(name, ty, true), all)
        });
        let (fields, words): (Vec<Field>, Vec<_>) = standard.chain(own).unzip();
        Points { known, schema: Arc::new(Schema::new(fields)), words }
    }
}

/// What entered, and what left.
type Pair = (Option<Identity>, Option<Identity>);

impl OfChunks for Points {
    fn schema(&self) -> &SchemaRef {
        &self.schema
    }

    fn dictionary(&self, column: usize) -> Option<Arc<StringArray>> {
        self.words[column].clone()
    }

    fn wanted(&self, capture: usize, source: u16, bounds: &Bounds) -> Wanted {
        let multi = self.known.multi(capture, source);
        let kinds = self.known.forms(capture, source).fold(0, |kinds, (id, form)| {
            match bounds.has_word(Word::Name, self.known.name(form.point)) {
                true => kinds | if multi { kind_bit(id) } else { u64::MAX },
                false => kinds,
            }
        });
        Wanted { kinds, each: false, ts: Ts::Other }
    }

    fn append(&self, chunk: &ChunkRows<'_>, columns: &[usize], to: &mut [Builder]) -> usize {
        let from = chunk.from(chunk.rows);
        let (mut rows, mut frames, mut pairs) = (Vec::new(), Vec::new(), Vec::<Pair>::new());
        let (mut times, mut points) = (Vec::new(), Vec::new());
        self.known.each(chunk, |row, frame, form| {
            let ts = form.at.and_then(|at| from.epoch(at, frame));
            let ins = form.ins.iter().copied().map(Some);
            let ins = ins.chain(form.ins.is_empty().then_some(None));
            for entered in ins {
                let outs = form.outs.iter().copied().map(Some);
                for left in outs.chain(form.implied().then_some(entered)) {
                    rows.push(row);
                    frames.push(frame);
                    pairs.push((entered, left));
                    times.push(ts);
                    points.push(form.point);
                }
            }
        });
        let taken = Rows { which: Some(&rows), ..chunk.rows };
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
                Column::InType | Column::InHash => pair.0,
                _ => pair.1,
            };
            let mut all = pairs.iter().map(side);
            match own {
                Column::Point => {
                    builder.extend(points.iter().map(|&point| self.known.point_key(point)));
                }
                Column::InType | Column::OutType => {
                    builder.each(taken, |_| all.next().flatten().map(|it| it.word));
                }
                Column::InHash | Column::OutHash => {
                    for (frame, identity) in frames.iter().zip(all) {
                        let bytes = identity.and_then(|it| Some((it.bytes(frame)?, it.width)));
                        let text = bytes.map(|(bytes, width)| hex(&bytes[..width]));
                        builder.text(text.as_deref().map(str::as_bytes));
                    }
                }
            }
        }
        rows.len()
    }
}
