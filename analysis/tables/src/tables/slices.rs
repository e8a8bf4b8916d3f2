//! `slices`: every interval of a time type that was taken, and how they nest within their thread,
//! over all buffers; and every span that was begun and ended, which is in no thread: it nests in
//! nothing.

use std::collections::HashMap;
use std::sync::Arc;

use arrow_array::StringArray;
use arrow_schema::{DataType, Field, Schema, SchemaRef};
use ppt_capture::columns::Time;
use ppt_capture::frame_dsl::schema::{Clock, Edge, Frame};

use super::named::Named;
use super::paired::LinkColumn;
use super::spans::{self, Spans};
use crate::bounds::{Bounded, Bounds, Number, Word};
use crate::builder::{Builder, Dictionary, timestamp, word_type};
use crate::error::{SetError, TableError};
use crate::nest::{Nest, Nested, Parents};
use crate::of_chunks::{ChunkScan, OfChunks, Ts, Wanted, kind_bit};
use crate::rows::Rows;
use crate::set::CaptureSet;
use crate::standard::{ChunkRows, Standard};
use crate::table::{Pass, Planned, Request, Scan, Start, Table};

pub(super) fn make(set: &Arc<CaptureSet>) -> Result<Vec<Named>, SetError> {
    Ok(vec![Named::fixed("slices", Slices::new(set, spans::all(set)?))])
}

/// A column: read from frames, or made of how slices nest.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Column {
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

const SHOWN: [(&str, Column); 17] = [
    ("name", Column::Name),
    ("capture", Column::Standard(Standard::Capture)),
    ("buffer", Column::Standard(Standard::Buffer)),
    ("segment", Column::Standard(Standard::Segment)),
    ("ring", Column::Standard(Standard::Ring)),
    ("seqno", Column::Standard(Standard::Seqno)),
    ("host", Column::Standard(Standard::Host)),
    ("pid", Column::Standard(Standard::Pid)),
    ("tid", Column::Standard(Standard::Tid)),
    ("ts", Column::Start),
    ("dur", Column::Dur),
    ("depth", Column::Nested(Nested::Depth)),
    ("parent_buffer", Column::Nested(Nested::ParentBuffer)),
    ("parent_segment", Column::Nested(Nested::ParentSegment)),
    ("parent_ring", Column::Nested(Nested::ParentRing)),
    ("parent_seqno", Column::Nested(Nested::ParentSeqno)),
    ("self", Column::Nested(Nested::SelfTime)),
];

/// What is read beside what is shown, to nest by.
const HIDDEN: [(&str, Column); 2] = [("thread", Column::Thread), ("owner", Column::Owner)];

/// All columns, by their numbers.
fn columns() -> impl Iterator<Item = (&'static str, Column)> {
    SHOWN.into_iter().chain(HIDDEN)
}

fn place(column: Column) -> usize {
    columns().position(|it| it.1 == column).unwrap_or_default()
}

fn data_type(column: Column) -> DataType {
    match column {
        Column::Name
        | Column::Standard(
            Standard::Capture | Standard::Buffer | Standard::Segment | Standard::Host,
        )
        | Column::Nested(Nested::ParentBuffer | Nested::ParentSegment) => word_type(),
        Column::Standard(Standard::Seqno)
        | Column::Dur
        | Column::Nested(Nested::ParentSeqno | Nested::SelfTime) => DataType::Int64,
        Column::Standard(Standard::Ring | Standard::Pid | Standard::Tid)
        | Column::Nested(Nested::Depth | Nested::ParentRing)
        | Column::Thread
        | Column::Owner => DataType::Int32,
        Column::Standard(Standard::Ts | Standard::Drained) | Column::Start => timestamp(),
    }
}

#[derive(Debug)]
struct Slices {
    set: Arc<CaptureSet>,
    of: Arc<Intervals>,
    spans: Vec<Spans>,
    /// What is shown.
    schema: SchemaRef,
}

impl Slices {
    fn new(set: &Arc<CaptureSet>, spans: Vec<(String, Spans)>) -> Slices {
        let of = Arc::new(Intervals::new(set));
        let shown: Vec<usize> = (0..SHOWN.len()).collect();
        let schema = Arc::new(of.schema.project(&shown).unwrap_or_else(|_| Schema::empty()));
        // Spans over hosts whose clocks nobody compares have no length.
        let spans = spans.into_iter().map(|it| it.1).filter(|it| it.comparable().is_ok()).collect();
        Slices { set: set.clone(), of, spans, schema }
    }
}

impl Table for Slices {
    fn schema(&self) -> &SchemaRef {
        &self.schema
    }

    fn bounded(&self, column: usize) -> Option<Bounded> {
        match SHOWN[column].1 {
            Column::Name => Some(Bounded::Word(Word::Name)),
            Column::Standard(standard) => Some(standard.bounded()),
            _ => None,
        }
    }

    fn plan(&self, request: &Request<'_>) -> Result<Planned, TableError> {
        let mut planned = self.intervals(request)?;
        let wanted = self.spans.iter().filter(|it| request.bounds.has_word(Word::Name, it.name()));
        planned.beside = wanted.map(|it| self.spans(it, request)).collect::<Result<_, _>>()?;
        Ok(planned)
    }
}

impl Slices {
    /// The spans of a kind of frames that were begun and ended.
    fn spans(&self, spans: &Spans, request: &Request<'_>) -> Result<Planned, TableError> {
        let name = Arc::new(StringArray::from_iter_values([spans.name()]));
        let shown = |&column: &usize| match SHOWN[column].1 {
            Column::Name => LinkColumn::Word(name.clone()),
            Column::Standard(standard) => LinkColumn::Own(standard),
            Column::Start => LinkColumn::Own(Standard::Ts),
            Column::Dur | Column::Nested(Nested::SelfTime) => LinkColumn::Dur,
            Column::Nested(Nested::Depth) => LinkColumn::Zero,
            Column::Nested(_) | Column::Thread | Column::Owner => LinkColumn::Null,
        };
        let schema = Arc::new(self.schema.project(request.columns)?);
        let columns: Vec<LinkColumn> = request.columns.iter().map(shown).collect();
        spans.closed(request, &columns, schema)
    }

    fn intervals(&self, request: &Request<'_>) -> Result<Planned, TableError> {
        let is_read = |column: &usize| !matches!(SHOWN[*column].1, Column::Nested(_));
        if request.columns.iter().all(is_read) {
            let scan: Arc<dyn Scan> = Arc::new(ChunkScan::new(&self.set, &self.of, request)?);
            return Ok(scan.into());
        }
        // What a slice is in depends on the others of its thread: whole threads can be left out.
        let bounds = request.bounds.only(&[Number::Pid, Number::Tid], &[Word::Host]);
        let mut read: Vec<usize> = request.columns.iter().copied().filter(is_read).collect();
        let needed = [
            Column::Thread,
            Column::Start,
            Column::Dur,
            Column::Standard(Standard::Seqno),
            Column::Owner,
            Column::Name,
        ];
        for column in needed.map(place) {
            if !read.contains(&column) {
                read.push(column);
            }
        }
        let inner = Request { columns: &read, bounds: &bounds, limit: None, ..*request };
        let scan: Arc<dyn Scan> = Arc::new(ChunkScan::new(&self.set, &self.of, &inner)?);
        let at = |column| read.iter().position(|&it| it == place(column)).unwrap_or_default();
        let nest = Nest {
            thread: at(Column::Thread),
            start: at(Column::Start),
            dur: at(Column::Dur),
            seqno: at(Column::Standard(Standard::Seqno)),
            owner: at(Column::Owner),
            columns: request
                .columns
                .iter()
                .map(|&column| match SHOWN[column].1 {
                    Column::Nested(nested) => Err(nested),
                    shown => Ok(at(shown)),
                })
                .collect(),
            schema: Arc::new(self.schema.project(request.columns)?),
            parents: self.of.parents.clone(),
        };
        // The longest of those that begin together is around the others; of equal ones the frame
        // that was written last.
        let order = vec![
            (nest.thread, false),
            (nest.start, false),
            (nest.dur, true),
            (nest.seqno, true),
            (nest.owner, false),
            (at(Column::Name), false),
        ];
        let pass = Pass {
            schema: nest.schema.clone(),
            together: vec![nest.thread],
            order,
            told: "slices: depth, parent and self within each thread".to_owned(),
            start: Start(Arc::new(move || nest.runner())),
        };
        Ok(Planned { scan, pass: Some(pass), beside: Vec::new() })
    }
}

/// An interval of a kind of frames.
#[derive(Debug)]
struct Interval {
    start: Time,
    end: Time,
    /// Key of its name, `job.handle`.
    name: i32,
}

/// The intervals of a source, by frame id.
#[derive(Debug)]
struct Source {
    multi: bool,
    kinds: Vec<Vec<Interval>>,
    /// Of the set.
    process: i32,
}

#[derive(Debug)]
struct Intervals {
    schema: SchemaRef,
    words: Vec<Option<Arc<StringArray>>>,
    /// Names of intervals, by key.
    names: Arc<StringArray>,
    sources: HashMap<(usize, u16), Source>,
    threads: HashMap<Thread, i32>,
    owners: HashMap<Ring, i32>,
    parents: Arc<Parents>,
}

/// A thread of a process, or a ring where nobody knows whose it was.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
enum Thread {
    Known(i32, i32),
    Ring(Ring),
}

/// Capture, source, segment, ring.
type Ring = (usize, u16, u64, Option<i32>);

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
            threads: HashMap::new(),
            owners: HashMap::new(),
            parents: Arc::new(Parents::new(set)),
        };
        let mut parents = Parents::new(set);
        for (capture, opened) in set.captures().iter().enumerate() {
            let catalog = opened.catalog();
            for info in &catalog.sources {
                let kinds = info.schema.frames.iter();
                let kinds = kinds.map(|frame| of_frame(frame, &mut names)).collect();
                let source = Source { multi: info.schema.multi(), kinds, process: -1 };
                intervals.sources.insert((capture, info.id), source);
            }
            for owner in set.owners(capture, catalog) {
                let ring = (capture, owner.source, owner.nonce, owner.ring);
                if let Some(source) = intervals.sources.get_mut(&(capture, owner.source)) {
                    source.process = owner.process;
                }
                let next = intervals.threads.len() as i32;
                intervals.threads.entry(thread(owner.process, owner.tid, ring)).or_insert(next);
                intervals.owners.entry(ring).or_insert_with(|| parents.add(&owner));
            }
        }
        intervals.parents = Arc::new(parents);
        intervals.names = names.array();
        let known = columns().map(|(_, column)| match column {
            Column::Name => Some(intervals.names.clone()),
            Column::Standard(standard) => standard.dictionary(set.names()),
            _ => None,
        });
        intervals.words = known.collect();
        intervals
    }
}

fn thread(process: i32, tid: Option<i32>, ring: Ring) -> Thread {
    tid.map_or(Thread::Ring(ring), |tid| Thread::Known(process, tid))
}

/// The intervals of time of a kind of frames. CPU time has no place in time.
fn of_frame(frame: &Frame, names: &mut Dictionary) -> Vec<Interval> {
    let mut intervals = Vec::new();
    for field in &frame.fields {
        let Some(interval) = field.interval.as_ref().filter(|it| it.edge == Edge::End) else {
            continue;
        };
        let start = frame.fields.iter().find(|other| {
            let edge = |it: &ppt_capture::frame_dsl::schema::Interval| {
                it.edge == Edge::Start && it.name == interval.name
            };
            other.interval.as_ref().is_some_and(edge) && other.ty == field.ty
        });
        let is_cpu = field.ty.clock().is_some_and(Clock::is_cpu);
        if let (Some(start), Some(end), false) = (start.and_then(Time::of), Time::of(field), is_cpu)
        {
            let name = names.key(&format!("{}.{}", frame.name, interval.name));
            intervals.push(Interval { start, end, name });
        }
    }
    intervals
}

impl OfChunks for Intervals {
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
            let named =
                |it: &Interval| bounds.has_word(Word::Name, self.names.value(it.name as usize));
            if intervals.iter().any(named) {
                kinds |= if source.multi { kind_bit(id) } else { u64::MAX };
            }
        }
        // Slices begin before the times that heads tell of.
        Wanted { kinds, each: false, ts: Ts::Other }
    }

    fn append(&self, chunk: &ChunkRows<'_>, columns: &[usize], to: &mut [Builder]) -> usize {
        let key = (chunk.capture, chunk.owner.source);
        let Some(source) = self.sources.get(&key) else { return 0 };
        let mut count = 0;
        let mut own = Vec::new();
        for (id, intervals) in source.kinds.iter().enumerate() {
            if intervals.is_empty() {
                continue;
            }
            let rows = match source.multi {
                true => chunk.rows.of_kind(id as u16, &mut own),
                false => chunk.rows,
            };
            for interval in intervals {
                count += self.interval(chunk, rows, interval, columns, to);
            }
        }
        count
    }
}

impl Intervals {
    /// Appends an interval of each of `rows` that has both ends.
    fn interval(
        &self,
        chunk: &ChunkRows<'_>,
        rows: Rows<'_>,
        interval: &Interval,
        columns: &[usize],
        to: &mut [Builder],
    ) -> usize {
        let from = chunk.from(chunk.rows);
        let (mut taken, mut starts, mut lengths) = (Vec::new(), Vec::new(), Vec::new());
        let mut place = 0;
        rows.each(|frame| {
            let row = rows.which.map_or(place, |which| which[place as usize]);
            place += 1;
            let start = from.epoch(interval.start, frame);
            let length = start.and_then(|start| {
                from.epoch(interval.end, frame).and_then(|end| end.checked_sub(start))
            });
            if let (Some(start), Some(length)) = (start, length) {
                taken.push(row);
                starts.push(start);
                lengths.push(length);
            }
        });
        let rows = Rows { which: Some(&taken), ..rows };
        let owner = chunk.owner;
        let ring = (chunk.capture, owner.source, owner.nonce, owner.ring);
        let count = taken.len();
        for (&column, builder) in columns.iter().zip(to) {
            match self::columns().nth(column).map(|it| it.1) {
                Some(Column::Name) => builder.repeat(Some(interval.name), count),
                Some(Column::Start) => builder.extend(starts.iter().copied()),
                Some(Column::Dur) => builder.extend(lengths.iter().copied()),
                Some(Column::Standard(standard)) => chunk.standard(standard, rows, builder),
                Some(Column::Thread) => {
                    let thread = thread(owner.process, owner.tid, ring);
                    builder.repeat(self.threads.get(&thread).copied(), count);
                }
                Some(Column::Owner) => builder.repeat(self.owners.get(&ring).copied(), count),
                Some(Column::Nested(_)) | None => builder.nulls(count),
            }
        }
        count
    }
}
