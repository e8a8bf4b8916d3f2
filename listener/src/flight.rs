//! The flight recorder: a sink that keeps frames in memory, and writes them when a trigger fires.
//!
//! It has two threads. The sink's own thread evaluates triggers, stores frames and closes windows.
//! Another thread writes the windows, so that a slow disk costs no frame. A window contains every
//! chunk with a frame in its time, and so a little more than asked for.

mod options;
mod shared;
mod store;
mod watch;
mod window;
mod windows;
mod writer;

use std::collections::{BTreeMap, BTreeSet};
use std::io;
use std::sync::Arc;
use std::sync::atomic::Ordering::Relaxed;
use std::sync::mpsc::{self, Sender};
use std::thread::{self, JoinHandle};
use std::time::Duration;

use ppt_capture::{
    Cause, ClockReading, Dropped, Flip, FramesHead, Lost, Modules, Source, Stretch, TriggerCause,
};

pub use options::{FlightOptions, LEAST_MEMORY};
pub use shared::{Flight, FlightProgress, News};
pub use watch::{TriggerHit, TriggerWatch};
pub use window::Content;
pub use writer::WindowFiles;

use crate::account::Closing;
use crate::buffer::Pool;
use crate::cadence::Cadence;
use crate::cells::{SegmentCells, cells_of};
use crate::chunk::Frames;
use crate::error::ListenerError;
use crate::origins::{Adds, DroppedByFeed};
use crate::sink::{Ending, Introduction, Sink, SinkOutcome};
use crate::thread_names::NameChanges;
use crate::threads::spawn;
use ppt_now::Clocks;
use shared::Shared;
use store::{Arrival, CellsRead, SegmentPlace, Store, TimedArrival};
use watch::Fired;
use window::FinishedWindow;
use windows::{Pending, Reach, TriggerOutcome, Windows};

/// The largest delay of a frame, ns. Frames are kept longer by this time.
const LATE_NS: u64 = 1_000_000_000;
/// Interval between checks whether an open window is over, ns.
const LOOK_NS: u64 = 10_000_000;
/// Time between the two clock readings before the first frame.
const APART: Duration = Duration::from_millis(5);
/// Number of windows that may wait for the disk. Each takes a little memory even if it shares its
/// frames.
const WAITING_WINDOWS: u64 = 1000;

fn in_ns(time: Duration) -> u64 {
    u64::try_from(time.as_nanos()).unwrap_or(u64::MAX)
}

/// State that all sinks of a listener share.
pub(crate) struct Surroundings {
    pub pool: Arc<Pool>,
    pub clocks: Clocks,
    pub dropped: Arc<DroppedByFeed>,
    pub adds: Arc<Adds>,
}

/// The recorder's state of a feed.
struct FlightFeed {
    /// The source, with all segments that it has had.
    source: Arc<Source>,
    /// Segments that may still produce frames.
    live: BTreeSet<usize>,
    cells: Vec<(SegmentPlace, SegmentCells)>,
    dropped: Dropped,
}

/// A segment that may still produce frames.
struct LiveSegment {
    place: SegmentPlace,
    /// The next sequence number of each ring that has produced frames.
    next: BTreeMap<u32, u64>,
    first: Vec<u64>,
    /// Frames for which there was no room. The next frames of the ring state them.
    missed: BTreeMap<u32, Lost>,
}

pub(crate) struct Recorder {
    options: FlightOptions,
    watch: Box<dyn TriggerWatch>,
    shared: Arc<Shared>,
    store: Store,
    windows: Windows<Fired>,
    feeds: BTreeMap<usize, FlightFeed>,
    segments: BTreeMap<usize, LiveSegment>,
    /// Everything written before this time has arrived, ns of CLOCK_MONOTONIC.
    upto: u64,
    around: Surroundings,
    cadence: Cadence,
    counters_due: u64,
    writer: Option<(Sender<FinishedWindow>, JoinHandle<()>)>,
    /// The error that prevents all windows from being written.
    trouble: Option<io::Error>,
    hits: Vec<TriggerHit>,
    /// Whether the loss of a window, because too many others wait, has been reported.
    reported_full: bool,
}

impl Recorder {
    pub fn new(
        options: FlightOptions,
        (watch, files): (Box<dyn TriggerWatch>, Box<dyn WindowFiles>),
        around: Surroundings,
    ) -> Result<(Self, Arc<Shared>), ListenerError> {
        let shared = Arc::new(Shared::default());
        let now = ppt_now::monotonic();
        let held = shared.held.clone();
        let reach = Reach::new(options.before, options.after, options.cooldown, options.keep);
        let (send, windows) = mpsc::channel();
        let (writes, codec) = (shared.clone(), options.compress);
        let mut files = files;
        let write = move || writer::run(&windows, &mut *files, codec, &writes);
        let thread = spawn("ppt-windows", write)?;
        let mut recorder = Self {
            store: Store::new(now, options.store_bytes(), held, around.pool.clone()),
            options,
            watch,
            shared: shared.clone(),
            windows: Windows::new(reach),
            feeds: BTreeMap::new(),
            segments: BTreeMap::new(),
            upto: now,
            cadence: Cadence::new(&around.clocks),
            around,
            counters_due: 0,
            writer: Some((send, thread)),
            trouble: None,
            hits: Vec::new(),
            reported_full: false,
        };
        recorder.read_clocks(now);
        // Tick conversion needs two readings.
        thread::sleep(APART);
        recorder.read_clocks(ppt_now::monotonic());
        Ok((recorder, shared))
    }

    fn read_clocks(&mut self, now: u64) {
        let readings: Arc<[ClockReading]> = self.around.clocks.readings().into();
        self.watch.clocks(&readings);
        self.keep(now, Arrival::Clocks(readings));
    }

    /// Stores what has just arrived, if there is room for it.
    fn keep(&mut self, now: u64, entry: Arrival) -> bool {
        while !self.store.has_room(&entry) {
            let Some(oldest) = self.store.oldest() else { return false };
            // Keeps the frames around a trigger: its window ends here.
            for window in self.windows.triggered_by(oldest) {
                self.close(window);
            }
            self.store.forget_oldest();
        }
        self.store.push(now, entry);
        true
    }

    fn trigger(&mut self, at: u64, fired: Fired) {
        let can_wait =
            matches!(fired.why, TriggerCause::On | TriggerCause::Gap | TriggerCause::Counter);
        let counts = match self.windows.trigger(at, can_wait, fired) {
            TriggerOutcome::Counts => &self.shared.triggers,
            TriggerOutcome::InCooldown => &self.shared.ignored,
            TriggerOutcome::TooMany => &self.shared.too_many,
        };
        counts.fetch_add(1, Relaxed);
    }

    /// The window is over: its available content goes into a file.
    fn close(&mut self, asked: Pending<Fired>) {
        // A user requested this very window.
        if self.shared.waiting() >= WAITING_WINDOWS && !asked.is_urgent() {
            if !std::mem::replace(&mut self.reported_full, true) {
                let error = io::Error::other("too many others wait for the disk");
                self.shared.send(News::GivenUp(error));
            }
            return self.shared.lose_window();
        }
        self.reported_full = false;
        let (whole_since, crowded) = self.store.whole_since();
        let held = Stretch {
            from_ns: whole_since.max(asked.wanted.from_ns).min(asked.wanted.to_ns),
            to_ns: self.upto.min(asked.wanted.to_ns).max(asked.wanted.from_ns),
        };
        let begins = asked.wanted.from_ns >= whole_since;
        let ends = asked.wanted.to_ns <= self.upto;
        let (base, items) = self.store.since(asked.wanted.from_ns);
        let of_items = FinishedWindow::feeds_of(&items);
        let of_triggers = |feed| asked.triggers.iter().any(|trigger| trigger.by.feed == Some(feed));
        let about = |feed: &usize, flight_feed: &FlightFeed| {
            !flight_feed.live.is_empty() || of_items.contains(feed) || of_triggers(*feed)
        };
        let feeds = self.feeds.iter().filter(|(feed, flight_feed)| about(feed, flight_feed));
        let feeds = feeds.map(|(&feed, flight_feed)| (feed, flight_feed.source.clone())).collect();
        let closed_ns = ppt_now::monotonic();
        let crowded = (!begins && crowded) || !ends;
        let weight = self.store.weigh(items.len() * size_of::<TimedArrival>());
        let window =
            FinishedWindow { asked, held, crowded, base, items, feeds, closed_ns, _weight: weight };
        self.shared.waits();
        let sent = self.writer.as_ref().is_some_and(|(send, _)| send.send(window).is_ok());
        if !sent {
            self.shared.settled();
            self.shared.lose_window();
        }
    }

    fn head(live: &LiveSegment, frames: &Frames) -> FramesHead {
        FramesHead {
            nonce: live.place.nonce,
            ring: frames.ring(),
            tid: frames.tid(),
            first_seq: frames.first_seq(),
            count: frames.count(),
            stride: live.place.stride,
            lost_before: frames.lost_before(),
            drained_mono_ns: frames.drained_ns(),
            drained_by_mono_ns: frames.drained_by_ns(),
            ..FramesHead::default()
        }
    }

    /// Evaluates the triggers on these frames, which arrived at `now`.
    fn look(&mut self, now: u64, frames: &Frames) {
        let Some(live) = self.segments.get(&frames.segment_number()) else { return };
        let place = live.place;
        let ring = Some((place.nonce, frames.ring()));
        let of_target = Lost { disk: 0, ..frames.lost_before() };
        let since = frames.chunk.since_ns;
        let head = Self::head(live, frames);
        let mut hits = std::mem::take(&mut self.hits);
        self.watch.frames(place.feed, &head, frames.bytes(), &mut hits);
        if self.options.on_gap && of_target.total() > 0 {
            let seqno = Some(frames.first_seq() - frames.lost_before().total());
            let note = format!("{} frames lost", of_target.total());
            let fired = Fired {
                ring,
                seqno,
                ..Fired::without_frame(TriggerCause::Gap, Some(place.feed), note)
            };
            self.trigger(since, fired);
        }
        for TriggerHit { seqno, mono_ns, expression } in hits.drain(..) {
            let feed = Some(place.feed);
            let why = TriggerCause::On;
            let seqno = Some(seqno);
            // The time in a frame comes from the target and may be wrong.
            let earliest = now.saturating_sub(in_ns(self.options.keep)).min(since);
            let at = mono_ns.unwrap_or(frames.drained_ns()).clamp(earliest, now);
            self.trigger(at, Fired { why, expression, feed, ring, seqno, note: String::new() });
        }
        self.hits = hits;
    }

    /// Reads counters and histograms of feed `only`, or of all feeds.
    fn read_cells(&mut self, now: u64, only: Option<usize>) {
        let adds = self.around.adds.lock().map(|add| add.clone()).unwrap_or_default();
        let (mut come, mut triggers) = (Vec::new(), Vec::new());
        for (&feed, flight_feed) in
            self.feeds.iter_mut().filter(|(feed, _)| only.is_none_or(|only| only == **feed))
        {
            let not_mapped = adds.get(&feed).copied().unwrap_or_default();
            let mut added: BTreeMap<u32, u64> = BTreeMap::new();
            for (place, readings) in &mut flight_feed.cells {
                for reading in readings.read() {
                    for (cell, add) in readings.added(&reading) {
                        let sum = added.entry(cell).or_default();
                        *sum = sum.wrapping_add(add);
                    }
                    let rows = reading.adds();
                    readings.stated(reading);
                    let read = CellsRead { place: *place, mono_ns: now, not_mapped, rows };
                    come.push(Arrival::Cells(Arc::new(read)));
                }
            }
            for expression in self.watch.added(feed, &added) {
                let fired = Fired::without_frame(TriggerCause::Counter, Some(feed), String::new());
                triggers.push(Fired { expression, ..fired });
            }
        }
        for entry in come {
            self.keep(now, entry);
        }
        triggers.into_iter().for_each(|fired| self.trigger(now, fired));
    }

    fn read_dropped(&mut self, now: u64, totals: &[Dropped]) {
        let mut news = Vec::new();
        for (&feed, flight_feed) in &mut self.feeds {
            let dropped = totals.get(feed).copied().unwrap_or_default();
            if dropped != flight_feed.dropped {
                flight_feed.dropped = dropped;
                news.push(Arrival::Dropped(feed, dropped));
            }
        }
        for entry in news {
            self.keep(now, entry);
        }
    }

    /// Forgets feeds that have ended and have nothing in memory.
    fn forget_feeds(&mut self) {
        if !self.windows.are_none() {
            // An open trigger may concern a feed.
            return;
        }
        let (store, feeds) = (&mut self.store, &mut self.feeds);
        let ended: Vec<usize> = feeds
            .iter()
            .filter(|(feed, flight_feed)| flight_feed.live.is_empty() && !store.has(**feed))
            .map(|(&feed, _)| feed)
            .collect();
        for feed in ended {
            feeds.remove(&feed);
            store.forget(feed);
        }
    }

    fn take_asked(&mut self) {
        for (at, fired) in self.shared.asked() {
            self.trigger(at, fired);
        }
    }

    fn introduce_one(&mut self, now: u64, new: &Introduction) {
        let geometry = new.segment.geometry();
        let nonce = new.segment.nonce();
        let place = SegmentPlace { feed: new.feed, nonce, stride: geometry.stride() };
        let feed = self.feeds.entry(new.feed).or_insert_with(|| FlightFeed {
            source: Arc::new(new.source.clone()),
            live: BTreeSet::new(),
            cells: Vec::new(),
            dropped: Dropped::default(),
        });
        let mut source = new.source.clone();
        for former in &feed.source.segments {
            if source.segments.iter().all(|segment| segment.nonce != former.nonce) {
                source.segments.push(*former);
            }
        }
        feed.source = Arc::new(source);
        feed.live.insert(new.segment_number);
        let cells = cells_of(&new.source);
        if cells > 0 && feed.cells.iter().all(|(place, _)| place.nonce != nonce) {
            let readings = SegmentCells::new(new.segment.clone(), new.cells.clone(), cells);
            feed.cells.extend(readings.map(|reading| (place, reading)));
        }
        let (next, missed) = Default::default();
        let live = LiveSegment { place, next, first: new.first.clone(), missed };
        self.segments.insert(new.segment_number, live);
        for gap in &new.gaps {
            self.keep(now, Arrival::Gap(new.feed, *gap));
        }
    }
}

impl Sink for Recorder {
    fn introduce(&mut self, new: &[Introduction]) {
        let now = ppt_now::monotonic();
        let named: Vec<_> =
            new.iter().map(|introduction| (introduction.feed, &introduction.source)).collect();
        self.watch.introduce(&named);
        new.iter().for_each(|introduction| self.introduce_one(now, introduction));
    }

    fn frames(&mut self, frames: &Frames) {
        let now = ppt_now::monotonic();
        let number = frames.segment_number();
        let ring = frames.ring();
        let Some(live) = self.segments.get_mut(&number) else { return };
        let mut lost_before = frames.lost_before();
        lost_before += live.missed.remove(&ring).unwrap_or_default();
        live.next.insert(ring, frames.chunk.next_seq());
        let place = live.place;
        let entry = Arrival::Frames { place, frames: frames.compact(), lost_before };
        if !self.keep(now, entry) {
            self.store.missed(now);
            self.shared.missed.fetch_add(u64::from(frames.count()), Relaxed);
            lost_before.add(Cause::Disk, frames.count().into());
            if let Some(live) = self.segments.get_mut(&number) {
                live.missed.insert(ring, lost_before);
            }
        }
        self.look(now, frames);
        self.shared.frames.fetch_add(frames.count().into(), Relaxed);
    }

    fn masks(&mut self, feed: usize, flip: &Arc<Flip>) {
        let entry = Arrival::Masks(feed, flip.clone());
        if !self.keep(ppt_now::monotonic(), entry.clone()) {
            // Without it, the windows would misinterpret their frames.
            self.store.push(ppt_now::monotonic(), entry);
        }
    }

    fn thread_names(&mut self, feed: usize, changes: &Arc<NameChanges>) {
        // A window is complete without them.
        self.keep(ppt_now::monotonic(), Arrival::Threads(feed, changes.clone()));
    }

    fn modules(&mut self, feed: usize, modules: &Modules) {
        // A window is complete without them.
        self.keep(ppt_now::monotonic(), Arrival::Modules(feed, modules.clone()));
    }

    fn gone(&mut self, segment_number: usize, closings: &[Closing]) {
        let now = ppt_now::monotonic();
        let Some(mut live) = self.segments.remove(&segment_number) else { return };
        let place = live.place;
        for closing in closings {
            let ring = closing.ring;
            let first = live.first.get(ring as usize).map_or(1, |first| first.saturating_add(1));
            let next = live.next.get(&ring).copied().unwrap_or(first);
            let missing = closing.next_seq.saturating_sub(next);
            let mut lost = if missing > 0 { closing.lost } else { Lost::default() };
            lost.add(Cause::Disk, missing.saturating_sub(lost.total()));
            let of_target = Lost { disk: 0, ..lost };
            let missed = live.missed.remove(&ring).unwrap_or_default();
            let first_seq = next - missed.total();
            lost += missed;
            if lost.total() == 0 {
                continue;
            }
            self.keep(now, Arrival::Lost { place, ring, first_seq, lost });
            if self.options.on_gap && of_target.total() > 0 {
                let note = format!("{} frames lost", of_target.total());
                let fired = Fired {
                    ring: Some((place.nonce, ring)),
                    seqno: Some(next),
                    ..Fired::without_frame(TriggerCause::Gap, Some(place.feed), note)
                };
                self.trigger(now, fired);
            }
        }
        self.read_cells(now, Some(place.feed));
        if let Some(feed) = self.feeds.get_mut(&place.feed) {
            feed.live.remove(&segment_number);
            if feed.live.is_empty() {
                feed.cells.clear();
            }
        }
    }

    fn upto(&mut self, mono_ns: u64) {
        self.upto = self.upto.max(mono_ns);
    }

    fn due(&self) -> u64 {
        let mut next = self.cadence.next();
        if self.feeds.values().any(|feed| !feed.cells.is_empty()) {
            next = next.min(self.counters_due);
        }
        if !self.windows.are_none() {
            next = next.min(ppt_now::monotonic() + LOOK_NS);
        }
        next
    }

    fn tick(&mut self) {
        let now = ppt_now::monotonic();
        self.take_asked();
        if self.cadence.is_due(now, &self.around.clocks) {
            self.read_clocks(now);
            let totals =
                self.around.dropped.lock().map(|dropped| dropped.clone()).unwrap_or_default();
            self.read_dropped(now, &totals);
            self.forget_feeds();
        }
        if now >= self.counters_due {
            self.counters_due = now.saturating_add(in_ns(self.options.counters));
            self.read_cells(now, None);
        }
        let over = self.windows.over(self.upto);
        if !over.is_empty() {
            // Stamps of a short window need more clock readings than one per second.
            self.read_clocks(now);
            over.into_iter().for_each(|window| self.close(window));
        }
        let keep = in_ns(self.options.keep);
        let old = self.upto.saturating_sub(keep.saturating_add(LATE_NS));
        self.store.forget_before(old.min(self.windows.begin().unwrap_or(u64::MAX)));
    }

    fn end(mut self: Box<Self>, ending: &Ending) -> SinkOutcome {
        let now = ppt_now::monotonic();
        self.read_cells(now, None);
        self.read_clocks(now);
        self.read_dropped(now, &ending.dropped);
        self.take_asked();
        // Nothing more arrives: open windows end with the session.
        self.upto = u64::MAX;
        for mut window in self.windows.over(u64::MAX) {
            window.wanted.to_ns = window.wanted.to_ns.min(now).max(window.first);
            self.close(window);
        }
        self.shared.end(self.options.patience);
        if let Some((send, thread)) = self.writer.take() {
            drop(send);
            if thread.join().is_err() {
                self.trouble = Some(io::Error::other("the thread that writes windows has failed"));
            }
        }
        let complete = self.trouble.is_none();
        SinkOutcome { error: self.trouble.take(), complete }
    }
}
