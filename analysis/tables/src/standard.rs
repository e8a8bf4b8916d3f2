//! The ten standard columns, with which every row of frames begins.

use std::collections::HashSet;
use std::sync::Arc;

use arrow_array::StringArray;
use arrow_schema::{DataType, Field};
use ppt_capture::columns::{FrameThreads, Time, frame_id};
use ppt_capture::frame_dsl::columns::free;
use ppt_capture::{Stamps, drained_at};

use crate::bounds::{Bounded, BoundedNumber, BoundedText};
use crate::builder::{Builder, FrameValues, timestamp, word_type};
use crate::catalog::{Catalog, ChunkAt};
use crate::rows::{KindRows, RowsInChunk};
use crate::set::{OwnerKeys, RowNames};

/// A standard column.
#[derive(Debug, Clone, Copy, PartialEq, Eq, strum::IntoStaticStr)]
#[strum(serialize_all = "snake_case")]
pub enum Standard {
    /// The capture's id, its first 16 hex digits.
    Capture,
    /// The buffer's name.
    Buffer,
    /// The segment's nonce, 16 hex digits.
    Segment,
    /// The ring in the segment.
    Ring,
    /// The sequence number in the ring.
    Seqno,
    /// The host's name.
    Host,
    /// The process, in the listener's namespace.
    Pid,
    /// The thread that the frame is about, in the target's own namespace.
    Tid,
    /// The time of the `@at` field.
    Ts,
    /// The time at which the listener drained the frame.
    Drained,
}

/// The standard columns, in the order of every table.
pub const STANDARD: [Standard; 10] = [
    Standard::Capture,
    Standard::Buffer,
    Standard::Segment,
    Standard::Ring,
    Standard::Seqno,
    Standard::Host,
    Standard::Pid,
    Standard::Tid,
    Standard::Ts,
    Standard::Drained,
];

impl Standard {
    /// The name of the column, unless a field has that name.
    pub fn name(self) -> &'static str {
        self.into()
    }

    /// The kind of bounds that apply to it.
    pub(crate) fn bounded(self) -> Bounded {
        match self {
            Standard::Capture => Bounded::Word(BoundedText::Capture),
            Standard::Buffer => Bounded::Word(BoundedText::Buffer),
            Standard::Segment => Bounded::Word(BoundedText::Segment),
            Standard::Ring => Bounded::Number(BoundedNumber::Ring),
            Standard::Seqno => Bounded::Number(BoundedNumber::Seqno),
            Standard::Host => Bounded::Word(BoundedText::Host),
            Standard::Pid => Bounded::Number(BoundedNumber::Pid),
            Standard::Tid => Bounded::Number(BoundedNumber::Tid),
            Standard::Ts => Bounded::Number(BoundedNumber::Ts),
            Standard::Drained => Bounded::Number(BoundedNumber::Drained),
        }
    }

    /// The field of the column, renamed if `taken` has its name. `taken`: names of fields, in lower case.
    pub(crate) fn field(self, taken: &HashSet<String>) -> Field {
        let ty = match self {
            Standard::Capture | Standard::Buffer | Standard::Segment | Standard::Host => {
                word_type()
            }
            Standard::Ring | Standard::Pid | Standard::Tid => DataType::Int32,
            Standard::Seqno => DataType::Int64,
            Standard::Ts | Standard::Drained => timestamp(),
        };
        Field::new(free(self.name(), taken), ty, true)
    }

    /// The dictionary of the column, if it has words.
    pub(crate) fn dictionary(self, names: &RowNames) -> Option<Arc<StringArray>> {
        match self {
            Standard::Capture => Some(names.captures.clone()),
            Standard::Buffer => Some(names.buffers.clone()),
            Standard::Segment => Some(names.segments.clone()),
            Standard::Host => Some(names.hosts.clone()),
            _ => None,
        }
    }
}

/// Frames of a chunk, with their common values.
#[derive(Debug, Clone, Copy)]
pub(crate) struct ChunkRows<'a> {
    /// Index of the capture.
    pub capture: usize,
    pub catalog: &'a Catalog,
    pub at: &'a ChunkAt,
    pub owner: &'a OwnerKeys,
    /// The frames that carry their sequence number.
    pub rows: RowsInChunk<'a>,
    /// The rows by kind, if a reader grouped them.
    pub kinds: Option<&'a KindRows>,
    pub stamps: &'a Stamps<'a>,
    /// Realtime − monotonic, ns.
    pub offset: Option<i128>,
}

impl<'a> ChunkRows<'a> {
    /// The rows of the kind `id`; `scratch` may take their row numbers.
    pub fn of_kind(&self, id: u16, scratch: &'a mut Vec<u32>) -> RowsInChunk<'a> {
        match self.kinds {
            Some(kinds) => RowsInChunk { selected: Some(kinds.get(id)), ..self.rows },
            None => self.rows.of_kind(id, scratch),
        }
    }

    /// The values of `rows`, to be read by a builder.
    pub fn values(&self, rows: RowsInChunk<'a>) -> FrameValues<'a> {
        FrameValues { rows, stamps: self.stamps, offset: self.offset, keys: None }
    }

    /// Appends a standard column of `rows` to `builder`; NULL for `ts`, which the caller reads.
    pub fn standard(&self, column: Standard, rows: RowsInChunk<'_>, builder: &mut Builder) {
        let (owner, count) = (self.owner, rows.len());
        match column {
            Standard::Capture => builder.repeat(Some(owner.capture), count),
            Standard::Buffer => builder.repeat(Some(owner.buffer), count),
            Standard::Segment => builder.repeat(Some(owner.segment), count),
            Standard::Host => builder.repeat(Some(owner.host), count),
            Standard::Ring => builder.repeat(owner.ring, count),
            Standard::Pid => builder.repeat(owner.pid, count),
            Standard::Tid => self.threads(rows, builder),
            Standard::Drained => self.drained(rows, builder),
            Standard::Seqno => match (i64::try_from(self.at.first_seq), rows.selected) {
                // No frame has so large a number: every ring begins at 1.
                (Err(_), _) => builder.nulls(count),
                (Ok(first), None) => {
                    builder.extend((0..count).map(|row| first.saturating_add(row as i64)));
                }
                (Ok(first), Some(selected)) => {
                    builder.extend(selected.iter().map(|&row| first.saturating_add(row.into())));
                }
            },
            Standard::Ts => builder.nulls(count),
        }
    }

    /// Reads the threads that frames are about, if they may differ from the writer.
    pub fn other_threads(&self) -> Option<FrameThreads> {
        let info = &self.catalog.sources[self.owner.info];
        self.owner.names_threads.then(|| FrameThreads::from_schema(&info.schema)).flatten()
    }

    /// Appends the threads that `rows` are about.
    fn threads(&self, rows: RowsInChunk<'_>, builder: &mut Builder) {
        let own = self.owner.tid;
        match self.other_threads() {
            None => builder.repeat(own, rows.len()),
            Some(others) => builder.each(rows, |frame| others.of(frame).or(own)),
        }
    }

    /// Appends the time at which each of `rows` was drained.
    fn drained(&self, rows: RowsInChunk<'_>, builder: &mut Builder) {
        let first = self.catalog.epoch(self.at.drained);
        let by = self.catalog.epoch(self.at.drained_by);
        let (Some(first), Some(_)) = (first, by) else { return builder.repeat(first, rows.len()) };
        let frames = &self.catalog.sources[self.owner.info].schema.frames;
        let at: Vec<_> = frames.iter().map(|frame| frame.at().and_then(Time::from_field)).collect();
        let values = self.values(rows);
        builder.each(rows, |frame| {
            let id = if at.len() == 1 { 0 } else { usize::from(frame_id(frame)) };
            let own = at.get(id).copied().flatten().and_then(|time| values.epoch(time, frame));
            Some(drained_at(first, by, own))
        });
    }
}
