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

use crate::frame_kind::{FrameKind, Memory};
use crate::keep::{Keep, Latest};
use crate::last_names::LastNames;
use crate::metrics::LiveMetrics;
use crate::rate::Rate;

/// The most frame types distinguished; frames of further types are counted together.
const MOST_KINDS: usize = 256;
/// The most fields of all types with sampled values.
const MOST_FIELDS: usize = 512;
/// Bytes of keys for exact distinct counts; beyond it, the number is estimated.
const KEYS: usize = 16 << 20;
/// The most threads distinguished.
const MOST_THREADS: usize = 4096;
/// The most clock readings remembered.
const MOST_READINGS: usize = 8192;
/// Length of a period in ns; reported values cover the latest one or two periods.
const STRETCH: u64 = 5_000_000_000;

/// The values reported.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum TallyRange {
    /// Values of the latest 5 to 10 seconds.
    Latest,
    /// All values.
    Whole,
}

/// The sums so far.
pub struct Tally {
    pub(crate) span: TallyRange,
    pub(crate) header: Option<FileHeader>,
    pub(crate) sources: BTreeMap<u16, Source>,
    /// By source and frame id: the index of the frame type.
    ids: HashMap<u16, Arc<[Option<usize>]>>,
    pub(crate) kinds: Vec<FrameKind>,
    pub(crate) metrics: LiveMetrics,
    fields: usize,
    keys: Budget,
    pub(crate) threads: HashMap<(u16, u64, u32), RingShare>,
    pub(crate) names: LastNames,
    pub(crate) clocks: ClockTable,
    /// The largest errors of ticks and of the monotonic clock, from readings no longer remembered,
    /// in ns.
    pub(crate) former_errors: (Option<u64>, Option<u64>),
    /// Readings to come that are already known from a survey.
    surveyed: usize,
    readings: Vec<ClockReading>,
    keep: Keep,
    /// CLOCK_MONOTONIC of the first and the latest drained frames and readings, in ns.
    pub(crate) drained: Option<(u64, u64)>,
    /// CLOCK_MONOTONIC of the last [`FrameKind::fade`], in ns.
    faded: u64,
    pub(crate) all: Rate,
    pub(crate) bytes: Rate,
    pub(crate) lost: Rate,
    /// Frames of types and threads that are unknown or not distinguished.
    pub(crate) other_kinds: Rate,
    pub(crate) other_threads: u64,
    pub(crate) lost_by: Lost,
    pub(crate) unattended: u64,
    dropped: HashMap<u16, Drops>,
    pub(crate) damages: u64,
    /// Why the capture ended, if it has.
    pub(crate) ended: Option<String>,
}

/// The period covered by the reported values.
fn stretch(span: TallyRange) -> Option<u64> {
    (span == TallyRange::Latest).then_some(STRETCH)
}

/// Identifies a process on its host.
fn process_of(source: &Source) -> u64 {
    let start = source.process.start_time;
    u64::from(source.process.pid) << 40 ^ start
}

/// A ring, which belongs to one thread.
pub(crate) struct RingShare {
    pub tid: u32,
    pub rate: Rate,
    pub lost: u64,
}

impl Tally {
    /// An empty tally. `keep`: the number of bytes of the latest frames that are kept.
    pub fn new(span: TallyRange, keep: usize) -> Tally {
        Tally {
            span,
            header: None,
            sources: BTreeMap::new(),
            ids: HashMap::new(),
            kinds: Vec::new(),
            metrics: LiveMetrics::new(stretch(span)),
            fields: 0,
            keys: Budget::new(KEYS),
            threads: HashMap::new(),
            names: LastNames::default(),
            clocks: ClockTable::default(),
            former_errors: (None, None),
            surveyed: 0,
            readings: Vec::new(),
            keep: Keep::new(keep),
            drained: None,
            faded: 0,
            all: Rate::default(),
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

    /// Adds the header of the capture.
    pub fn begin(&mut self, header: Option<&FileHeader>) {
        self.header = header.cloned();
    }

    /// Records that a damaged place was skipped.
    pub fn damage(&mut self) {
        self.damages += 1;
    }

    /// Adds the next chunk.
    pub fn add_chunk(&mut self, chunk: &Chunk<'_>) {
        match chunk {
            Chunk::Source(info) => {
                self.sources.insert(info.id, info.source.clone());
                self.name_kinds(info);
                self.metrics.source(info);
            }
            Chunk::Frames(frames) => self.frames(frames),
            Chunk::Gap(gap) => self.gap(gap),
            Chunk::Clock(readings) => self.clocks(readings),
            Chunk::Drops(drops) => {
                self.dropped.insert(drops.source, *drops);
            }
            Chunk::End(end) => {
                for &(source, dropped) in &end.drops {
                    let drops = Drops { source, dropped, mono_ns: end.mono_ns };
                    self.dropped.insert(source, drops);
                }
                let why = if end.message.is_empty() { end.reason.name() } else { &end.message };
                self.ended = Some(why.to_owned());
                self.finish();
            }
            Chunk::Threads(names) => {
                if let Some(source) = self.sources.get(&names.source) {
                    self.names.add(source.process.key(), names);
                }
            }
            Chunk::Cells(cells) => {
                self.metrics.read(cells);
                self.reach(cells.head.mono_ns);
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

    fn name_kinds(&mut self, info: &SourceInfo) {
        if self.ids.contains_key(&info.id) {
            return;
        }
        let (buffer, hash) = (info.source.buffer.as_str(), info.source.schema_hash);
        let stretch = stretch(self.span);
        let ids = info.schema.frames.iter().map(|frame| {
            let is_it = |kind: &FrameKind| {
                kind.name == frame.name && kind.buffer == buffer && kind.schema_hash == hash
            };
            if let Some(known) = self.kinds.iter().position(is_it) {
                return Some(known);
            }
            if frame.is_hidden() || self.kinds.len() == MOST_KINDS {
                return None;
            }
            let most = MOST_FIELDS - self.fields;
            let memory = Memory { stretch, most, budget: &self.keys };
            let kind = FrameKind::new((buffer, hash), &info.schema, frame, &memory);
            self.fields += kind.fields.len();
            self.kinds.push(kind);
            Some(self.kinds.len() - 1)
        });
        let ids = ids.collect();
        self.ids.insert(info.id, ids);
    }

    /// Advances the time to `ns`, at which the listener was active. Returns the latest time.
    fn reach(&mut self, ns: u64) -> u64 {
        let (first, last) = self.drained.unwrap_or((ns, ns));
        let now = last.max(ns);
        self.drained = Some((first, now));
        now
    }

    fn frames(&mut self, frames: &ChunkFrames<'_>) {
        let head = &frames.head;
        let now = self.reach(head.drained_mono_ns);

        let Some(ids) = self.ids.get(&head.source).cloned() else { return };
        let multi = frames.info.schema.multi();
        let mut rows: Vec<Vec<&[u8]>> = vec![Vec::new(); ids.len()];
        let mut others = 0;
        let mut count = 0;
        for (_, frame) in frames.iter() {
            count += 1;
            let id = if multi { usize::from(frame_id(frame)) } else { 0 };
            match rows.get_mut(id) {
                Some(rows) if ids[id].is_some() => rows.push(frame),
                _ => others += 1,
            }
        }
        let namespace = frames.info.source.process.time_namespace();
        let process = process_of(&frames.info.source);
        let stamps = Stamps::new(&self.clocks, head.drained_mono_ns, namespace);
        for (rows, id) in rows.iter().zip(ids.iter()) {
            if let (Some(kind), false) = (id, rows.is_empty()) {
                self.kinds[*kind].add(rows, process, now, &stamps);
            }
        }
        self.advance(now);
        if now.saturating_sub(self.faded) > STRETCH && self.span == TallyRange::Latest {
            self.kinds.iter_mut().for_each(FrameKind::fade);
            self.faded = now;
        }
        self.other_kinds.add(now, others);
        self.all.add(now, count);
        self.bytes.add(now, frames.bytes().len() as u64);
        let bad = u64::from(head.count).saturating_sub(count);
        let before = if frames.loss_is_new { head.lost_before } else { Lost::default() };
        self.lose(Cause::Overrun, before.overrun, now);
        self.lose(Cause::Disk, before.disk, now);
        self.lose(Cause::Corrupt, before.corrupt.saturating_add(bad), now);
        let lost = before.total().saturating_add(bad);
        match self.thread((head.source, head.nonce, head.ring), head.tid) {
            Some(thread) => {
                thread.rate.add(now, count);
                thread.lost = thread.lost.saturating_add(lost);
            }
            None => self.other_threads = self.other_threads.saturating_add(count),
        }
        self.keep.frames(*head, frames.loss_is_new, frames.bytes());
    }

    /// Pairs the spans with an order known at `now`, in ns of CLOCK_MONOTONIC.
    pub(crate) fn advance(&mut self, now: u64) {
        self.kinds.iter_mut().for_each(|kind| kind.advance(now));
    }

    /// No more chunks come: pairs all remaining spans.
    pub(crate) fn finish(&mut self) {
        let now = self.last();
        let spans = self.kinds.iter_mut().filter_map(|kind| kind.spans.as_mut());
        spans.for_each(|spans| spans.finish(now));
    }

    fn gap(&mut self, gap: &Gap) {
        let now = self.drained.map_or(0, |drained| drained.1);
        self.lose(gap.cause, gap.count, now);
        let is_loss = gap.cause.is_loss();
        if let Some(thread) = self.thread((gap.source, gap.nonce, gap.ring), 0)
            && is_loss
        {
            thread.lost = thread.lost.saturating_add(gap.count);
        }
        self.keep.gap(*gap);
    }

    fn thread(&mut self, key: (u16, u64, u32), tid: u32) -> Option<&mut RingShare> {
        if self.threads.len() >= MOST_THREADS && !self.threads.contains_key(&key) {
            return None;
        }
        let new = || RingShare { tid, rate: Rate::default(), lost: 0 };
        let thread = self.threads.entry(key).or_insert_with(new);
        // A gap does not identify the thread of its ring.
        if tid != 0 {
            thread.tid = tid;
        }
        Some(thread)
    }

    fn lose(&mut self, cause: Cause, count: u64, now: u64) {
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

    /// Reads the clocks of the capture at `path` ahead, if it is a file. The first frames may
    /// precede the second reading, and the length of a tick is unknown until then.
    ///
    /// # Errors
    /// It is not a capture, or cannot be read.
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

    fn clocks(&mut self, readings: &[ClockReading]) {
        let known = self.surveyed.min(readings.len());
        self.surveyed -= known;
        self.readings.extend_from_slice(&readings[..known]);
        let readings = &readings[known..];
        self.clocks.add(readings);
        self.readings.extend_from_slice(readings);
        if self.readings.len() > MOST_READINGS {
            self.readings.drain(..self.readings.len() - MOST_READINGS / 2);
            self.former_errors = self.clock_errors();
            self.clocks = ClockTable::default();
            self.clocks.add(&self.readings);
        }
    }

    /// The largest errors of a time by ticks and of a time by the monotonic clock, in ns; None: too
    /// few readings.
    pub(crate) fn clock_errors(&self) -> (Option<u64>, Option<u64>) {
        let (ticks, monotonic) = self.former_errors;
        (ticks.max(self.clocks.tick_error_ns()), monotonic.max(self.clocks.epoch_error_ns()))
    }

    /// The sum of what the writers rejected.
    pub(crate) fn dropped(&self) -> Dropped {
        let mut all = Dropped::default();
        self.dropped.values().for_each(|drops| all += drops.dropped);
        all
    }

    /// The latest frames, to be written as a capture.
    pub fn latest(&self) -> Latest {
        Latest {
            header: self.header.clone().unwrap_or_default(),
            sources: self.sources.iter().map(|(id, source)| (*id, source.clone())).collect(),
            clocks: self.readings.clone(),
            chunks: self.keep.chunks(),
            drops: self.dropped.values().copied().collect(),
        }
    }
}
