//! Slices: the intervals of frames, and the moments of frames that have none.

use std::cmp::{Ordering, Reverse};

use ppt_capture::columns::{Time, TimeScale, frame_id};
use ppt_capture::frame_dsl::schema::{Clock, Edge, Frame, Schema};
use ppt_capture::{Payload, Stamps};

/// Stands in a stamp that is ns of the monotonic clock.
const IS_MONOTONIC: u64 = 1 << 63;

/// An interval of a frame, or its moment.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Slice {
    pub start: i64,
    /// As the frame has it: a clock that was set back makes it negative.
    pub len: i64,
    /// Its frame in the chunk.
    pub frame: u32,
    /// Index of [`SourceKinds::kinds`].
    pub kind: u16,
}

impl Slice {
    /// Its end; not before its start.
    pub fn end(&self) -> i64 {
        self.start.saturating_add(self.len.max(0))
    }

    pub fn length(&self) -> u64 {
        self.len.max(0) as u64
    }
}

/// A slice with what orders it among those of other rings.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Placed {
    pub slice: Slice,
    pub seqno: u64,
    /// Number of the ring in the view.
    pub ring: u32,
}

impl Placed {
    /// The order in which slices nest: a slice is around those behind it.
    pub fn order(&self, other: &Placed) -> Ordering {
        let key = |placed: &Placed| {
            (
                placed.slice.start,
                Reverse(placed.slice.len),
                Reverse(placed.seqno),
                placed.ring,
                placed.slice.kind,
            )
        };
        key(self).cmp(&key(other))
    }

    /// Whether the other one lies in it, both ends included, and comes after it.
    pub fn contains(&self, other: &Placed) -> bool {
        let end = self.slice.start.saturating_add(self.slice.len);
        self.order(other).is_lt() && other.slice.end() <= end
    }
}

/// What the slices of a source are.
#[derive(Debug)]
pub(crate) struct SourceKinds {
    multi: bool,
    frames: Vec<FrameSlices>,
    /// By the kind of a slice.
    pub kinds: Vec<SliceKind>,
}

/// A kind of slices.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct SliceKind {
    /// `job.handle` of an interval, `job` of a moment.
    pub name: String,
    pub is_moment: bool,
}

/// Where the slices of a kind of frames are.
#[derive(Debug, Default)]
struct FrameSlices {
    intervals: Vec<(Time, Time, u16)>,
    moment: Option<(Time, u16)>,
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
                    slices.intervals.push((start, end, kind));
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

    /// How many slices a frame has at most; at least 1.
    pub fn most_of_a_frame(&self) -> usize {
        self.frames.iter().map(|frame| frame.intervals.len()).max().unwrap_or(0).max(1)
    }
}

/// The intervals of time of a kind of frames. CPU time has no place in time.
fn intervals(frame: &Frame) -> impl Iterator<Item = (Time, Time, &str)> {
    let ends = frame.fields.iter().filter_map(|field| {
        let interval = field.interval.as_ref().filter(|interval| interval.edge == Edge::End)?;
        Some((field, interval))
    });
    ends.filter(|(field, _)| !field.ty.clock().is_some_and(Clock::is_cpu)).filter_map(
        |(field, interval)| {
            let start = frame.fields.iter().find(|other| {
                let is_start = other
                    .interval
                    .as_ref()
                    .is_some_and(|it| it.edge == Edge::Start && it.name == interval.name);
                is_start && other.ty == field.ty
            })?;
            Some((Time::from_field(start)?, Time::from_field(field)?, interval.name.as_str()))
        },
    )
}

/// The slices of a chunk.
#[derive(Debug, Default)]
pub(crate) struct ChunkSlices {
    /// Of intervals, in the order in which they nest.
    pub slices: Vec<Slice>,
    /// Of frames that have none, by kind, each in the order of time.
    pub moments: Vec<Slice>,
    /// The least and the greatest stamp of the CPU's counter that was read.
    pub ticks: Option<(u64, u64)>,
}

impl ChunkSlices {
    /// Reads the slices of the frames of `payload` that are `wanted`.
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
        let mut read = Read { found: ChunkSlices::default(), least: u64::MAX, most: 0 };
        read.found.slices.reserve(if whole { payload.head.count as usize } else { good.len() });
        let mut take = |(row, frame): (u32, &[u8])| {
            let id = if kinds.multi { usize::from(frame_id(frame)) } else { 0 };
            let Some(slices) = kinds.frames.get(id).filter(|_| wanted(frame)) else { return };
            for &(start, end, kind) in &slices.intervals {
                let start = read.time(start, frame, stamps, offset);
                let end = read.time(end, frame, stamps, offset);
                if let (Some(start), Some(end)) = (start, end)
                    && let Some(len) = end.checked_sub(start)
                {
                    read.found.slices.push(Slice { start, len, frame: row, kind });
                }
            }
            if let Some((at, kind)) = slices.moment
                && let Some(start) = read.time(at, frame, stamps, offset)
            {
                read.found.moments.push(Slice { start, len: 0, frame: row, kind });
            }
        };
        if whole {
            (0..).zip(payload.bytes().chunks_exact(stride)).for_each(&mut take);
        } else {
            good.iter()
                .map(|&row| (row, &payload.bytes()[row as usize * stride..][..stride]))
                .for_each(&mut take);
        }
        let Read { mut found, least, most } = read;
        found.ticks = (least <= most).then_some((least, most));
        let key =
            |slice: &Slice| (slice.start, Reverse(slice.len), Reverse(slice.frame), slice.kind);
        found.slices.sort_unstable_by_key(key);
        found.moments.sort_unstable_by_key(|moment| (moment.kind, moment.start, moment.frame));
        found
    }
}

struct Read {
    found: ChunkSlices,
    least: u64,
    most: u64,
}

impl Read {
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
                self.least = self.least.min(word);
                self.most = self.most.max(word);
            }
            return stamps.epoch(word);
        }
        i64::try_from(time.epoch(word, stamps, offset)?).ok()
    }
}
