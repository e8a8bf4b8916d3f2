//! `slices`: the intervals of time types of all buffers, nested within their threads, and the closed spans.
//! Spans belong to no thread, so they do not nest.

use std::collections::HashMap;
use std::sync::Arc;

use arrow_array::StringArray;
use arrow_schema::{DataType, Field, Schema, SchemaRef};
use ppt_capture::columns::Time;
use ppt_capture::frame_dsl::schema::{Clock, Frame, Interval, IntervalEnd};

use super::named::NamedTable;
use super::pair_planner::LinkColumn;
use super::spans::{self, Spans};
use crate::bounds::{Bounded, BoundedNumber, BoundedText, Bounds};
use crate::builder::{Builder, Dictionary, timestamp, word_type};
use crate::chunk_scan::{ChunkRowSource, ChunkScan, Ts, Wanted, kind_bit};
use crate::error::{SetError, TableError};
use crate::nest::{NestColumn, NestPass, Nested, Parents};
use crate::rows::RowsInChunk;
use crate::set::{CaptureSet, OwnerKeys};
use crate::standard::{ChunkRows, Standard};
use crate::table::{CaptureTable, Pass, Planned, Scan, Start, TableRequest};

pub(super) fn make(set: &Arc<CaptureSet>) -> Result<Vec<NamedTable>, SetError> {
    Ok(vec![NamedTable::fixed("slices", SlicesTable::new(set, spans::all(set)?))])
}

/// A column, read from frames or computed by nesting.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum SliceColumn {
    Name,
    Standard(Standard),
    /// The start of the interval.
    Start,
    Dur,
    Nested(Nested),
    /// Number of the thread in the set; not shown.
    Thread,
    /// Number of the owner of the ring in the set; not shown.
    Owner,
}

const SHOWN: [(&str, SliceColumn); 17] = [
    ("name", SliceColumn::Name),
    ("capture", SliceColumn::Standard(Standard::Capture)),
    ("buffer", SliceColumn::Standard(Standard::Buffer)),
    ("segment", SliceColumn::Standard(Standard::Segment)),
    ("ring", SliceColumn::Standard(Standard::Ring)),
    ("seqno", SliceColumn::Standard(Standard::Seqno)),
    ("host", SliceColumn::Standard(Standard::Host)),
    ("pid", SliceColumn::Standard(Standard::Pid)),
    ("tid", SliceColumn::Standard(Standard::Tid)),
    ("ts", SliceColumn::Start),
    ("dur", SliceColumn::Dur),
    ("depth", SliceColumn::Nested(Nested::Depth)),
    ("parent_buffer", SliceColumn::Nested(Nested::ParentBuffer)),
    ("parent_segment", SliceColumn::Nested(Nested::ParentSegment)),
    ("parent_ring", SliceColumn::Nested(Nested::ParentRing)),
    ("parent_seqno", SliceColumn::Nested(Nested::ParentSeqno)),
    ("self", SliceColumn::Nested(Nested::SelfTime)),
];

/// Columns that nesting needs; they are not shown.
const HIDDEN: [(&str, SliceColumn); 2] =
    [("thread", SliceColumn::Thread), ("owner", SliceColumn::Owner)];

/// All columns, in the order of their indices.
fn columns() -> impl Iterator<Item = (&'static str, SliceColumn)> {
    SHOWN.into_iter().chain(HIDDEN)
}

fn place(column: SliceColumn) -> usize {
    columns().position(|entry| entry.1 == column).unwrap_or_default()
}

fn data_type(column: SliceColumn) -> DataType {
    match column {
        SliceColumn::Name
        | SliceColumn::Standard(
            Standard::Capture | Standard::Buffer | Standard::Segment | Standard::Host,
        )
        | SliceColumn::Nested(Nested::ParentBuffer | Nested::ParentSegment) => word_type(),
        SliceColumn::Standard(Standard::Seqno)
        | SliceColumn::Dur
        | SliceColumn::Nested(Nested::ParentSeqno | Nested::SelfTime)
        | SliceColumn::Thread => DataType::Int64,
        SliceColumn::Standard(Standard::Ring | Standard::Pid | Standard::Tid)
        | SliceColumn::Nested(Nested::Depth | Nested::ParentRing)
        | SliceColumn::Owner => DataType::Int32,
        SliceColumn::Standard(Standard::Ts | Standard::Drained) | SliceColumn::Start => timestamp(),
    }
}

#[derive(Debug)]
struct SlicesTable {
    set: Arc<CaptureSet>,
    intervals: Arc<Intervals>,
    spans: Vec<Spans>,
    /// The shown columns.
    schema: SchemaRef,
}

impl SlicesTable {
    fn new(set: &Arc<CaptureSet>, spans: Vec<(String, Spans)>) -> SlicesTable {
        let intervals = Arc::new(Intervals::new(set));
        let shown: Vec<usize> = (0..SHOWN.len()).collect();
        let schema = Arc::new(intervals.schema.project(&shown).unwrap_or_else(|_| Schema::empty()));
        // Spans across hosts whose clocks cannot be compared have no length.
        let spans = spans
            .into_iter()
            .map(|span| span.1)
            .filter(|spans| spans.comparable().is_ok())
            .collect();
        SlicesTable { set: set.clone(), intervals, spans, schema }
    }
}

impl CaptureTable for SlicesTable {
    fn schema(&self) -> &SchemaRef {
        &self.schema
    }

    fn bounded(&self, column: usize) -> Option<Bounded> {
        match SHOWN[column].1 {
            SliceColumn::Name => Some(Bounded::Word(BoundedText::Name)),
            SliceColumn::Standard(standard) => Some(standard.bounded()),
            _ => None,
        }
    }

    fn plan(&self, request: &TableRequest<'_>) -> Result<Planned, TableError> {
        let mut planned = self.plan_intervals(request)?;
        let wanted = self
            .spans
            .iter()
            .filter(|span| request.bounds.has_word(BoundedText::Name, span.name()));
        planned.more =
            wanted.map(|spans| self.plan_spans(spans, request)).collect::<Result<_, _>>()?;
        Ok(planned)
    }
}

impl SlicesTable {
    /// Plans the rows of a kind's closed spans.
    fn plan_spans(&self, spans: &Spans, request: &TableRequest<'_>) -> Result<Planned, TableError> {
        let name = Arc::new(StringArray::from_iter_values([spans.name()]));
        let shown = |&column: &usize| match SHOWN[column].1 {
            SliceColumn::Name => LinkColumn::Word(name.clone()),
            SliceColumn::Standard(standard) => LinkColumn::Own(standard),
            SliceColumn::Start => LinkColumn::Own(Standard::Ts),
            SliceColumn::Dur | SliceColumn::Nested(Nested::SelfTime) => LinkColumn::Dur,
            SliceColumn::Nested(Nested::Depth) => LinkColumn::Zero,
            SliceColumn::Nested(_) | SliceColumn::Thread | SliceColumn::Owner => LinkColumn::Null,
        };
        let schema = Arc::new(self.schema.project(request.columns)?);
        let columns: Vec<LinkColumn> = request.columns.iter().map(shown).collect();
        spans.closed(request, &columns, schema)
    }

    /// Plans the rows of intervals.
    fn plan_intervals(&self, request: &TableRequest<'_>) -> Result<Planned, TableError> {
        let is_read = |column: &usize| !matches!(SHOWN[*column].1, SliceColumn::Nested(_));
        if request.columns.iter().all(is_read) {
            let scan: Arc<dyn Scan> =
                Arc::new(ChunkScan::new(&self.set, &self.intervals, request)?);
            return Ok(scan.into());
        }
        // The parent of a slice may be any slice of its thread, so only whole threads can be skipped.
        let bounds =
            request.bounds.only(&[BoundedNumber::Pid, BoundedNumber::Tid], &[BoundedText::Host]);
        let mut read: Vec<usize> = request.columns.iter().copied().filter(is_read).collect();
        let needed = [
            SliceColumn::Thread,
            SliceColumn::Start,
            SliceColumn::Dur,
            SliceColumn::Standard(Standard::Seqno),
            SliceColumn::Owner,
            SliceColumn::Name,
        ];
        for column in needed.map(place) {
            if !read.contains(&column) {
                read.push(column);
            }
        }
        let inner = TableRequest { columns: &read, bounds: &bounds, limit: None, ..*request };
        let scan: Arc<dyn Scan> = Arc::new(ChunkScan::new(&self.set, &self.intervals, &inner)?);
        let at = |column| read.iter().position(|&index| index == place(column)).unwrap_or_default();
        let nest = NestPass {
            thread: at(SliceColumn::Thread),
            start: at(SliceColumn::Start),
            dur: at(SliceColumn::Dur),
            seqno: at(SliceColumn::Standard(Standard::Seqno)),
            owner: at(SliceColumn::Owner),
            columns: request
                .columns
                .iter()
                .map(|&column| match SHOWN[column].1 {
                    SliceColumn::Nested(nested) => NestColumn::Nested(nested),
                    shown => NestColumn::Input(at(shown)),
                })
                .collect(),
            schema: Arc::new(self.schema.project(request.columns)?),
            parents: self.intervals.parents.clone(),
        };
        // Of slices with the same start, the longest contains the others; of equal slices, the one whose
        // frame was written last.
        let order = vec![
            (nest.thread, false),
            (nest.start, false),
            (nest.dur, true),
            (nest.seqno, true),
            (nest.owner, false),
            (at(SliceColumn::Name), false),
        ];
        let pass = Pass {
            schema: nest.schema.clone(),
            group_by: vec![nest.thread],
            order,
            explain_text: "slices: depth, parent and self within each thread".to_owned(),
            start: Start(Arc::new(move || nest.runner())),
        };
        Ok(Planned { scan, pass: Some(pass), more: Vec::new() })
    }
}

/// An interval of a kind of frames.
#[derive(Debug)]
struct SliceInterval {
    start: Time,
    end: Time,
    /// Key of its name, `job.handle`.
    name: i32,
}

/// The intervals of a source, by frame id.
#[derive(Debug)]
struct SourceIntervals {
    multi: bool,
    kinds: Vec<Vec<SliceInterval>>,
}

#[derive(Debug)]
struct Intervals {
    schema: SchemaRef,
    words: Vec<Option<Arc<StringArray>>>,
    /// Names of intervals, in the order of their keys.
    names: Arc<StringArray>,
    /// By capture and source.
    sources: HashMap<(usize, u16), SourceIntervals>,
    /// Numbers of the owners in `parents`.
    owners: HashMap<SliceRing, i32>,
    parents: Arc<Parents>,
}

/// A ring of the set.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
struct SliceRing {
    capture: usize,
    source: u16,
    /// The nonce of the segment.
    segment: u64,
    ring: Option<i32>,
}

impl SliceRing {
    fn new(capture: usize, owner: &OwnerKeys) -> SliceRing {
        SliceRing { capture, source: owner.source, segment: owner.nonce, ring: owner.ring }
    }
}

impl Intervals {
    fn new(set: &CaptureSet) -> Intervals {
        let mut names = Dictionary::default();
        let mut intervals = Intervals {
            schema: Arc::new(Schema::new(
                columns()
                    .map(|(name, column)| Field::new(name, data_type(column), true))
                    .collect::<Vec<_>>(),
            )),
            words: Vec::new(),
            names: Arc::new(StringArray::new_null(0)),
            sources: HashMap::new(),
            owners: HashMap::new(),
            parents: Arc::new(Parents::new(set)),
        };
        let mut parents = Parents::new(set);
        for (capture, opened) in set.captures().iter().enumerate() {
            let catalog = opened.catalog();
            for info in &catalog.sources {
                let kinds = info.schema.frames.iter();
                let kinds = kinds.map(|frame| intervals_of(frame, &mut names)).collect();
                let source = SourceIntervals { multi: info.schema.multi(), kinds };
                intervals.sources.insert((capture, info.id), source);
            }
            for owner in set.owners(capture, catalog) {
                let ring = SliceRing::new(capture, &owner);
                intervals.owners.entry(ring).or_insert_with(|| parents.add(&owner));
            }
        }
        intervals.parents = Arc::new(parents);
        intervals.names = names.array();
        let known = columns().map(|(_, column)| match column {
            SliceColumn::Name => Some(intervals.names.clone()),
            SliceColumn::Standard(standard) => standard.dictionary(set.names()),
            _ => None,
        });
        intervals.words = known.collect();
        intervals
    }
}

/// A number for a thread of a process, or for a ring if its thread is unknown.
fn thread(process: i32, tid: Option<i32>, owner: i32) -> i64 {
    tid.map_or(-1 - i64::from(owner), |tid| i64::from(process) << 32 | i64::from(tid))
}

/// The intervals of a kind of frames, without those of CPU time, which have no position in time.
fn intervals_of(frame: &Frame, names: &mut Dictionary) -> Vec<SliceInterval> {
    let mut intervals = Vec::new();
    for field in &frame.fields {
        let Some(interval) =
            field.interval.as_ref().filter(|interval| interval.edge == IntervalEnd::End)
        else {
            continue;
        };
        let start = frame.fields.iter().find(|other| {
            let is_start =
                |other: &Interval| other.edge == IntervalEnd::Start && other.name == interval.name;
            other.interval.as_ref().is_some_and(is_start) && other.ty == field.ty
        });
        let is_cpu = field.ty.clock().is_some_and(Clock::is_cpu);
        if let (Some(start), Some(end), false) =
            (start.and_then(Time::from_field), Time::from_field(field), is_cpu)
        {
            let name = names.key(&format!("{}.{}", frame.name, interval.name));
            intervals.push(SliceInterval { start, end, name });
        }
    }
    intervals
}

impl ChunkRowSource for Intervals {
    fn schema(&self) -> &SchemaRef {
        &self.schema
    }

    fn dictionary(&self, column: usize) -> Option<Arc<StringArray>> {
        self.words[column].clone()
    }

    fn wanted(&self, capture: usize, source: u16, bounds: &Bounds) -> Wanted {
        let Some(source) = self.sources.get(&(capture, source)) else { return Wanted::NOTHING };
        let mut kinds = 0;
        for (id, intervals) in source.kinds.iter().enumerate() {
            let named = |interval: &SliceInterval| {
                bounds.has_word(BoundedText::Name, self.names.value(interval.name as usize))
            };
            if intervals.iter().any(named) {
                kinds |= if source.multi { kind_bit(id) } else { u64::MAX };
            }
        }
        // Heads bound the times of frames, but slices begin earlier.
        Wanted { kinds, frame_is_row: false, ts: Ts::Other }
    }

    fn append(&self, chunk: &ChunkRows<'_>, columns: &[usize], to: &mut [Builder]) -> usize {
        let key = (chunk.capture, chunk.owner.source);
        let Some(source) = self.sources.get(&key) else { return 0 };
        let mut count = 0;
        let mut scratch = Vec::new();
        for (id, intervals) in source.kinds.iter().enumerate() {
            if intervals.is_empty() {
                continue;
            }
            let rows =
                if source.multi { chunk.rows.of_kind(id as u16, &mut scratch) } else { chunk.rows };
            for interval in intervals {
                count += self.interval(chunk, rows, interval, columns, to);
            }
        }
        count
    }
}

impl Intervals {
    /// Appends the interval of each of `rows` in which it has both ends.
    fn interval(
        &self,
        chunk: &ChunkRows<'_>,
        rows: RowsInChunk<'_>,
        interval: &SliceInterval,
        columns: &[usize],
        to: &mut [Builder],
    ) -> usize {
        let values = chunk.values(chunk.rows);
        let (mut taken, mut starts, mut lengths) = (Vec::new(), Vec::new(), Vec::new());
        rows.each_row(|row, frame| {
            let start = values.epoch(interval.start, frame);
            let length = start.and_then(|start| {
                values.epoch(interval.end, frame).and_then(|end| end.checked_sub(start))
            });
            if let (Some(start), Some(length)) = (start, length) {
                taken.push(row);
                starts.push(start);
                lengths.push(length);
            }
        });
        let rows = RowsInChunk { selected: Some(&taken), ..rows };
        let owner = chunk.owner;
        let ring = SliceRing::new(chunk.capture, owner);
        let count = taken.len();
        for (&column, builder) in columns.iter().zip(to) {
            match self::columns().nth(column).map(|column| column.1) {
                Some(SliceColumn::Name) => builder.repeat(Some(interval.name), count),
                Some(SliceColumn::Start) => builder.extend(starts.iter().copied()),
                Some(SliceColumn::Dur) => builder.extend(lengths.iter().copied()),
                Some(SliceColumn::Standard(standard)) => chunk.standard(standard, rows, builder),
                Some(SliceColumn::Thread) => {
                    let number = self.owners.get(&ring).copied().unwrap_or_default();
                    let thread = |tid| Some(thread(owner.process, tid, number));
                    match chunk.other_threads() {
                        None => builder.repeat(thread(owner.tid), count),
                        Some(others) => {
                            builder.each(rows, |frame| thread(others.of(frame).or(owner.tid)));
                        }
                    }
                }
                Some(SliceColumn::Owner) => builder.repeat(self.owners.get(&ring).copied(), count),
                Some(SliceColumn::Nested(_)) | None => builder.nulls(count),
            }
        }
        count
    }
}
