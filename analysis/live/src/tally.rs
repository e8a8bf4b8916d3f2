//! Sums over the chunks of a capture as they arrive.

use std::collections::{BTreeMap, HashMap};
use std::path::Path;
use std::sync::Arc;

use ppt_capture::columns::frame_id;
use ppt_capture::{
    Capture, CaptureError, CaptureItem, Cause, Chunk, ChunkFrames, ClockReading, ClockTable,
    Dropped, Drops, FileHeader, Gap, Lost, Source, SourceInfo, Stamps,
};
use ppt_stats::Budget;

use crate::frame_kind::{FrameKind, KindLimits};
use crate::last_names::LastNames;
use crate::latest_frames::{Latest, LatestChunks};
use crate::live_metrics::LiveMetrics;
use crate::rate::Rate;

/// The most kinds of frames that are distinguished. Frames of further kinds are counted together.
const MAX_KINDS: usize = 256;
/// The most fields of all types with sampled values.
const MAX_FIELDS: usize = 512;
/// The most bytes of keys that are counted exactly. Beyond it, the number is estimated.
const MAX_KEY_BYTES: usize = 16 << 20;
/// The most threads that are distinguished.
const MAX_THREADS: usize = 4096;
/// The most clock readings that are remembered.
const MAX_READINGS: usize = 8192;
/// The length of a period in ns. Reported values cover the latest one or two periods.
const PERIOD: u64 = 5_000_000_000;

/// The range of time of the reported values.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum TallyRange {
    /// Values of the latest 5 to 10 seconds.
    Latest,
    /// All values.
    Whole,
}

/// The sums over the chunks that have arrived.
pub struct Tally {
    pub(crate) range: TallyRange,
    pub(crate) header: Option<FileHeader>,
    pub(crate) sources: BTreeMap<u16, Source>,
    /// For each source, the indices of its kinds of frames in `kinds`. None if a kind is not distinguished.
    kind_indices: HashMap<u16, Arc<[Option<usize>]>>,
    pub(crate) kinds: Vec<FrameKind>,
    pub(crate) metrics: LiveMetrics,
    /// The number of fields of all types.
    field_count: usize,
    key_budget: Budget,
    pub(crate) rings: HashMap<RingKey, RingShare>,
    pub(crate) names: LastNames,
    pub(crate) clocks: ClockTable,
    /// The errors from readings that are no longer remembered.
    former_errors: ClockErrors,
    /// The number of the next readings that a survey has already added.
    surveyed: usize,
    readings: Vec<ClockReading>,
    latest: LatestChunks,
    /// None before the first frames.
    pub(crate) drained: Option<DrainedTimes>,
    /// CLOCK_MONOTONIC of the last [`FrameKind::fade`], in ns.
    faded: u64,
    /// Counts of all frames.
    pub(crate) frames: Rate,
    /// Counts of their bytes.
    pub(crate) bytes: Rate,
    /// Counts of lost frames.
    pub(crate) lost: Rate,
    /// Counts of frames of types that are unknown or not distinguished.
    pub(crate) other_kinds: Rate,
    /// The number of frames of threads that are not distinguished.
    pub(crate) other_threads: u64,
    pub(crate) lost_by: Lost,
    pub(crate) unattended: u64,
    dropped: HashMap<u16, Drops>,
    pub(crate) damages: u64,
    /// The reason of the end. None if the capture has not ended.
    pub(crate) ended: Option<String>,
}

/// CLOCK_MONOTONIC of the first and the latest frames and readings of counters, in ns.
#[derive(Clone, Copy)]
pub(crate) struct DrainedTimes {
    pub first: u64,
    pub last: u64,
}

/// The largest errors of times in ns. None if there are too few readings.
#[derive(Clone, Copy, Default)]
pub(crate) struct ClockErrors {
    /// The error of times in ticks.
    pub ticks: Option<u64>,
    /// The error of times of the monotonic clock.
    pub monotonic: Option<u64>,
}

/// The length of a period. None if the values cover all time.
fn period(range: TallyRange) -> Option<u64> {
    (range == TallyRange::Latest).then_some(PERIOD)
}

/// Identifies a process on its host.
fn process_id(source: &Source) -> u64 {
    let start = source.process.start_time;
    u64::from(source.process.pid) << 40 ^ start
}

/// Identifies a ring.
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
pub(crate) struct RingKey {
    pub source: u16,
    /// The nonce of the segment.
    pub nonce: u64,
    /// The number of the ring in its segment.
    pub ring: u32,
}

/// The frames of a ring, which belongs to one thread.
pub(crate) struct RingShare {
    pub tid: u32,
    pub rate: Rate,
    pub lost: u64,
}

impl Tally {
    /// An empty tally. The latest frames take at most `keep` bytes.
    pub fn new(range: TallyRange, keep: usize) -> Tally {
        Tally {
            range,
            header: None,
            sources: BTreeMap::new(),
            kind_indices: HashMap::new(),
            kinds: Vec::new(),
            metrics: LiveMetrics::new(period(range)),
            field_count: 0,
            key_budget: Budget::new(MAX_KEY_BYTES),
            rings: HashMap::new(),
            names: LastNames::default(),
            clocks: ClockTable::default(),
            former_errors: ClockErrors::default(),
            surveyed: 0,
            readings: Vec::new(),
            latest: LatestChunks::new(keep),
            drained: None,
            faded: 0,
            frames: Rate::default(),
            bytes: Rate::default(),
            lost: Rate::default(),
            other_kinds: Rate::default(),
            other_threads: 0,
            lost_by: Lost::default(),
            unattended: 0,
            dropped: HashMap::new(),
            damages: 0,
            ended: None,
        }
    }

    /// Sets the header of the capture. None if it is damaged.
    pub fn begin(&mut self, header: Option<&FileHeader>) {
        self.header = header.cloned();
    }

    /// Counts a damaged place that was skipped.
    pub fn add_damage(&mut self) {
        self.damages += 1;
    }

    /// Adds the next chunk.
    pub fn add_chunk(&mut self, chunk: &Chunk<'_>) {
        match chunk {
            Chunk::Source(info) => {
                self.sources.insert(info.id, info.source.clone());
                self.add_kinds(info);
                self.metrics.add_source(info);
            }
            Chunk::Frames(frames) => self.add_frames(frames),
            Chunk::Gap(gap) => self.add_gap(gap),
            Chunk::Clock(readings) => self.add_readings(readings),
            Chunk::Drops(drops) => {
                self.dropped.insert(drops.source, *drops);
            }
            Chunk::End(end) => {
                for &(source, dropped) in &end.drops {
                    let drops = Drops { source, dropped, mono_ns: end.mono_ns };
                    self.dropped.insert(source, drops);
                }
                let reason = if end.message.is_empty() { end.reason.name() } else { &end.message };
                self.ended = Some(reason.to_owned());
                self.finish();
            }
            Chunk::Threads(names) => {
                if let Some(source) = self.sources.get(&names.source) {
                    self.names.add(source.process.key(), names);
                }
            }
            Chunk::Cells(cells) => {
                self.metrics.add_reading(cells);
                self.advance_drained(cells.head.mono_ns);
            }
            Chunk::Passed(_)
            | Chunk::Trigger(_)
            | Chunk::Masks(_)
            | Chunk::Modules(_)
            | Chunk::Series(_)
            | Chunk::Index(..)
            | Chunk::Other(_) => {}
        }
    }

    /// Adds the kinds of frames of a source. Sources of one buffer and schema share their kinds.
    fn add_kinds(&mut self, info: &SourceInfo) {
        if self.kind_indices.contains_key(&info.id) {
            return;
        }
        let (buffer, hash) = (info.source.buffer.as_str(), info.source.schema_hash);
        let period = period(self.range);
        let indices = info.schema.frames.iter().map(|frame| {
            let is_same = |kind: &FrameKind| {
                kind.name == frame.name && kind.buffer == buffer && kind.schema_hash == hash
            };
            if let Some(index) = self.kinds.iter().position(is_same) {
                return Some(index);
            }
            if frame.is_hidden() || self.kinds.len() == MAX_KINDS {
                return None;
            }
            let max_fields = MAX_FIELDS - self.field_count;
            let limits = KindLimits { period, max_fields, budget: &self.key_budget };
            let kind = FrameKind::new((buffer, hash), &info.schema, frame, &limits);
            self.field_count += kind.fields.len();
            self.kinds.push(kind);
            Some(self.kinds.len() - 1)
        });
        let indices = indices.collect();
        self.kind_indices.insert(info.id, indices);
    }

    /// Advances the latest time to `ns`, if it is later. Returns the latest time.
    fn advance_drained(&mut self, ns: u64) -> u64 {
        let drained = self.drained.get_or_insert(DrainedTimes { first: ns, last: ns });
        drained.last = drained.last.max(ns);
        drained.last
    }

    fn add_frames(&mut self, frames: &ChunkFrames<'_>) {
        let head = &frames.head;
        let now = self.advance_drained(head.drained_mono_ns);

        let Some(kind_indices) = self.kind_indices.get(&head.source).cloned() else { return };
        let multi = frames.info.schema.multi();
        let mut rows_by_id: Vec<Vec<&[u8]>> = vec![Vec::new(); kind_indices.len()];
        let mut others = 0;
        let mut count = 0;
        for (_, frame) in frames.iter() {
            count += 1;
            let id = if multi { usize::from(frame_id(frame)) } else { 0 };
            match rows_by_id.get_mut(id) {
                Some(rows) if kind_indices[id].is_some() => rows.push(frame),
                _ => others += 1,
            }
        }
        let namespace = frames.info.source.process.time_namespace();
        let process = process_id(&frames.info.source);
        let stamps = Stamps::new(&self.clocks, head.drained_mono_ns, namespace);
        for (rows, kind_index) in rows_by_id.iter().zip(kind_indices.iter()) {
            if let (Some(index), false) = (kind_index, rows.is_empty()) {
                self.kinds[*index].add(rows, process, now, &stamps);
            }
        }
        self.advance(now);
        if now.saturating_sub(self.faded) > PERIOD && self.range == TallyRange::Latest {
            self.kinds.iter_mut().for_each(FrameKind::fade);
            self.faded = now;
        }
        self.other_kinds.add(now, others);
        self.frames.add(now, count);
        self.bytes.add(now, frames.bytes().len() as u64);
        let bad = u64::from(head.count).saturating_sub(count);
        let before = if frames.loss_is_new { head.lost_before } else { Lost::default() };
        self.count_lost(Cause::Overrun, before.overrun, now);
        self.count_lost(Cause::Disk, before.disk, now);
        self.count_lost(Cause::Corrupt, before.corrupt.saturating_add(bad), now);
        let lost = before.total().saturating_add(bad);
        let key = RingKey { source: head.source, nonce: head.nonce, ring: head.ring };
        match self.ring(key, head.tid) {
            Some(ring) => {
                ring.rate.add(now, count);
                ring.lost = ring.lost.saturating_add(lost);
            }
            None => self.other_threads = self.other_threads.saturating_add(count),
        }
        self.latest.add_frames(*head, frames.loss_is_new, frames.bytes());
    }

    /// Pairs the spans with an order known at `now`, in ns of CLOCK_MONOTONIC.
    pub(crate) fn advance(&mut self, now: u64) {
        self.kinds.iter_mut().for_each(|kind| kind.advance(now));
    }

    /// Pairs all remaining spans, after the last chunk.
    pub(crate) fn finish(&mut self) {
        let now = self.last();
        let spans = self.kinds.iter_mut().filter_map(|kind| kind.spans.as_mut());
        spans.for_each(|spans| spans.finish(now));
    }

    fn add_gap(&mut self, gap: &Gap) {
        self.count_lost(gap.cause, gap.count, self.last());
        let is_loss = gap.cause.is_loss();
        // A gap does not have the thread of its ring.
        let key = RingKey { source: gap.source, nonce: gap.nonce, ring: gap.ring };
        if let Some(ring) = self.ring(key, 0)
            && is_loss
        {
            ring.lost = ring.lost.saturating_add(gap.count);
        }
        self.latest.add_gap(*gap);
    }

    /// The ring with this key. None if there are too many rings. `tid` is 0 if it is unknown.
    fn ring(&mut self, key: RingKey, tid: u32) -> Option<&mut RingShare> {
        if self.rings.len() >= MAX_THREADS && !self.rings.contains_key(&key) {
            return None;
        }
        let new = || RingShare { tid, rate: Rate::default(), lost: 0 };
        let ring = self.rings.entry(key).or_insert_with(new);
        if tid != 0 {
            ring.tid = tid;
        }
        Some(ring)
    }

    fn count_lost(&mut self, cause: Cause, count: u64, now: u64) {
        let sum = match cause {
            Cause::Overrun => &mut self.lost_by.overrun,
            Cause::Disk => &mut self.lost_by.disk,
            Cause::Corrupt => &mut self.lost_by.corrupt,
            Cause::Unattended => &mut self.unattended,
            Cause::NoRing | Cause::Nested | Cause::NotMapped | Cause::LeftOut | Cause::Absent => {
                return;
            }
        };
        *sum = sum.saturating_add(count);
        if cause.is_loss() && count > 0 {
            self.lost.add(now, count);
        }
    }

    /// Reads all clock readings of the capture at `path` ahead, if it is a file. The length of a tick is
    /// known only after the second reading, and the first frames may precede it.
    ///
    /// # Errors
    /// The file is not a capture, or cannot be read.
    pub(crate) fn survey(&mut self, path: &Path) -> Result<(), CaptureError> {
        let Some(mut capture) = Capture::survey(path)? else { return Ok(()) };
        while let Some(item) = capture.read()? {
            if let CaptureItem::Chunk(Chunk::Clock(readings)) = item {
                self.clocks.add(&readings);
                self.surveyed += readings.len();
            }
        }
        Ok(())
    }

    fn add_readings(&mut self, readings: &[ClockReading]) {
        let surveyed = self.surveyed.min(readings.len());
        self.surveyed -= surveyed;
        self.readings.extend_from_slice(readings);
        self.clocks.add(&readings[surveyed..]);
        if self.readings.len() > MAX_READINGS {
            self.readings.drain(..self.readings.len() - MAX_READINGS / 2);
            self.former_errors = self.clock_errors();
            self.clocks = ClockTable::default();
            self.clocks.add(&self.readings);
        }
    }

    /// The largest errors from all readings so far.
    pub(crate) fn clock_errors(&self) -> ClockErrors {
        let ClockErrors { ticks, monotonic } = self.former_errors;
        ClockErrors {
            ticks: ticks.max(self.clocks.tick_error_ns()),
            monotonic: monotonic.max(self.clocks.epoch_error_ns()),
        }
    }

    /// The numbers of dropped frames of all sources.
    pub(crate) fn dropped(&self) -> Dropped {
        let mut sum = Dropped::default();
        self.dropped.values().for_each(|drops| sum += drops.dropped);
        sum
    }

    /// The latest frames, which can be written as a capture.
    pub fn latest(&self) -> Latest {
        Latest {
            header: self.header.clone().unwrap_or_default(),
            sources: self.sources.iter().map(|(id, source)| (*id, source.clone())).collect(),
            clocks: self.readings.clone(),
            chunks: self.latest.chunks(),
            drops: self.dropped.values().copied().collect(),
        }
    }
}
