//! The numbers of a running capture, for display.
//!
//! The disk thread and the caller add to them; both only store and never wait. A reader takes a
//! lock only for the time it takes to list the feeds.

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};
use std::time::Duration;

use ppt_capture::columns::frame_id;
use ppt_capture::frame_dsl::Schema;
use ppt_capture::{Dropped, Lost, Source};
use ppt_segment::Segment;
use ppt_segment::abi::ring_state;

use crate::account::FrameAccount;
use crate::buffer::WordBytes;
use crate::progress::{Counters, SinkCounters, high_water};
use crate::watched::RingFindings;

/// Number of ended feeds whose numbers are kept: thousands of children may come and go.
const MAX_ENDED: usize = 256;

/// The numbers of a capture.
#[derive(Debug)]
pub struct Tallies {
    counters: Arc<Counters>,
    sink: Arc<SinkCounters>,
    feeds: Mutex<BTreeMap<usize, Arc<FeedTally>>>,
}

/// The numbers that belong to no feed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct SessionTally {
    /// Frames that were copied out of rings.
    pub drained: u64,
    /// Drained frames that wait for the disk.
    pub waiting: u64,
    /// Bytes of the files.
    pub bytes: u64,
}

impl Tallies {
    pub(crate) fn new(counters: Arc<Counters>, sink: Arc<SinkCounters>) -> Self {
        Self { counters, sink, feeds: Mutex::default() }
    }

    fn locked(&self) -> MutexGuard<'_, BTreeMap<usize, Arc<FeedTally>>> {
        self.feeds.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(crate) fn enter(&self, feed: usize, source: &Source) -> Arc<FeedTally> {
        let tally = Arc::new(FeedTally::new(source));
        let mut feeds = self.locked();
        let ended = feeds.iter().filter(|(_, tally)| tally.ended_ns.load(Relaxed) > 0);
        let ended: Vec<usize> = ended.map(|(&feed, _)| feed).collect();
        for feed in ended.iter().take(ended.len().saturating_sub(MAX_ENDED)) {
            feeds.remove(feed);
        }
        feeds.insert(feed, tally.clone());
        tally
    }

    pub(crate) fn feed(&self, feed: usize) -> Option<Arc<FeedTally>> {
        self.locked().get(&feed).cloned()
    }

    /// The feeds in the order of their start. Ended feeds are kept until many others have ended.
    pub fn feeds(&self) -> Vec<Arc<FeedTally>> {
        self.locked().values().cloned().collect()
    }

    /// The numbers that belong to no feed.
    pub fn session(&self) -> SessionTally {
        let progress = self.counters.progress(&self.sink, Vec::new(), 0);
        let drained = self.counters.all_copied();
        SessionTally { drained, waiting: progress.waiting, bytes: progress.bytes }
    }
}

/// The numbers of one feed. They only grow.
#[derive(Debug)]
pub struct FeedTally {
    /// The process, in ppt's numbering.
    pub pid: u32,
    /// The name of the program.
    pub program: String,
    /// The buffer.
    pub buffer: String,
    /// The buffer's schema. `None` if it is invalid.
    pub schema: Option<Schema>,
    /// Whether frames carry their id.
    multi: bool,
    /// By frame id; the last element counts frames of unknown ids.
    captured: Box<[AtomicU64]>,
    lost: [AtomicU64; 3],
    left_out: AtomicU64,
    dropped: [AtomicU64; 3],
    adds_not_mapped: AtomicU64,
    /// The sum added to each cell of its counters and histograms.
    cells: Box<[AtomicU64]>,
    rings: Mutex<Vec<(Weak<Segment>, Arc<RingFindings>)>>,
    /// The time at which the feed ended, ns of CLOCK_MONOTONIC; 0 if it has not.
    ended_ns: AtomicU64,
}

/// Fill levels of rings: 1 is full.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub struct RingFill {
    /// Rings that threads own.
    pub rings: u32,
    /// The highest current level.
    pub most: f64,
    /// The mean current level.
    pub mean: f64,
    /// The highest level found when a ring was drained.
    pub peak: f64,
}

fn zeros(count: usize) -> Box<[AtomicU64]> {
    (0..count).map(|_| AtomicU64::new(0)).collect()
}

impl FeedTally {
    /// The numbers of a new feed.
    pub fn new(source: &Source) -> Self {
        let schema = Schema::from_json(&source.schema_json).ok();
        Self {
            pid: source.process.pid,
            program: source.process.comm.clone(),
            buffer: source.buffer.clone(),
            multi: schema.as_ref().is_some_and(Schema::multi),
            captured: zeros(schema.as_ref().map_or(0, |schema| schema.frames.len()) + 1),
            lost: Default::default(),
            left_out: AtomicU64::new(0),
            dropped: Default::default(),
            adds_not_mapped: AtomicU64::new(0),
            cells: zeros(schema.as_ref().map_or(0, |schema| schema.cells() as usize)),
            rings: Mutex::default(),
            ended_ns: AtomicU64::new(0),
            schema,
        }
    }

    /// Frames in the file, by frame id. The last element counts frames of unknown ids.
    pub fn captured(&self) -> Vec<u64> {
        self.captured.iter().map(|count| count.load(Relaxed)).collect()
    }

    /// Frames not in the file, by cause.
    pub fn lost(&self) -> Lost {
        let [overrun, disk, corrupt] = self.lost.each_ref().map(|count| count.load(Relaxed));
        Lost { overrun, disk, corrupt }
    }

    /// Frames that the filter left out of the file.
    pub fn left_out(&self) -> u64 {
        self.left_out.load(Relaxed)
    }

    /// Frames that the target refused.
    pub fn dropped(&self) -> Dropped {
        let [no_ring, nested, not_mapped] =
            self.dropped.each_ref().map(|count| count.load(Relaxed));
        Dropped { no_ring, nested, not_mapped }
    }

    /// Adds and observations that were lost because the target could not map its segment.
    pub fn adds_not_mapped(&self) -> u64 {
        self.adds_not_mapped.load(Relaxed)
    }

    /// The sum added to a cell since the session began, modulo 2^64, as the file states it.
    pub fn cell(&self, cell: u32) -> u64 {
        self.cells.get(cell as usize).map_or(0, |sum| sum.load(Relaxed))
    }

    /// Time since its last frame was processed, once no more can come.
    pub fn ended_since(&self) -> Option<Duration> {
        let ended = self.ended_ns.load(Relaxed);
        let since = || Duration::from_nanos(ppt_now::monotonic().saturating_sub(ended));
        (ended > 0).then(since)
    }

    /// The current fill levels of its rings.
    pub fn ring_fill(&self) -> RingFill {
        let mut fill = RingFill::default();
        let mut sum = 0.0;
        for (segment, found) in self.watched().iter() {
            let Some(segment) = segment.upgrade().filter(|segment| !segment.truncated()) else {
                continue;
            };
            let capacity = segment.geometry().capacity();
            fill.peak = fill.peak.max(high_water(found.peak.load(Relaxed), capacity));
            // A thread takes the lowest free ring, so all rings above a never claimed ring were
            // never claimed.
            let claimed = (0..segment.geometry().rings())
                .map(|ring| (ring, segment.ring(ring).owner()))
                .take_while(|(_, owner)| owner.epoch > 0);
            for (number, _) in claimed.filter(|(_, owner)| owner.state == ring_state::ACTIVE) {
                let drained = found.drained(number);
                let waiting = segment.ring(number).tail().saturating_sub(drained);
                let part = high_water(waiting, capacity);
                fill.rings += 1;
                fill.most = fill.most.max(part);
                sum += part;
            }
        }
        fill.mean = if fill.rings == 0 { 0.0 } else { sum / f64::from(fill.rings) };
        fill
    }

    fn watched(&self) -> MutexGuard<'_, Vec<(Weak<Segment>, Arc<RingFindings>)>> {
        self.rings.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Adds a segment, whose rings are watched from now on.
    pub(crate) fn watch(&self, segment: &Arc<Segment>, found: &Arc<RingFindings>) {
        let mut watched = self.watched();
        watched.retain(|(segment, _)| segment.strong_count() > 0);
        watched.push((Arc::downgrade(segment), found.clone()));
    }

    /// Counts frames of `stride` words that are in the file.
    pub(crate) fn take(&self, words: &[WordBytes], stride: usize) {
        let unknown = self.captured.len() - 1;
        if !self.multi {
            self.captured[0].fetch_add((words.len() / stride) as u64, Relaxed);
            return;
        }
        // Frames of one kind mostly come in runs.
        let mut run = (unknown, 0);
        for frame in words.chunks_exact(stride) {
            let id = usize::from(frame_id(frame.as_flattened())).min(unknown);
            if id != run.0 {
                self.captured[run.0].fetch_add(run.1, Relaxed);
                run = (id, 0);
            }
            run.1 += 1;
        }
        self.captured[run.0].fetch_add(run.1, Relaxed);
    }

    /// Applies a change of the account of one of its rings.
    pub(crate) fn account(&self, before: &FrameAccount, now: &FrameAccount) {
        let lost = now.lost - before.lost;
        for (sum, more) in self.lost.iter().zip([lost.overrun, lost.disk, lost.corrupt]) {
            sum.fetch_add(more, Relaxed);
        }
        self.left_out.fetch_add(now.left_out - before.left_out, Relaxed);
    }

    /// Records sums added to cells, as the file states them.
    pub fn add(&self, added: impl IntoIterator<Item = (u32, u64)>) {
        for (cell, add) in added {
            if let Some(sum) = self.cells.get(cell as usize) {
                sum.fetch_add(add, Relaxed);
            }
        }
    }

    pub(crate) fn drop_frames(&self, dropped: Dropped) {
        let Dropped { no_ring, nested, not_mapped } = dropped;
        for (sum, now) in self.dropped.iter().zip([no_ring, nested, not_mapped]) {
            sum.store(now, Relaxed);
        }
    }

    pub(crate) fn miss_adds(&self, adds: u64) {
        self.adds_not_mapped.store(adds, Relaxed);
    }

    /// No more frames come.
    pub(crate) fn end(&self) {
        self.ended_ns.store(ppt_now::monotonic().max(1), Relaxed);
    }
}
