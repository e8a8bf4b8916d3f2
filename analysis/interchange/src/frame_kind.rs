//! Kinds of events that are frames: frames of one table, by their intervals.

use std::sync::Arc;

use arrow_array::cast::AsArray;
use arrow_array::types::{Int64Type, TimestampNanosecondType};
use arrow_array::{Array, ArrayRef, PrimitiveArray, RecordBatch};
use arrow_schema::{DataType, Field};
use ppt_query::datafusion::logical_expr::{Expr, lit};
use ppt_query::datafusion::prelude::ident;
use ppt_query::{Bounded, BoundedNumber, BoundedText, CaptureTable, FrameColumns, FrameTable};

/// The frames of a table: a kind of events for each interval, and one for frames without an interval.
#[derive(Debug)]
pub(crate) struct FrameKinds {
    pub frame: FrameTable,
    pub intervals: Vec<IntervalColumns>,
    /// Number of the first kind; the kinds of the other intervals follow, then the one without an
    /// interval.
    pub first: usize,
}

/// Names of the columns of a table.
pub(crate) struct ColumnNames {
    pub ts: String,
    pub drained: String,
    /// Columns of [`COLUMNS`](crate::COLUMNS) from the capture on.
    pub identity: [String; 8],
}

impl ColumnNames {
    pub fn from_table(table: &dyn CaptureTable) -> ColumnNames {
        let schema = table.schema();
        let name = |what: Bounded, known: &str| {
            let found =
                (0..schema.fields().len()).find(|&index| table.bounded(index) == Some(what));
            found.map_or(known.to_owned(), |found| schema.field(found).name().clone())
        };
        let word = |word, known| name(Bounded::Word(word), known);
        let number = |number, known| name(Bounded::Number(number), known);
        ColumnNames {
            ts: number(BoundedNumber::Ts, "ts"),
            drained: number(BoundedNumber::Drained, "drained"),
            identity: [
                word(BoundedText::Capture, "capture"),
                word(BoundedText::Buffer, "buffer"),
                word(BoundedText::Segment, "segment"),
                number(BoundedNumber::Ring, "ring"),
                number(BoundedNumber::Seqno, "seqno"),
                word(BoundedText::Host, "host"),
                number(BoundedNumber::Pid, "pid"),
                number(BoundedNumber::Tid, "tid"),
            ],
        }
    }

    pub fn seqno(&self) -> &str {
        &self.identity[4]
    }
}

/// An interval of time.
#[derive(Debug, Clone)]
pub(crate) struct IntervalColumns {
    /// Column of its length.
    pub name: String,
    /// Column of its begin.
    pub start: String,
}

impl IntervalColumns {
    /// The intervals of a table whose ends are times. CPU time has none.
    pub fn all(table: &dyn CaptureTable) -> Vec<IntervalColumns> {
        let fields = table.schema().fields();
        let said = |field: &Field, key: &str| field.metadata().get(key).cloned();
        let lengths =
            fields.iter().filter(|field| said(field, "role").as_deref() == Some("length"));
        let interval = |length: &Arc<Field>| {
            let name = said(length, "interval")?;
            let is_start = |field: &&Arc<Field>| {
                matches!(field.data_type(), DataType::Timestamp(..))
                    && said(field, "role").as_deref() == Some("start")
                    && said(field, "interval").as_ref() == Some(&name)
            };
            let mut starts = fields.iter().filter(is_start);
            let start = starts.next()?.name().clone();
            // The elements of arrays cannot be assigned to each other.
            let is_one = starts.next().is_none() && *length.data_type() == DataType::Int64;
            is_one.then(|| IntervalColumns { name: length.name().clone(), start })
        };
        lengths.filter_map(interval).collect()
    }

    /// The interval of whole spans.
    pub fn whole(spans: &FrameTable) -> Option<IntervalColumns> {
        let table = spans.table.as_ref();
        let is_dur =
            |field: &&Arc<Field>| field.metadata().get("role").is_some_and(|role| role == "dur");
        let dur = table.schema().fields().iter().find(is_dur)?;
        Some(IntervalColumns { name: dur.name().clone(), start: ColumnNames::from_table(table).ts })
    }

    /// Whether a row has the interval: same rule as [`IntervalValues::is_there`].
    pub fn is_there(&self) -> Expr {
        let there = ident(self.start.as_str()).is_not_null();
        let length = ident(self.name.as_str());
        there.and(length.clone().is_not_null()).and(length.gt_eq(lit(0i64)))
    }
}

/// The columns of events: the time at which the listener drained the frame, and the fields.
pub(crate) fn fields(table: &dyn CaptureTable) -> impl Iterator<Item = usize> + '_ {
    let is_told = |index: &usize| match table.bounded(*index) {
        None | Some(Bounded::Number(BoundedNumber::Drained)) => true,
        Some(_) => false,
    };
    (0..table.schema().fields().len()).filter(is_told)
}

/// Indices of the columns of times in batches.
#[derive(Debug)]
pub(crate) struct TimeColumns {
    ts: usize,
    drained: usize,
    /// Begin and length of each interval.
    intervals: Vec<(usize, usize)>,
}

/// Indices of columns in batches.
#[derive(Debug)]
pub(crate) struct EventColumns {
    pub times: TimeColumns,
    /// Same order as in [`ColumnNames::identity`].
    pub identity: [usize; 8],
    pub fields: Vec<usize>,
}

/// The columns of a table that are read.
struct ReadColumns<'a> {
    table: &'a dyn CaptureTable,
    columns: Vec<usize>,
}

impl ReadColumns<'_> {
    /// Index of a column among those that are read; adds it if necessary.
    fn place(&mut self, column: usize) -> usize {
        let known = self.columns.iter().position(|index| *index == column);
        known.unwrap_or_else(|| {
            self.columns.push(column);
            self.columns.len() - 1
        })
    }

    fn named(&mut self, name: &str) -> usize {
        let column = self.table.schema().index_of(name);
        self.place(column.expect("a name that the table has"))
    }

    fn times(&mut self, names: &ColumnNames, intervals: &[IntervalColumns]) -> TimeColumns {
        TimeColumns {
            ts: self.named(&names.ts),
            drained: self.named(&names.drained),
            intervals: intervals
                .iter()
                .map(|interval| (self.named(&interval.start), self.named(&interval.name)))
                .collect(),
        }
    }
}

impl FrameKinds {
    /// The kinds: number and interval of each.
    pub fn each(&self) -> impl Iterator<Item = (usize, Option<usize>)> + use<> {
        let (first, count) = (self.first, self.intervals.len());
        (0..=count).map(move |at| (first + at, (at < count).then_some(at)))
    }

    /// The columns of times.
    pub fn times(&self) -> (FrameColumns, TimeColumns) {
        let table = self.frame.table.as_ref();
        let mut chosen = ReadColumns { table, columns: Vec::new() };
        let times = chosen.times(&ColumnNames::from_table(table), &self.intervals);
        (FrameColumns { frame: self.frame.clone(), columns: chosen.columns }, times)
    }

    /// All columns of events.
    pub fn columns(&self) -> (FrameColumns, EventColumns) {
        let table = self.frame.table.as_ref();
        let (names, mut chosen) =
            (ColumnNames::from_table(table), ReadColumns { table, columns: Vec::new() });
        let times = chosen.times(&names, &self.intervals);
        let identity = std::array::from_fn(|at| chosen.named(&names.identity[at]));
        let fields = fields(table).map(|column| chosen.place(column)).collect();
        let layout = EventColumns { times, identity, fields };
        (FrameColumns { frame: self.frame.clone(), columns: chosen.columns }, layout)
    }
}

/// Integers, such as ns since the epoch.
pub(crate) type Longs = PrimitiveArray<Int64Type>;

fn longs(column: &ArrayRef) -> Longs {
    match column.data_type() {
        DataType::Timestamp(..) => {
            column.as_primitive::<TimestampNanosecondType>().reinterpret_cast()
        }
        _ => column.as_primitive().clone(),
    }
}

/// The begins and lengths of an interval in the rows of a batch.
#[derive(Debug, Clone)]
pub(crate) struct IntervalValues {
    pub start: Longs,
    pub length: Longs,
}

impl IntervalValues {
    /// Whether a row has the interval.
    #[inline]
    pub fn is_there(&self, row: usize) -> bool {
        self.start.is_valid(row) && self.length.is_valid(row) && self.length.value(row) >= 0
    }
}

/// Times of the frames of a batch.
#[derive(Debug)]
pub(crate) struct Times {
    ts: Longs,
    drained: Longs,
    pub intervals: Vec<IntervalValues>,
}

impl TimeColumns {
    /// The times of a batch.
    pub fn times(&self, batch: &RecordBatch) -> Times {
        let values = |&(start, length): &(usize, usize)| IntervalValues {
            start: longs(batch.column(start)),
            length: longs(batch.column(length)),
        };
        Times {
            ts: longs(batch.column(self.ts)),
            drained: longs(batch.column(self.drained)),
            intervals: self.intervals.iter().map(values).collect(),
        }
    }
}

impl Times {
    /// The time at which a frame was written; None if unknown.
    #[inline]
    pub fn time(&self, row: usize) -> Option<i64> {
        if self.ts.is_valid(row) {
            return Some(self.ts.value(row));
        }
        self.drained.is_valid(row).then(|| self.drained.value(row))
    }

    /// Whether a row is an event of the kind with that interval, or of the one without.
    #[inline]
    pub fn is_event(&self, interval: Option<usize>, row: usize) -> bool {
        match interval {
            Some(interval) => self.intervals[interval].is_there(row),
            None => !self.has_any(self.intervals.len(), row),
        }
    }

    /// Whether a row has one of the first `count` intervals.
    #[inline]
    pub fn has_any(&self, count: usize, row: usize) -> bool {
        self.intervals[..count].iter().any(|interval| interval.is_there(row))
    }

    /// The begin of an event; `start` if it has no time.
    #[inline]
    pub fn begin(&self, interval: Option<usize>, row: usize, start: i64) -> i64 {
        match interval {
            Some(interval) => self.intervals[interval].start.value(row),
            None => self.time(row).unwrap_or(start),
        }
    }
}
