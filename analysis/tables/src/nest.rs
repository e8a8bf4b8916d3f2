//! Nesting of slices: depth, parent, and the time that no child covers.
//!
//! The parent of a slice is the innermost slice of its thread that contains it, both ends included. Slices
//! that overlap without one containing the other are siblings. If slices are sorted by start, longest first,
//! a single stack of open slices suffices.

use std::collections::BTreeMap;
use std::sync::Arc;

use arrow_array::cast::AsArray;
use arrow_array::types::{Int32Type, Int64Type, TimestampNanosecondType};
use arrow_array::{Array, ArrayRef, DictionaryArray, Int32Array, Int64Array, RecordBatch};
use arrow_array::{RecordBatchOptions, StringArray};
use arrow_schema::SchemaRef;

use crate::error::TableError;
use crate::set::{CaptureSet, OwnerKeys};
use crate::table::Runner;

/// A column that nesting computes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Nested {
    Depth,
    ParentBuffer,
    ParentSegment,
    ParentRing,
    ParentSeqno,
    SelfTime,
}

/// An output column.
#[derive(Debug, Clone, Copy)]
pub(crate) enum NestColumn {
    /// The input column with this index.
    Input(usize),
    Nested(Nested),
}

/// The owners of rings, which identify parents.
#[derive(Debug)]
pub(crate) struct Parents {
    buffers: Arc<StringArray>,
    segments: Arc<StringArray>,
    owners: Vec<ParentOwner>,
}

/// The ring of a parent.
#[derive(Debug, Clone, Copy)]
struct ParentOwner {
    /// Key of the buffer.
    buffer: i32,
    /// Key of the segment.
    segment: i32,
    ring: Option<i32>,
}

impl Parents {
    pub fn new(set: &CaptureSet) -> Parents {
        let names = set.names();
        let (buffers, segments) = (names.buffers.clone(), names.segments.clone());
        Parents { buffers, segments, owners: Vec::new() }
    }

    /// Adds an owner; returns its number.
    pub fn add(&mut self, owner: &OwnerKeys) -> i32 {
        let OwnerKeys { buffer, segment, ring, .. } = *owner;
        self.owners.push(ParentOwner { buffer, segment, ring });
        self.owners.len() as i32 - 1
    }
}

/// A pass that nests slices: indices of its input columns, and its output columns.
#[derive(Debug, Clone)]
pub(crate) struct NestPass {
    pub thread: usize,
    pub start: usize,
    pub dur: usize,
    pub seqno: usize,
    pub owner: usize,
    pub columns: Vec<NestColumn>,
    pub schema: SchemaRef,
    pub parents: Arc<Parents>,
}

impl NestPass {
    pub fn runner(&self) -> Box<dyn Runner> {
        let (pass, thread) = (self.clone(), None);
        Box::new(NestRunner { pass, thread, open: Vec::new(), waiting: BTreeMap::new(), next: 0 })
    }
}

/// A slice that may still have children.
#[derive(Debug, Clone, Copy)]
struct OpenParent {
    /// Number of its batch.
    batch: u64,
    /// Row in the batch.
    row: usize,
    end: i64,
    /// All later children end after this time.
    covered_to: i64,
    /// Time that no child covers so far, in ns.
    uncovered: i64,
    frame: ParentFrame,
}

/// The frame of a parent.
#[derive(Debug, Clone, Copy)]
struct ParentFrame {
    /// Number of the owner of its ring.
    owner: i32,
    seqno: Option<i64>,
}

/// A batch in which slices may still be open.
#[derive(Debug)]
struct Waiting {
    batch: RecordBatch,
    /// Number of open slices.
    open: usize,
    /// For each row, like `self_time` and `parent`.
    depth: Vec<i32>,
    self_time: Vec<i64>,
    parent: Vec<Option<ParentFrame>>,
}

/// Nests the slices of one thread after the other.
#[derive(Debug)]
struct NestRunner {
    pass: NestPass,
    thread: Option<i64>,
    open: Vec<OpenParent>,
    /// Batches with an open slice, by number.
    waiting: BTreeMap<u64, Waiting>,
    /// Number of the next batch.
    next: u64,
}

impl Runner for NestRunner {
    fn push(&mut self, batch: RecordBatch) -> Result<Vec<RecordBatch>, TableError> {
        let rows = batch.num_rows();
        let threads = batch.column(self.pass.thread).as_primitive::<Int64Type>().clone();
        let starts =
            batch.column(self.pass.start).as_primitive::<TimestampNanosecondType>().clone();
        let lengths = batch.column(self.pass.dur).as_primitive::<Int64Type>().clone();
        let seqnos = batch.column(self.pass.seqno).as_primitive::<Int64Type>().clone();
        let owners = batch.column(self.pass.owner).as_primitive::<Int32Type>().clone();
        let number = self.next;
        self.next += 1;
        let (depth, self_time) = (vec![0; rows], vec![0; rows]);
        let waiting = Waiting { batch, open: 0, depth, self_time, parent: vec![None; rows] };
        self.waiting.insert(number, waiting);
        for row in 0..rows {
            let thread = threads.value(row);
            if self.thread.replace(thread) != Some(thread) {
                self.close_all();
            }
            let (start, length) = (starts.value(row), lengths.value(row));
            let end = start.saturating_add(length);
            // A slice with a negative length lies in another if its start does.
            while self.open.last().is_some_and(|open| open.end < end.max(start)) {
                self.close();
            }
            let depth = self.open.len() as i32;
            let parent = self.open.last_mut().map(|parent| {
                let newly_covered = end.saturating_sub(start.max(parent.covered_to)).max(0);
                parent.uncovered -= newly_covered;
                parent.covered_to = parent.covered_to.max(end);
                parent.frame
            });
            if let Some(waiting) = self.waiting.get_mut(&number) {
                waiting.depth[row] = depth;
                waiting.parent[row] = parent;
                waiting.open += 1;
            }
            let seqno = seqnos.is_valid(row).then(|| seqnos.value(row));
            self.open.push(OpenParent {
                batch: number,
                row,
                end,
                covered_to: start,
                uncovered: length,
                frame: ParentFrame { owner: owners.value(row), seqno },
            });
        }
        self.done()
    }

    fn finish(&mut self) -> Result<Vec<RecordBatch>, TableError> {
        self.close_all();
        self.done()
    }
}

impl NestRunner {
    fn close_all(&mut self) {
        while !self.open.is_empty() {
            self.close();
        }
    }

    /// Closes the innermost slice: no later slice can lie in it.
    fn close(&mut self) {
        let Some(open) = self.open.pop() else { return };
        if let Some(waiting) = self.waiting.get_mut(&open.batch) {
            waiting.self_time[open.row] = open.uncovered;
            waiting.open -= 1;
        }
    }

    /// The batches without an open slice. A long slice delays its own batch only.
    fn done(&mut self) -> Result<Vec<RecordBatch>, TableError> {
        let done = self.waiting.extract_if(.., |_, waiting| waiting.open == 0);
        done.map(|(_, waiting)| self.pass.batch(&waiting)).collect()
    }
}

impl NestPass {
    fn batch(&self, waiting: &Waiting) -> Result<RecordBatch, TableError> {
        let column = |column: &NestColumn| match *column {
            NestColumn::Input(index) => Ok(waiting.batch.column(index).clone()),
            NestColumn::Nested(nested) => self.nested(nested, waiting),
        };
        let columns = self.columns.iter().map(column).collect::<Result<Vec<_>, _>>()?;
        let rows = Some(waiting.batch.num_rows());
        let options = RecordBatchOptions::new().with_row_count(rows);
        Ok(RecordBatch::try_new_with_options(self.schema.clone(), columns, &options)?)
    }

    fn nested(&self, nested: Nested, waiting: &Waiting) -> Result<ArrayRef, TableError> {
        let parents = waiting.parent.iter();
        let owner = |parent: &Option<ParentFrame>| {
            self.parents.owners.get((*parent)?.owner as usize).copied()
        };
        Ok(match nested {
            Nested::Depth => Arc::new(Int32Array::from(waiting.depth.clone())),
            Nested::SelfTime => Arc::new(Int64Array::from(waiting.self_time.clone())),
            Nested::ParentRing => {
                Arc::new(parents.map(|parent| owner(parent)?.ring).collect::<Int32Array>())
            }
            Nested::ParentSeqno => {
                Arc::new(parents.map(|parent| (*parent)?.seqno).collect::<Int64Array>())
            }
            Nested::ParentBuffer => {
                let keys: Int32Array = parents.map(|parent| Some(owner(parent)?.buffer)).collect();
                Arc::new(DictionaryArray::try_new(keys, self.parents.buffers.clone())?)
            }
            Nested::ParentSegment => {
                let keys: Int32Array = parents.map(|parent| Some(owner(parent)?.segment)).collect();
                Arc::new(DictionaryArray::try_new(keys, self.parents.segments.clone())?)
            }
        })
    }
}

#[cfg(test)]
mod tests {
    use arrow_array::TimestampNanosecondArray;
    use arrow_schema::{DataType, Field, Schema};

    use super::*;

    fn runner() -> Box<dyn Runner> {
        let field = |name: &str, ty| Field::new(name, ty, true);
        let schema = Schema::new(vec![
            field("seqno", DataType::Int64),
            field("depth", DataType::Int32),
            field("parent", DataType::Int64),
            field("self", DataType::Int64),
        ]);
        let nested = [Nested::Depth, Nested::ParentSeqno, Nested::SelfTime].map(NestColumn::Nested);
        let columns = [NestColumn::Input(3)].into_iter().chain(nested).collect();
        let words = Arc::new(StringArray::from(vec![""]));
        let (buffers, segments) = (words.clone(), words);
        let owner = ParentOwner { buffer: 0, segment: 0, ring: Some(0) };
        let parents = Parents { buffers, segments, owners: vec![owner] };
        let (schema, parents) = (Arc::new(schema), Arc::new(parents));
        NestPass { thread: 0, start: 1, dur: 2, seqno: 3, owner: 4, columns, schema, parents }
            .runner()
    }

    /// Thread, start, end.
    type Slice = (i64, i64, i64);

    fn batch(slices: &[Slice], first: i64) -> RecordBatch {
        let count = slices.len() as i64;
        let columns: Vec<(&str, ArrayRef)> = vec![
            ("thread", Arc::new(Int64Array::from_iter_values(slices.iter().map(|slice| slice.0)))),
            (
                "ts",
                Arc::new(TimestampNanosecondArray::from_iter_values(
                    slices.iter().map(|slice| slice.1),
                )),
            ),
            (
                "dur",
                Arc::new(Int64Array::from_iter_values(
                    slices.iter().map(|slice| slice.2 - slice.1),
                )),
            ),
            ("seqno", Arc::new(Int64Array::from_iter_values(first..first + count))),
            ("owner", Arc::new(Int32Array::from_iter_values(slices.iter().map(|_| 0)))),
        ];
        RecordBatch::try_from_iter(columns).unwrap()
    }

    /// Number, depth, number of the parent, self: sorted by number.
    fn nested(slices: &[Slice], each: usize) -> Vec<(i64, i32, Option<i64>, i64)> {
        let mut runner = runner();
        let mut out = Vec::new();
        for (at, part) in slices.chunks(each).enumerate() {
            out.extend(runner.push(batch(part, (at * each) as i64)).unwrap());
        }
        out.extend(runner.finish().unwrap());
        let mut rows: Vec<_> = out
            .iter()
            .flat_map(|batch| {
                let long = |at: usize| batch.column(at).as_primitive::<Int64Type>();
                let (seqno, parent, own) = (long(0), long(2), long(3));
                let depth = batch.column(1).as_primitive::<Int32Type>();
                (0..batch.num_rows()).map(move |row| {
                    let parent = parent.is_valid(row).then(|| parent.value(row));
                    (seqno.value(row), depth.value(row), parent, own.value(row))
                })
            })
            .collect();
        rows.sort_unstable();
        rows
    }

    /// The expected result, by comparing all pairs.
    fn by_pairs(slices: &[Slice]) -> Vec<(i64, i32, Option<i64>, i64)> {
        let contains = |a: usize, b: usize| {
            let ((t, start, end), (u, from, to)) = (slices[a], slices[b]);
            a < b && t == u && start <= from && to.max(from) <= end
        };
        let parent = |b: usize| (0..b).rev().find(|&a| contains(a, b));
        (0..slices.len())
            .map(|b| {
                let mut depth = 0;
                let mut up = parent(b);
                while let Some(a) = up {
                    depth += 1;
                    up = parent(a);
                }
                let (_, start, end) = slices[b];
                let children: Vec<_> =
                    (b + 1..slices.len()).filter(|&c| parent(c) == Some(b)).collect();
                let covers =
                    |ns: &i64| children.iter().any(|&c| slices[c].1 <= *ns && *ns < slices[c].2);
                let covered = (start..end).filter(covers).count() as i64;
                (b as i64, depth, parent(b).map(|index| index as i64), end - start - covered)
            })
            .collect()
    }

    #[test]
    fn slices_lie_in_the_innermost_that_contains_them() {
        let slices =
            [(1, 0, 100), (1, 0, 40), (1, 10, 20), (1, 30, 60), (1, 100, 100), (1, 101, 102)];
        let expected = [
            (0, 0, None, 40),
            (1, 1, Some(0), 30),
            (2, 2, Some(1), 10),
            (3, 1, Some(0), 30),
            (4, 1, Some(0), 0),
            (5, 0, None, 1),
        ];
        for each in 1..=slices.len() {
            assert_eq!(nested(&slices, each), expected);
        }
        assert_eq!(by_pairs(&slices), expected);
        let other = [(1, 0, 10), (2, 2, 4)];
        assert_eq!(nested(&other, 2), [(0, 0, None, 10), (1, 0, None, 2)], "another thread");
    }

    #[test]
    fn one_stack_agrees_with_all_pairs() {
        let mut word = 7u64;
        let mut next = |most: u64| {
            word = word.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
            ((word >> 33) % most) as i64
        };
        for _ in 0..300 {
            let mut slices: Vec<Slice> = (0..next(30))
                .map(|_| {
                    let start = next(40);
                    (next(2), start, start + next(25))
                })
                .collect();
            slices.sort_by_key(|&(thread, start, end)| (thread, start, -end));
            assert_eq!(nested(&slices, 4), by_pairs(&slices), "{slices:?}");
        }
    }

    #[test]
    fn a_long_slice_delays_its_own_batch_only() {
        let mut runner = runner();
        assert_eq!(runner.push(batch(&[(1, 0, 1_000_000)], 0)).unwrap().len(), 0);
        let mut out = 0;
        for step in 0..1000 {
            out += runner.push(batch(&[(1, step * 10, step * 10 + 5)], step + 1)).unwrap().len();
        }
        assert_eq!(out, 999);
        assert_eq!(runner.finish().unwrap().len(), 2);
    }
}
