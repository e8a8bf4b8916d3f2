//! The columns by which frames are paired, and those of links.

use std::cmp::Ordering;
use std::sync::Arc;

use arrow_array::cast::AsArray;
use arrow_array::types::{Int32Type, Int64Type, TimestampNanosecondType};
use arrow_array::{Array, DictionaryArray, Int32Array, RecordBatch, StringArray};
use arrow_schema::{Field, Schema, SchemaRef};

use crate::pair_pass::{PairColumn, PairPass};

/// The columns of links: the time of the first of the two frames, its identity, and that of the second.
const LINK_COLUMNS: [&str; 9] = [
    "ts",
    "capture",
    "segment",
    "ring",
    "seqno",
    "end_capture",
    "end_segment",
    "end_ring",
    "end_seqno",
];

/// Indices of the columns by which frames are paired.
#[derive(Debug, Clone, Copy)]
pub(crate) struct HalfColumns {
    pub group: usize,
    pub key: usize,
    pub mark: usize,
    pub ts: usize,
    pub ring: usize,
    pub seqno: usize,
    pub segment: usize,
    pub capture: usize,
}

impl HalfColumns {
    /// The pairs with both frames, by [`LINK_COLUMNS`].
    pub fn links(&self, fifo: Vec<bool>, steps: bool, read: &SchemaRef) -> PairPass {
        let names = [self.capture, self.segment, self.ring, self.seqno];
        let own = std::iter::once(self.ts).chain(names).map(PairColumn::Begin);
        let columns: Vec<PairColumn> = own.chain(names.map(PairColumn::End)).collect();
        let field = |(name, column): (&str, &PairColumn)| {
            let (PairColumn::Begin(of) | PairColumn::End(of)) = column else { return None };
            Some(Field::new(name, read.field(*of).data_type().clone(), true))
        };
        let fields = LINK_COLUMNS.into_iter().zip(&columns).filter_map(field);
        let schema = Arc::new(Schema::new(fields.collect::<Vec<_>>()));
        let HalfColumns { group, key, mark, ts, .. } = *self;
        PairPass { group, key, mark, ts, fifo, columns, schema, closed: true, steps, missing: None }
    }
}

/// The columns by which frames are paired.
pub(super) struct HalfValues<'a> {
    pub groups: &'a Int32Array,
    keys: &'a arrow_array::FixedSizeBinaryArray,
    pub marks: &'a Int32Array,
    times: &'a arrow_array::TimestampNanosecondArray,
    rings: &'a Int32Array,
    seqnos: &'a arrow_array::Int64Array,
    segments: &'a DictionaryArray<Int32Type>,
    captures: &'a DictionaryArray<Int32Type>,
}

impl<'a> HalfValues<'a> {
    pub fn new(batch: &'a RecordBatch, columns: &HalfColumns) -> HalfValues<'a> {
        let int = |column: usize| batch.column(column).as_primitive::<Int32Type>();
        HalfValues {
            groups: int(columns.group),
            keys: batch.column(columns.key).as_fixed_size_binary(),
            marks: int(columns.mark),
            times: batch.column(columns.ts).as_primitive::<TimestampNanosecondType>(),
            rings: int(columns.ring),
            seqnos: batch.column(columns.seqno).as_primitive::<Int64Type>(),
            segments: batch.column(columns.segment).as_dictionary(),
            captures: batch.column(columns.capture).as_dictionary(),
        }
    }

    pub fn ts(&self, row: usize) -> Option<i64> {
        self.times.is_valid(row).then(|| self.times.value(row))
    }

    pub fn group_and_key(&self, row: usize) -> (i32, &[u8]) {
        (self.groups.value(row), self.keys.value(row))
    }

    /// Pairing order: by group and key, then by time, then by the columns that identify a frame.
    pub fn compare(&self, a: usize, b: usize) -> Ordering {
        let number = |row: usize| {
            let ring = self.rings.is_valid(row).then(|| self.rings.value(row));
            (self.ts(row), ring, self.seqnos.value(row))
        };
        let names = |row: usize| (word(self.segments, row), word(self.captures, row));
        let by_key = self.group_and_key(a).cmp(&self.group_and_key(b));
        by_key.then_with(|| number(a).cmp(&number(b))).then_with(|| names(a).cmp(&names(b)))
    }
}

fn word(column: &DictionaryArray<Int32Type>, row: usize) -> Option<&str> {
    let words: &StringArray = column.values().as_string();
    column.key(row).map(|key| words.value(key))
}
