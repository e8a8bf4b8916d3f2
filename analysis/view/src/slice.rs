//! Slices: the intervals of frames, and the moments of frames without an interval.

use std::cmp::{Ordering, Reverse};

use ppt_capture::columns::{Time, TimeScale, frame_id};
use ppt_capture::frame_dsl::schema::{Clock, Frame, IntervalEnd, Schema};
use ppt_capture::{Payload, Stamps};

/// The bit of a stamp in ns of the monotonic clock.
const IS_MONOTONIC: u64 = 1 << 63;

/// An interval of a frame, or its moment.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Slice {
    /// The start, ns since the epoch.
    pub start: i64,
    /// The end minus the start, ns. Negative if a clock was set back.
    pub len: i64,
    /// The number of its frame in the chunk.
    pub frame: u32,
    /// An index of [`SourceKinds::kinds`].
    pub kind: u16,
}

impl Slice {
    /// The end, ns since the epoch, which is not before the start.
    pub fn end(&self) -> i64 {
        self.start.saturating_add(self.len.max(0))
    }

    pub fn length(&self) -> u64 {
        self.len.max(0) as u64
    }
}

/// A slice with the numbers that order it among the slices of all rings.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct OrderedSlice {
    pub slice: Slice,
    pub seqno: u64,
    /// The number of the ring in the view.
    pub ring: u32,
}

impl OrderedSlice {
    /// The order in which slices nest. A slice comes before the slices that it contains.
    pub fn order(&self, other: &OrderedSlice) -> Ordering {
        let key = |ordered: &OrderedSlice| {
            let slice = &ordered.slice;
            let (len, seqno) = (Reverse(slice.len), Reverse(ordered.seqno));
            (slice.start, len, seqno, ordered.ring, slice.kind)
        };
        key(self).cmp(&key(other))
    }

    /// Whether this slice contains the other one, both ends included, and comes before it.
    pub fn contains(&self, other: &OrderedSlice) -> bool {
        let end = self.slice.start.saturating_add(self.slice.len);
        self.order(other).is_lt() && other.slice.end() <= end
    }
}

/// The kinds of slices of a source, and their positions in frames.
#[derive(Debug)]
pub(crate) struct SourceKinds {
    multi: bool,
    frames: Vec<FrameSlices>,
    /// The kinds, indexed by [`Slice::kind`].
    pub kinds: Vec<SliceKind>,
}

/// A kind of slices.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct SliceKind {
    /// `job.handle` of an interval, `job` of a moment.
    pub name: String,
    pub is_moment: bool,
}

/// The positions of slices in a kind of frames.
#[derive(Debug, Default)]
struct FrameSlices {
    intervals: Vec<IntervalFields>,
    /// The time and the kind of the moment. None for frames with an interval or without a time.
    moment: Option<(Time, u16)>,
}

/// The fields of an interval.
#[derive(Debug)]
struct IntervalFields {
    start: Time,
    end: Time,
    /// The kind of its slices.
    kind: u16,
}

impl SourceKinds {
    pub fn from_schema(schema: &Schema) -> SourceKinds {
        let mut kinds = Vec::new();
        let mut number = |name: String, is_moment: bool| {
            let number = u16::try_from(kinds.len()).ok()?;
            kinds.push(SliceKind { name, is_moment });
            Some(number)
        };
        let frames = schema.frames.iter().map(|frame| {
            let mut slices = FrameSlices::default();
            for (start, end, name) in intervals(frame) {
                if let Some(kind) = number(format!("{}.{name}", frame.name), false) {
                    slices.intervals.push(IntervalFields { start, end, kind });
                }
            }
            if slices.intervals.is_empty()
                && let Some(at) = frame.at().and_then(Time::from_field)
            {
                slices.moment = number(frame.name.clone(), true).map(|kind| (at, kind));
            }
            slices
        });
        let frames = frames.collect();
        SourceKinds { multi: schema.multi(), frames, kinds }
    }

    /// The largest number of slices of a frame; at least 1.
    pub fn max_slices_per_frame(&self) -> usize {
        self.frames.iter().map(|frame| frame.intervals.len()).max().unwrap_or(0).max(1)
    }
}

/// The intervals of a kind of frames, except those of CPU time, which are not on the timeline.
fn intervals(frame: &Frame) -> impl Iterator<Item = (Time, Time, &str)> {
    let ends = frame.fields.iter().filter_map(|field| {
        let interval =
            field.interval.as_ref().filter(|interval| interval.edge == IntervalEnd::End)?;
        Some((field, interval))
    });
    ends.filter(|(field, _)| !field.ty.clock().is_some_and(Clock::is_cpu)).filter_map(
        |(field, interval)| {
            let start = frame.fields.iter().find(|other| {
                let is_start = other.interval.as_ref().is_some_and(|start| {
                    start.edge == IntervalEnd::Start && start.name == interval.name
                });
                is_start && other.ty == field.ty
            })?;
            Some((Time::from_field(start)?, Time::from_field(field)?, interval.name.as_str()))
        },
    )
}

/// The slices of a chunk.
#[derive(Debug, Default)]
pub(crate) struct ChunkSlices {
    /// The intervals, in nesting order.
    pub slices: Vec<Slice>,
    /// The moments, ordered by kind and time.
    pub moments: Vec<Slice>,
    /// The range of the stamps in ticks. None if there are none.
    pub ticks: Option<TickRange>,
}

/// The smallest and the largest stamp in ticks.
#[derive(Debug, Clone, Copy)]
pub(crate) struct TickRange {
    pub min: u64,
    pub max: u64,
}

impl ChunkSlices {
    /// Reads the slices of the frames of `payload` for which `wanted` is true.
    pub fn read(
        payload: &Payload<'_>,
        kinds: &SourceKinds,
        stamps: &Stamps<'_>,
        offset: Option<i128>,
        wanted: impl Fn(&[u8]) -> bool,
    ) -> ChunkSlices {
        let whole = payload.is_whole();
        let good: Vec<u32> = if whole { Vec::new() } else { payload.good().collect() };
        let stride = payload.head.stride as usize;
        let ticks = TickRange { min: u64::MAX, max: 0 };
        let mut reader = SliceReader { found: ChunkSlices::default(), ticks };
        reader.found.slices.reserve(if whole { payload.head.count as usize } else { good.len() });
        let mut take = |(row, frame): (u32, &[u8])| {
            let id = if kinds.multi { usize::from(frame_id(frame)) } else { 0 };
            let Some(slices) = kinds.frames.get(id).filter(|_| wanted(frame)) else { return };
            for &IntervalFields { start, end, kind } in &slices.intervals {
                let start = reader.time(start, frame, stamps, offset);
                let end = reader.time(end, frame, stamps, offset);
                if let (Some(start), Some(end)) = (start, end)
                    && let Some(len) = end.checked_sub(start)
                {
                    reader.found.slices.push(Slice { start, len, frame: row, kind });
                }
            }
            if let Some((at, kind)) = slices.moment
                && let Some(start) = reader.time(at, frame, stamps, offset)
            {
                reader.found.moments.push(Slice { start, len: 0, frame: row, kind });
            }
        };
        if whole {
            (0..).zip(payload.bytes().chunks_exact(stride)).for_each(&mut take);
        } else {
            good.iter()
                .map(|&row| (row, &payload.bytes()[row as usize * stride..][..stride]))
                .for_each(&mut take);
        }
        let SliceReader { mut found, ticks } = reader;
        found.ticks = (ticks.min <= ticks.max).then_some(ticks);
        let key =
            |slice: &Slice| (slice.start, Reverse(slice.len), Reverse(slice.frame), slice.kind);
        found.slices.sort_unstable_by_key(key);
        found.moments.sort_unstable_by_key(|moment| (moment.kind, moment.start, moment.frame));
        found
    }
}

/// Converts times, and records the range of ticks.
struct SliceReader {
    found: ChunkSlices,
    ticks: TickRange,
}

impl SliceReader {
    #[inline(always)]
    fn time(
        &mut self,
        time: Time,
        frame: &[u8],
        stamps: &Stamps<'_>,
        offset: Option<i128>,
    ) -> Option<i64> {
        let word = time.word(frame);
        if time.scale() == TimeScale::Ticks {
            if word & IS_MONOTONIC == 0 && word != 0 {
                self.ticks.min = self.ticks.min.min(word);
                self.ticks.max = self.ticks.max.max(word);
            }
            return stamps.epoch(word);
        }
        i64::try_from(time.epoch(word, stamps, offset)?).ok()
    }
}
