//! Events of a trace.

use std::hash::{DefaultHasher, Hash, Hasher};
use std::io;

use arrow_array::cast::AsArray;
use arrow_array::types::{Int32Type, Int64Type};
use arrow_array::{Array, ArrayRef, BooleanArray, PrimitiveArray, RecordBatch};
use arrow_schema::Field;

use crate::frame_kind::{EventColumns, IntervalValues, Longs};
use crate::values::{Column, FieldValue, WordColumn, unexpected};

/// The columns that rows of all kinds begin with; fields follow.
///
/// `begin` (INT64, ns since the epoch) is never NULL, and rows ascend by it. `dur` (INT64, ns) is NULL
/// if there is no interval. `placed`: whether the time is the row's own. `first`: whether the frame
/// has no row of another kind before this one.
pub const COLUMNS: [&str; 12] = [
    "begin", "dur", "placed", "first", "capture", "buffer", "segment", "ring", "seqno", "host",
    "pid", "tid",
];

/// Metadata key of a counter's value that may fall.
pub(crate) const MAY_FALL: &str = "may_fall";

/// The format of a trace.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum TraceFormat {
    /// Packets of Perfetto.
    Perfetto,
    /// JSON of Chrome's trace viewer.
    Chrome,
    /// The Common Trace Format.
    Ctf,
    /// The protocol of OpenTelemetry.
    Otlp,
}

/// The role of the rows of a kind.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum EventRole {
    /// Frames, or one interval of each.
    Frames,
    /// Spans with begin and end. They belong to no thread: each kind has a track in its process.
    Spans,
    /// States of threads, as the kernel recorded them. Each thread has a track for its states.
    States,
    /// Frames whose kind is missing in their schema.
    Unknown,
    /// Values of one counter of a whole process, in the only field.
    Counter,
    /// Buckets of one histogram, at each reading.
    Histogram,
    /// Missing frames: the fields are `count`, `cause` and, in ns since the epoch, `until`.
    Missing,
    /// Causes and effects: a row has the time of the cause; the fields identify the effect,
    /// `dst_capture dst_segment dst_ring dst_seqno`, and the edge, `kind type`.
    Edge,
}

/// Attributes of a field in its frame file.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Marks {
    /// `@name`: the value names the event.
    pub name: bool,
    /// `@flow`: events with equal values belong together.
    pub flow: bool,
    /// `@counter`: the values form a curve.
    pub counter: bool,
}

impl Marks {
    /// Reads the attributes from the metadata of a field.
    pub fn from_field(field: &Field) -> Marks {
        let said = field.metadata().get("attributes");
        let has = |name| said.is_some_and(|text| text.split(' ').any(|piece| piece == name));
        Marks { name: has("name"), flow: has("flow"), counter: has("counter") }
    }
}

/// Schema of events with the same fields.
#[derive(Debug, Clone)]
pub struct EventSchema {
    /// Role of the events.
    pub what: EventRole,
    /// Buffer of the events; empty if they are from several.
    pub buffer: String,
    /// Name of the frame.
    pub frame: String,
    /// The interval that gives begin and length of rows.
    pub interval: Option<String>,
    /// The columns after [`COLUMNS`].
    pub fields: Vec<Field>,
    /// Name of the sequence number; differs if a field is called `seqno`.
    pub seqno: String,
}

impl EventSchema {
    /// Name of the events.
    pub(crate) fn label(&self) -> String {
        match (&self.interval, self.what) {
            (Some(interval), _) => format!("{}.{interval}", self.frame),
            (
                None,
                EventRole::Frames
                | EventRole::Spans
                | EventRole::States
                | EventRole::Counter
                | EventRole::Histogram,
            ) => self.frame.clone(),
            (None, EventRole::Unknown) => "unknown frame".to_owned(),
            (None, EventRole::Missing) => "missing frames".to_owned(),
            (None, EventRole::Edge) => "edge".to_owned(),
        }
    }

    /// Index of the first field with that attribute.
    pub(crate) fn marked(&self, mark: impl Fn(Marks) -> bool) -> Option<usize> {
        self.fields.iter().position(|field| mark(Marks::from_field(field)))
    }

    /// Indices of the keys of a chain, if the events are frames of one.
    pub(crate) fn chain(&self) -> Option<Vec<usize>> {
        let role = |field: &Field| field.metadata().get("role").cloned().unwrap_or_default();
        let is_chain =
            self.what == EventRole::Frames && self.fields.iter().any(|field| role(field) == "step");
        let keys = || (0..self.fields.len()).filter(|&index| role(&self.fields[index]) == "key");
        is_chain.then(|| keys().collect())
    }

    /// The hashes that enter and leave, if the events are points: index and hash type of each field.
    pub(crate) fn identities(&self) -> Vec<(usize, String)> {
        let fields = self.fields.iter().enumerate().filter(|_| self.what == EventRole::Frames);
        let of = |(at, field): (usize, &Field)| {
            let types = ["in", "out"].map(|side| field.metadata().get(side).cloned());
            types.into_iter().flatten().map(move |text| (at, text)).collect::<Vec<_>>()
        };
        let mut all: Vec<_> = fields.flat_map(of).collect();
        all.dedup();
        all
    }

    /// Whether the frames are begins or ends of spans.
    pub(crate) fn is_end_of_span(&self) -> bool {
        let is_edge =
            |field: &Field| field.metadata().get("role").is_some_and(|metadata| metadata == "edge");
        self.what == EventRole::Frames && self.fields.iter().any(is_edge)
    }

    /// Whether each row is a frame of a known kind.
    pub(crate) fn is_of_frames(&self) -> bool {
        matches!(self.what, EventRole::Frames | EventRole::Spans)
    }

    /// Whether the frames may have edges.
    pub(crate) fn may_have_edges(&self) -> bool {
        self.is_end_of_span() || self.chain().is_some() || !self.identities().is_empty()
    }

    /// Whether the events are those of a counter that may fall.
    pub(crate) fn may_fall(&self) -> bool {
        self.fields.iter().any(|field| field.metadata().contains_key(MAY_FALL))
    }

    /// Id of the flow through the points that share a hash, within a boot.
    pub(crate) fn flow_of_point(
        of: &(usize, String),
        rows: &EventRows,
        row: usize,
        boot: &str,
    ) -> Option<u64> {
        let mut hash = DefaultHasher::new();
        ("point", boot, &of.1).hash(&mut hash);
        match rows.fields.get(of.0)?.get(row)? {
            FieldValue::Uint(value) => value.hash(&mut hash),
            FieldValue::Bytes(bytes) => bytes.hash(&mut hash),
            _ => return None,
        }
        Some(hash.finish().max(1))
    }

    /// Id of the flow through the steps of a chain with these `keys`, within a boot.
    pub(crate) fn flow_of_chain(
        &self,
        keys: &[usize],
        rows: &EventRows,
        row: usize,
        boot: &str,
    ) -> u64 {
        let mut hash = DefaultHasher::new();
        (boot, &self.buffer, &self.frame).hash(&mut hash);
        for value in keys.iter().map(|&key| rows.fields.get(key)?.get(row)) {
            match value {
                None => 0.hash(&mut hash),
                Some(FieldValue::Int(value)) => i128::from(value).hash(&mut hash),
                Some(FieldValue::Uint(value)) => i128::from(value).hash(&mut hash),
                Some(FieldValue::Bool(value)) => value.hash(&mut hash),
                Some(FieldValue::Word(text) | FieldValue::Text(text)) => text.hash(&mut hash),
                Some(FieldValue::Bytes(bytes)) => bytes.hash(&mut hash),
                // Keys are never floats.
                Some(FieldValue::Float(_)) => {}
            }
        }
        // 0 means no flow.
        hash.finish().max(1)
    }

    /// Name of the curve of a field.
    pub(crate) fn curve(&self, field: usize) -> String {
        match self.what {
            EventRole::Counter | EventRole::Histogram => format!("{}.{}", self.buffer, self.frame),
            _ => format!("{}.{}", self.frame, self.fields[field].name()),
        }
    }

    /// Indices of the fields that are curves.
    pub(crate) fn counters(&self) -> Vec<usize> {
        if self.what == EventRole::Counter {
            return vec![0];
        }
        let is_one = |index: &usize| {
            Marks::from_field(&self.fields[*index]).counter
                && self.fields[*index].data_type().is_numeric()
        };
        (0..self.fields.len()).filter(is_one).collect()
    }
}

/// Rows of one kind.
#[derive(Debug, Clone)]
pub struct EventRows {
    begin: Longs,
    /// None if NULL in all rows.
    dur: Option<Longs>,
    /// None if true in all rows.
    placed: Option<BooleanArray>,
    /// None if true in all rows.
    first: Option<BooleanArray>,
    pub(crate) capture: WordColumn,
    pub(crate) buffer: WordColumn,
    pub(crate) segment: WordColumn,
    ring: PrimitiveArray<Int32Type>,
    seqno: PrimitiveArray<Int64Type>,
    pub(crate) host: WordColumn,
    pid: PrimitiveArray<Int32Type>,
    tid: PrimitiveArray<Int32Type>,
    pub(crate) fields: Vec<Column>,
}

impl EventRows {
    /// The rows of a batch whose columns are [`COLUMNS`] and fields.
    ///
    /// # Errors
    /// A column is missing or has another type.
    pub fn from_batch(batch: &RecordBatch) -> io::Result<EventRows> {
        let columns = batch.columns();
        if columns.len() < COLUMNS.len() {
            return Err(io::Error::new(io::ErrorKind::InvalidData, "columns are missing"));
        }
        let long = |at: usize| {
            let column = columns[at].as_primitive_opt::<Int64Type>();
            column.cloned().ok_or_else(|| unexpected(columns[at].data_type()))
        };
        let int = |at: usize| {
            let column = columns[at].as_primitive_opt::<Int32Type>();
            column.cloned().ok_or_else(|| unexpected(columns[at].data_type()))
        };
        let bool = |at: usize| {
            let column = columns[at].as_boolean_opt();
            column.cloned().ok_or_else(|| unexpected(columns[at].data_type()))
        };
        let words = |at: usize| WordColumn::from_column(&columns[at]);
        Ok(EventRows {
            begin: long(0)?,
            dur: Some(long(1)?),
            placed: Some(bool(2)?),
            first: Some(bool(3)?),
            capture: words(4)?,
            buffer: words(5)?,
            segment: words(6)?,
            ring: int(7)?,
            seqno: long(8)?,
            host: words(9)?,
            pid: int(10)?,
            tid: int(11)?,
            fields: columns[COLUMNS.len()..]
                .iter()
                .map(Column::from_column)
                .collect::<Result<_, _>>()?,
        })
    }

    /// Events from a batch of frames: those with `interval`, or those without any. Events without a
    /// time get `start`.
    pub(crate) fn of_frames(
        batch: &RecordBatch,
        layout: &EventColumns,
        (interval, start): (Option<usize>, i64),
    ) -> io::Result<EventRows> {
        let (columns, times) = (batch.columns(), layout.times.times(batch));
        let rows = 0..batch.num_rows();
        let of_rows = |what: &dyn Fn(usize) -> bool| {
            BooleanArray::from_iter(rows.clone().map(|row| Some(what(row))))
        };
        let (begin, dur, placed) = match interval {
            Some(at) => {
                let IntervalValues { start, length } = times.intervals[at].clone();
                (start, Some(length), None)
            }
            None => {
                let begin = rows.clone().map(|row| times.begin(None, row, start));
                let placed = of_rows(&|row| times.time(row).is_some());
                (Longs::from_iter_values(begin), None, Some(placed))
            }
        };
        let first = interval.filter(|at| *at > 0);
        let first = first.map(|at| of_rows(&|row| !times.has_any(at, row)));
        let [capture, buffer, segment, ring, seqno, host, pid, tid] =
            layout.identity.map(|at| &columns[at]);
        let int = |column: &ArrayRef| {
            let ints = column.as_primitive_opt::<Int32Type>();
            ints.cloned().ok_or_else(|| unexpected(column.data_type()))
        };
        let numbers = seqno.as_primitive_opt::<Int64Type>();
        let fields = layout.fields.iter().map(|&at| Column::from_column(&columns[at]));
        Ok(EventRows {
            begin,
            dur,
            placed,
            first,
            capture: WordColumn::from_column(capture)?,
            buffer: WordColumn::from_column(buffer)?,
            segment: WordColumn::from_column(segment)?,
            ring: int(ring)?,
            seqno: numbers.cloned().ok_or_else(|| unexpected(seqno.data_type()))?,
            host: WordColumn::from_column(host)?,
            pid: int(pid)?,
            tid: int(tid)?,
            fields: fields.collect::<Result<_, _>>()?,
        })
    }

    /// Number of rows.
    pub fn len(&self) -> usize {
        self.begin.len()
    }

    /// Whether there are no rows.
    pub fn is_empty(&self) -> bool {
        self.begin.is_empty()
    }

    /// Begin of a row, ns since the epoch, at least 0: formats have no earlier times.
    pub fn begin(&self, row: usize) -> i64 {
        if self.begin.is_valid(row) { self.begin.value(row).max(0) } else { 0 }
    }

    /// Length of a row in ns.
    pub fn dur(&self, row: usize) -> Option<i64> {
        let dur = self.dur.as_ref().filter(|dur| dur.is_valid(row))?.value(row);
        (dur >= 0).then_some(dur)
    }

    /// Whether a row has a time of its own.
    pub fn has_own_time(&self, row: usize) -> bool {
        self.placed.as_ref().is_none_or(|placed| placed.is_valid(row) && placed.value(row))
    }

    pub(crate) fn end(&self, row: usize) -> i64 {
        self.begin(row).saturating_add(self.dur(row).unwrap_or(0))
    }

    pub(crate) fn is_first_of_frame(&self, row: usize) -> bool {
        self.first.as_ref().is_none_or(|first| first.is_valid(row) && first.value(row))
    }

    pub(crate) fn ring(&self, row: usize) -> Option<i32> {
        self.ring.is_valid(row).then(|| self.ring.value(row))
    }

    /// Sequence number of a frame in its ring.
    pub fn seqno(&self, row: usize) -> Option<i64> {
        self.seqno.is_valid(row).then(|| self.seqno.value(row))
    }

    pub(crate) fn pid(&self, row: usize) -> Option<i32> {
        self.pid.is_valid(row).then(|| self.pid.value(row))
    }

    pub(crate) fn tid(&self, row: usize) -> Option<i32> {
        self.tid.is_valid(row).then(|| self.tid.value(row))
    }

    /// Capture and segment of a row.
    pub fn origin(&self, row: usize) -> (Option<&str>, Option<&str>) {
        (self.capture.get(row), self.segment.get(row))
    }

    /// Number of missing frames, and the cause.
    pub(crate) fn missing(&self, row: usize) -> (i64, &str) {
        let count = match self.fields.first().and_then(|field| field.get(row)) {
            Some(FieldValue::Int(count)) => count,
            _ => 0,
        };
        let cause = match self.fields.get(1).and_then(|field| field.get(row)) {
            Some(FieldValue::Word(cause) | FieldValue::Text(cause)) => cause,
            _ => "",
        };
        (count, cause)
    }

    /// Number of missing frames and cause, as text.
    pub(crate) fn missing_in_words(&self, row: usize) -> String {
        match self.missing(row) {
            (count, cause) if is_loss(cause) => format!("lost {count} ({cause})"),
            (count, cause) => format!("{count} {}", cause.replace('_', " ")),
        }
    }
}

/// Whether frames that are missing for this cause are lost. Unattended, left out and absent frames are
/// not: no session was attached, `--where` did not select them, or another capture has them.
pub(crate) fn is_loss(cause: &str) -> bool {
    !["unattended", "left_out", "absent"].contains(&cause)
}

/// Two clocks, read at one moment, in ns.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ClockPair {
    /// CLOCK_MONOTONIC.
    pub monotonic: u64,
    /// CLOCK_REALTIME.
    pub realtime: u64,
}

/// A writer of a trace.
pub trait Trace {
    /// Announces the rows of the next events of a kind.
    fn turn_to(&mut self, kind: usize, rows: &EventRows);

    /// Writes `row` as an event of kind number `kind`.
    ///
    /// # Errors
    /// Writing to the output fails.
    fn event(&mut self, kind: usize, rows: &EventRows, row: usize) -> io::Result<()>;

    /// Number of links that are missing because too many spans or edges were waiting.
    fn dropped_links(&self) -> u64 {
        0
    }

    /// Writes the remaining events.
    ///
    /// # Errors
    /// Writing to the output fails.
    fn finish(&mut self) -> io::Result<()>;
}
