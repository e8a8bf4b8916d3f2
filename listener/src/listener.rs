//! Starts the threads, and combines their results when they have ended.

use std::collections::BTreeSet;
use std::fmt;
use std::io::{self, Write};
use std::os::fd::{AsFd, BorrowedFd};
use std::panic;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed, Ordering::Release};
use std::sync::mpsc::{self, Receiver, Sender};
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError};
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};

use nix::sys::eventfd::{EfdFlags, EventFd};
use ppt_capture::{Dropped, EndReason, FileHeader, Flip, MAX_SOURCES, Modules, Packer};

use crate::buffer::Pool;
use crate::drain::{Drain, DrainedSegment};
use crate::error::ListenerError;
use crate::feed::{Feed, FeedChange};
use crate::flight::{
    Flight, FlightOptions, LEAST_MEMORY, Recorder, Surroundings, TriggerWatch, WindowFiles,
};
use crate::introductions::{introduction, stamps};
use crate::keeper::{self, KeptSegment};
use crate::lanes::Lanes;
use crate::ledger::Ledger;
use crate::open::OpenFile;
use crate::options::ListenerOptions;
use crate::origins::{Adds, DroppedByFeed};
use crate::progress::{Counters, Progress};
use crate::queue::QueueItem;
use crate::recording::Recording;
use crate::rotate::Rotation;
use crate::sink::{Ending, Introduction, Sink, SinkOutcome};
use crate::summary::{
    BrokenRing, CaptureSummary, ExtraSinkSummary, FeedSummary, Undersized, enough_slots,
};
use crate::tally::{FeedTally, Tallies};
use crate::thread_names::NameChanges;
use crate::threads::spawn;
use crate::watched::{WatchedFeed, WatchedSegment};
use crate::worker::Worker;
use ppt_capture::stamps::Stamps;
use ppt_now::Clocks;

/// A capture that is being written.
///
/// [`Listener::finish`] ends it. A listener that is dropped instead leaves a capture without an
/// end, as if the process had been killed.
pub struct Listener {
    feeds: Vec<WatchedFeed>,
    /// Number of segments of all feeds.
    segments: usize,
    /// Whether it continues in other files, which omit feeds that have ended.
    rotates: bool,
    counters: Arc<Counters>,
    /// The worker of the capture, and those of further sinks.
    capture: Worker,
    beside: Vec<Worker>,
    pool: Arc<Pool>,
    ledger: Arc<Mutex<Ledger>>,
    told: Arc<DroppedByFeed>,
    adds: Arc<Adds>,
    tallies: Option<Arc<Tallies>>,
    clocks: Clocks,
    stop: Arc<AtomicBool>,
    keeper: Option<JoinHandle<()>>,
    kept: Sender<FeedChange<KeptSegment>>,
    drain: Option<JoinHandle<()>>,
    drained: Sender<FeedChange<DrainedSegment>>,
    started: Instant,
    patience: Duration,
}

impl Listener {
    /// Begins a capture of `feeds` in `out`, which should not buffer. More feeds can be
    /// [added](Self::add).
    ///
    /// When this returns, the capture describes the sources of frames, and the listener drains
    /// everything after the starting cursors: the gates can be opened.
    ///
    /// # Errors
    /// The output fails, or no thread can be started.
    pub fn start<W: Write + Send + 'static>(
        out: W,
        header: FileHeader,
        feeds: Vec<Feed>,
        options: ListenerOptions,
    ) -> Result<Self, ListenerError> {
        Self::rotating(out, header, feeds, options, None)
    }

    /// The same for a capture that may continue in other files.
    ///
    /// # Errors
    /// Those of [`start`](Self::start).
    pub fn rotating<W: Write + Send + 'static>(
        out: W,
        header: FileHeader,
        feeds: Vec<Feed>,
        options: ListenerOptions,
        rotation: Option<Rotation<W>>,
    ) -> Result<Self, ListenerError> {
        Self::begin(out, header, feeds, options, rotation)?.start()
    }

    /// The same in two steps: when this returns, the capture can be read, but no thread runs yet.
    /// The rings are drained once it is [started](PreparedListener::start).
    ///
    /// # Errors
    /// The output fails, or there are more sources than a capture can hold.
    pub fn begin<W: Write + Send + 'static>(
        out: W,
        header: FileHeader,
        mut feeds: Vec<Feed>,
        options: ListenerOptions,
        rotation: Option<Rotation<W>>,
    ) -> Result<PreparedListener, ListenerError> {
        complete(&mut feeds, 0, 0)?;
        let (wake, undersized) = (event()?, event()?);
        let counters = Arc::new(Counters::new(undersized));
        let mut capture = Worker::new(wake, options.queue_bytes, options.behind.clone());
        capture.keeps_time = true;
        let clocks = Clocks {
            ticks: options.ticks,
            distrusted: Arc::new(AtomicBool::new(options.distrust_ticks)),
        };
        let file =
            OpenFile::create(out, &header, &capture.counters).map_err(ListenerError::Output)?;

        let (ledger, told) = Default::default();
        let (kept, keep) = mpsc::channel();
        let (drained, changes) = mpsc::channel();
        let tallies = || Arc::new(Tallies::new(counters.clone(), capture.counters.clone()));
        let tallies = options.tally.then(tallies);
        let mut listener = Self {
            feeds: Vec::new(),
            segments: 0,
            rotates: rotation.as_ref().is_some_and(Rotation::is_wanted),
            counters,
            capture,
            beside: Vec::new(),
            pool: Arc::default(),
            ledger,
            told,
            adds: Arc::default(),
            tallies,
            clocks,
            stop: Arc::default(),
            keeper: None,
            kept,
            drain: None,
            drained,
            started: Instant::now(),
            patience: options.patience,
        };

        let introductions = listener.enter(&feeds);
        let mut recording = Recording::new(
            (file, Packer::new(options.compress)),
            (options.max_size, rotation, options.counters),
            listener.capture.counters.clone(),
            (listener.ledger.clone(), listener.told.clone(), listener.adds.clone()),
            listener.clocks.clone(),
        );
        if let Some(filter) = &options.filter {
            recording.filter(filter.clone());
        }
        recording.begin(&introductions).map_err(ListenerError::Output)?;
        let sinks = vec![Box::new(recording) as _];
        Ok(PreparedListener { listener, sinks, feeds, introductions, keep, changes, options })
    }

    /// Starts the threads, which do nothing before `begin` is true: one for each of `sinks`, which
    /// are the capture and the further sinks.
    fn spawn(
        &mut self,
        begin: &Arc<OnceLock<bool>>,
        sinks: Vec<Box<dyn Sink>>,
        keep: Receiver<FeedChange<KeptSegment>>,
        (changes, options): (Receiver<FeedChange<DrainedSegment>>, ListenerOptions),
    ) -> Result<(), ListenerError> {
        let mut lanes = Vec::new();
        let workers = [&mut self.capture].into_iter().chain(&mut self.beside);
        for (worker, sink) in workers.zip(sinks) {
            lanes.push(worker.lane());
            let (job, when) = (worker.job(self.pool.clone(), sink), begin.clone());
            let name = if lanes.len() == 1 { "ppt-disk" } else { "ppt-sink" };
            // Not joined: it may be stuck in a write for a long time.
            spawn(name, move || _ = when.wait().then(job))?;
        }
        let (counters, stop, when) = (self.counters.clone(), self.stop.clone(), begin.clone());
        let keeper = move || _ = when.wait().then(|| keeper::run(&keep, &counters, &stop));
        let keeper = spawn("ppt-keeper", keeper)?;
        let keeper_thread = keeper.thread().clone();
        self.keeper = Some(keeper);
        let lanes = Lanes::new(lanes, self.pool.clone());
        let (counters, stop) = (self.counters.clone(), self.stop.clone());
        let drain = Drain { changes, lanes, counters, stop, keeper: keeper_thread, options };
        let when = begin.clone();
        self.drain = Some(spawn("ppt-drain", move || _ = when.wait().then(|| drain.run()))?);
        Ok(())
    }

    fn workers(&self) -> impl Iterator<Item = &Worker> {
        [&self.capture].into_iter().chain(&self.beside)
    }

    /// Introduces segments to every sink.
    fn introduce(&self, new: &Arc<[Introduction]>) {
        self.workers().for_each(|worker| worker.queue.introduce(new.clone()));
    }

    /// The system no longer trusts the CPU's counter; the capture states that.
    pub fn distrust_ticks(&self) {
        self.clocks.distrusted.store(true, Relaxed);
    }

    /// Adds feeds to a running capture; they are numbered from [`Self::feeds`] on. As with
    /// [`Self::start`], their gates can be opened now, or are open already.
    ///
    /// # Errors
    /// The capture has no room for more sources, or cannot be written.
    pub fn add(&mut self, mut feeds: Vec<Feed>) -> Result<(), ListenerError> {
        // Feeds that have ended leave room in the next file.
        let over = if self.rotates { self.capture.counters.sources_ended() } else { 0 };
        complete(&mut feeds, self.feeds.len(), over)?;
        let introductions = self.enter(&feeds);
        let stamps = stamps(&introductions);
        // Before the drain knows of them, so that the file has the source of every frame in the
        // queue.
        self.introduce(&introductions);
        self.hand_over_all(feeds, stamps);
        Ok(())
    }

    /// Continues feed `feed` in another segment, that of `more`, whose source lists all of its
    /// segments. The former ones are drained until they are [retired](Self::retire_segment).
    ///
    /// # Panics
    /// If there is no such feed.
    ///
    /// # Errors
    /// The capture cannot be written.
    pub fn extend(&mut self, feed: usize, mut more: Feed) -> Result<(), ListenerError> {
        assert!(feed < self.feeds.len());
        more.complete(feed)?;
        let tally = self.tallies.as_ref().and_then(|tallies| tallies.feed(feed));
        let news = introduction(feed, self.segments, &more, tally);
        let stamps = news.stamps.clone();
        self.introduce(&[news].into());
        self.hand_over(feed, more, stamps);
        self.wake_threads();
        Ok(())
    }

    /// Opens an account for each of `feeds`, which get the next numbers.
    fn enter(&mut self, feeds: &[Feed]) -> Arc<[Introduction]> {
        self.reported().resize(self.feeds.len() + feeds.len(), Dropped::default());
        let numbered = (self.feeds.len()..).zip(self.segments..).zip(feeds);
        numbered
            .map(|((number, segment_number), feed)| {
                let tallies = self.tallies.as_ref();
                let tally = tallies.map(|tallies| tallies.enter(number, &feed.source));
                introduction(number, segment_number, feed, tally)
            })
            .collect()
    }

    /// Passes feeds that have been entered to keeper and drain.
    fn hand_over_all(&mut self, feeds: Vec<Feed>, stamps: Vec<Arc<Stamps>>) {
        for (feed, stamps) in feeds.into_iter().zip(stamps) {
            self.feeds.push(WatchedFeed { segments: Vec::new() });
            self.hand_over(self.feeds.len() - 1, feed, stamps);
        }
        self.wake_threads();
    }

    /// The same for one segment.
    fn hand_over(&mut self, number: usize, feed: Feed, stamps: Arc<Stamps>) {
        let segment = WatchedSegment::new(self.segments, feed.segment.clone(), &feed.first);
        if let Some(tally) = self.tally(number) {
            tally.watch(&feed.segment, &segment.seen);
        }
        let watched = (feed.segment.clone(), segment.seen.clone());
        let populated = (feed.populated, &feed.first[..]);
        let kept = KeptSegment::new(segment.number, feed.segment, populated, feed.alive);
        let drained = DrainedSegment::new(segment.number, watched, stamps, feed.first);
        self.segments += 1;
        self.feeds[number].segments.push(segment);
        // Sending fails only if the thread has panicked, which `finish` passes on.
        let _ = self.drained.send(FeedChange::Add(drained));
        let _ = self.kept.send(FeedChange::Add(kept));
    }

    fn wake_threads(&self) {
        // They may be in a long sleep.
        self.keeper.iter().for_each(|thread| thread.thread().unpark());
        self.drain.iter().for_each(|thread| thread.thread().unpark());
    }

    fn reported(&self) -> MutexGuard<'_, Vec<Dropped>> {
        self.told.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The number of feeds so far.
    pub fn feeds(&self) -> usize {
        self.feeds.len()
    }

    /// Drains the rest of the rings of `feed`, and then releases them: its target is gone. Its
    /// account stays. Report what it [dropped](Self::dropped) before this call.
    ///
    /// # Panics
    /// If there is no such feed.
    pub fn retire(&mut self, feed: usize) {
        self.retire_where(feed, |_| true);
    }

    /// Drains the rest of the rings of segment `nonce`, and then releases them: no thread will
    /// write into it any more. The feed's other segments stay.
    ///
    /// # Panics
    /// If there is no such feed.
    pub fn retire_segment(&mut self, feed: usize, nonce: u64) {
        self.retire_where(feed, |segment| segment.nonce == nonce);
    }

    fn retire_where(&mut self, feed: usize, which: impl Fn(&WatchedSegment) -> bool) {
        for segment in self.feeds[feed].segments.iter_mut().filter(|segment| which(segment)) {
            if segment.retire() {
                let _ = self.kept.send(FeedChange::Retire(segment.number));
                let _ = self.drained.send(FeedChange::Retire(segment.number));
            }
        }
        self.wake_threads();
    }

    /// The current progress.
    pub fn progress(&self) -> Progress {
        let rings = self.feeds.iter().map(WatchedFeed::owned).sum();
        let high_water = self.feeds.iter().map(WatchedFeed::high_water).collect();
        self.counters.progress(&self.capture.counters, high_water, rings)
    }

    /// The numbers of the running capture, if they are [kept](ListenerOptions::tally).
    pub fn tallies(&self) -> Option<Arc<Tallies>> {
        self.tallies.clone()
    }

    fn tally(&self, feed: usize) -> Option<Arc<FeedTally>> {
        self.tallies.as_ref()?.feed(feed)
    }

    /// A descriptor that becomes readable when the rings of another feed turn out to be too small:
    /// frames were overwritten before they could be read, or a ring was more than seven eighths
    /// full although it was polled at the highest rate. [`Self::undersized`] returns the feeds.
    pub fn undersized_fd(&self) -> BorrowedFd<'_> {
        self.counters.undersized().as_fd()
    }

    /// The feeds whose last segment has too small rings, and the number of slots that would have
    /// sufficed. A feed counts as undersized until it is [extended](Self::extend). After this call
    /// the descriptor is not readable.
    pub fn undersized(&self) -> Vec<Undersized> {
        // This fails if there is nothing to read.
        let _ = self.counters.undersized().read();
        let feeds = (0..).zip(&self.feeds);
        let of = |(feed, watched): (usize, &WatchedFeed)| {
            Some(Undersized { feed, enough_slots: watched.undersized()? })
        };
        feeds.filter_map(of).collect()
    }

    /// A descriptor that becomes readable, and stays so, when the capture has ended by itself: the
    /// file cannot be written, or has reached its maximum size. Then close the gates and call
    /// [`Self::finish`]. Until then all frames are drained and counted as lost by `disk`.
    pub fn wake(&self) -> BorrowedFd<'_> {
        self.capture.counters.wake().as_fd()
    }

    /// Whether the segment of `feed` was given up because it was truncated: no more frames come
    /// from it.
    ///
    /// # Panics
    /// If there is no such feed.
    pub fn truncated(&self, feed: usize) -> bool {
        self.feeds[feed].truncated()
    }

    /// Reports the number of frames that the target of `feed` has refused since the session began.
    /// The capture states it within about a second if it changed.
    ///
    /// # Panics
    /// If there is no such feed.
    pub fn dropped(&self, feed: usize, dropped: Dropped) {
        self.reported()[feed] = dropped;
        if let Some(tally) = self.tally(feed) {
            tally.drop_frames(dropped);
        }
    }

    /// Reports the number of adds and observations of `feed` that were lost since the session
    /// began, because its target could not map the segment. The capture states it with the next
    /// reading of counters.
    pub fn adds_not_mapped(&self, feed: usize, adds: u64) {
        let mut all = self.adds.lock().unwrap_or_else(PoisonError::into_inner);
        all.insert(feed, adds);
        drop(all);
        if let Some(tally) = self.tally(feed) {
            tally.miss_adds(adds);
        }
    }

    /// Reports a change of the masks of a segment of `feed`. The capture states it; the file adds
    /// the source number.
    pub fn masks(&self, feed: usize, flip: Flip) {
        let flip = Arc::new(flip);
        self.workers().for_each(|worker| worker.queue.masks(feed, flip.clone()));
    }

    /// Reports the threads of the process of `feed` that got a new name, and those that ended. The
    /// capture states the names if it has room.
    pub fn thread_names(&self, feed: usize, changes: NameChanges) {
        let changes = Arc::new(changes);
        self.workers().for_each(|worker| worker.queue.thread_names(feed, changes.clone()));
    }

    /// Reports the code mappings of the process of `feed`. The capture states them if it has room.
    pub fn modules(&self, feed: usize, modules: &Modules) {
        self.workers().for_each(|worker| worker.queue.modules(feed, modules.clone()));
    }

    /// Ends the capture: drains up to the current cursors, and writes the queued frames and the
    /// end.
    ///
    /// Call it when the gates are closed or the targets gone. Otherwise frames written from now on
    /// may or may not be in the capture, and are in neither case counted as lost. `dropped` is what
    /// each target refused since the session began; a missing entry stands for the last reported
    /// value. This takes as long as the disk does, but no longer than
    /// [`ListenerOptions::patience`].
    pub fn finish(
        mut self,
        reason: EndReason,
        message: String,
        dropped: Vec<Dropped>,
    ) -> CaptureSummary {
        let duration = self.started.elapsed();
        if let Err(panic) = self.halt() {
            panic::resume_unwind(panic);
        }
        let mut told = self.reported().clone();
        told.iter_mut().zip(dropped).for_each(|(told, dropped)| *told = dropped);
        let ending = Ending { reason, message, dropped: told.clone() };
        self.workers().for_each(|worker| worker.end(ending.clone()));
        let until = Instant::now() + self.patience;
        let outcome = self.capture.outcome(until);
        let beside = self.beside.iter().map(|worker| worker.beside(until)).collect();
        let ledger = self.final_ledger();
        self.summary(duration, outcome, beside, ledger, &told)
    }

    /// Stops the keeper, and stops the drain after a last pass.
    fn halt(&mut self) -> thread::Result<()> {
        self.stop.store(true, Release);
        self.wake_threads();
        self.keeper.take().map_or(Ok(()), JoinHandle::join)?;
        self.drain.take().map_or(Ok(()), JoinHandle::join)
    }

    /// The final accounts. Frames that the disk thread has not processed never reach the file.
    fn final_ledger(&self) -> Ledger {
        let left = self.capture.queue.abandon();
        let mut ledger = self.ledger.lock().unwrap_or_else(PoisonError::into_inner).clone();
        for item in left {
            match item {
                // The closing of its ring states these.
                QueueItem::Frames(_)
                | QueueItem::Masks(..)
                | QueueItem::Threads(..)
                | QueueItem::Modules(..)
                | QueueItem::Upto(_)
                | QueueItem::Call => {}
                QueueItem::Sources(new) => new.iter().for_each(|introduction| {
                    ledger.open(
                        introduction.segment_number,
                        (introduction.feed, introduction.segment.nonce()),
                        introduction.first.clone(),
                    );
                }),
                QueueItem::Gone(segment_number, closings) => {
                    _ = ledger.close(segment_number, &closings);
                }
            }
        }
        ledger
    }

    fn summary(
        &self,
        duration: Duration,
        outcome: SinkOutcome,
        beside: Vec<ExtraSinkSummary>,
        ledger: Ledger,
        dropped: &[Dropped],
    ) -> CaptureSummary {
        let progress = self.progress();
        let mut feeds: Vec<FeedSummary> = dropped
            .iter()
            .map(|&dropped| FeedSummary { dropped, ..FeedSummary::default() })
            .collect();
        // The cursors of broken rings do not show how full the rings were.
        let mut misled = BTreeSet::new();
        for entry in ledger.into_all() {
            let account = entry.account;
            if entry.broken.is_some() {
                misled.insert((account.feed, account.nonce));
            }
            let feed = &mut feeds[account.feed];
            feed.captured += account.captured;
            feed.lost += account.lost;
            feed.left_out += account.left_out;
            let truncated = self.feeds[account.feed].truncated();
            if let Some(cursor) = entry.broken.filter(|_| !truncated) {
                feed.broken.push(BrokenRing { ring: account.ring, cursor });
            }
            if entry.is_listed() {
                feed.rings.push(account);
            }
        }
        for (number, (feed, watched)) in feeds.iter_mut().zip(&self.feeds).enumerate() {
            feed.truncated = watched.truncated();
            feed.high_water = watched.high_water();
            let sound = |segment: &&WatchedSegment| !misled.contains(&(number, segment.nonce));
            let enough = watched.segments.iter().filter(sound).filter_map(|segment| {
                let rings = feed.rings.iter().filter(|ring| ring.nonce == segment.nonce);
                let overrun = rings.map(|ring| ring.lost.overrun).sum();
                enough_slots(segment.peak(), segment.geometry.slots(), overrun)
            });
            feed.enough_slots = enough.max();
        }
        CaptureSummary {
            feeds,
            bytes: progress.bytes,
            duration,
            ended: progress.ended,
            error: outcome.error,
            complete: outcome.complete,
            freed: progress.freed,
            beside,
        }
    }
}

/// A capture that describes its sources; nothing is drained yet.
pub struct PreparedListener {
    listener: Listener,
    /// The capture, and the further sinks.
    sinks: Vec<Box<dyn Sink>>,
    feeds: Vec<Feed>,
    introductions: Arc<[Introduction]>,
    keep: Receiver<FeedChange<KeptSegment>>,
    changes: Receiver<FeedChange<DrainedSegment>>,
    options: ListenerOptions,
}

impl PreparedListener {
    /// Makes `sink` take all frames, too, with its own thread. Up to `queue_bytes` of them wait for
    /// it. Frames beyond that are lost to this sink only: [`CaptureSummary::beside`] holds their
    /// number.
    ///
    /// # Errors
    /// No thread can be started for it.
    pub fn beside(
        &mut self,
        sink: impl Sink + 'static,
        queue_bytes: usize,
    ) -> Result<(), ListenerError> {
        let worker = Worker::new(event()?, queue_bytes, Arc::default());
        worker.queue.introduce(self.introductions.clone());
        self.listener.beside.push(worker);
        self.sinks.push(Box::new(sink));
        Ok(())
    }

    /// Makes a flight recorder take all frames, too: it keeps them in memory, and writes those
    /// around a trigger as a capture into one of `files`.
    ///
    /// # Panics
    /// If its memory limit is below [`LEAST_MEMORY`](crate::LEAST_MEMORY).
    ///
    /// # Errors
    /// No thread can be started for it.
    pub fn flight(
        &mut self,
        options: FlightOptions,
        watch: Box<dyn TriggerWatch>,
        files: Box<dyn WindowFiles>,
    ) -> Result<Flight, ListenerError> {
        assert!(options.memory >= LEAST_MEMORY);
        let Listener { pool, clocks, told, adds, .. } = &self.listener;
        let around = Surroundings {
            pool: pool.clone(),
            clocks: clocks.clone(),
            told: told.clone(),
            adds: adds.clone(),
        };
        let queue_bytes = options.queue_bytes();
        let (recorder, shared) = Recorder::new(options, (watch, files), around)?;
        self.beside(recorder, queue_bytes)?;
        let worker = self.listener.beside.last_mut().expect("it has just been added");
        worker.keeps_time = true;
        Ok(Flight::new(shared, worker.queue.clone()))
    }

    /// Starts to drain. The threads have the privileges that the caller has now.
    ///
    /// # Errors
    /// The output fails, or no thread can be started.
    pub fn start(self) -> Result<Listener, ListenerError> {
        self.start_when(|| Ok(()))
    }

    /// The same, but calls `ready` after everything else that can fail and before the first frame
    /// is taken.
    ///
    /// # Errors
    /// `ready` fails, or no thread can be started.
    pub fn start_when(
        self,
        ready: impl FnOnce() -> io::Result<()>,
    ) -> Result<Listener, ListenerError> {
        let Self { mut listener, sinks, feeds, introductions, keep, changes, options } = self;
        listener.hand_over_all(feeds, stamps(&introductions));
        let begin = Arc::new(OnceLock::new());
        let started = listener.spawn(&begin, sinks, keep, (changes, options));
        let started = started.and_then(|()| ready().map_err(ListenerError::Output));
        // Set even after an error, because a dropped listener waits for its threads.
        let _ = begin.set(started.is_ok());
        started.map(|()| listener)
    }
}

impl Drop for Listener {
    fn drop(&mut self) {
        // After a finish nothing is left to do; without one, no caller needs the result.
        self.workers().for_each(|worker| drop(worker.queue.abandon()));
        let _ = self.halt();
    }
}

impl fmt::Debug for Listener {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Listener").field("progress", &self.progress()).finish_non_exhaustive()
    }
}

/// Fails if a feed cannot be drained. The first of `feeds` gets number `first`; the next file omits
/// `over` of the feeds before it.
fn complete(feeds: &mut [Feed], first: usize, over: usize) -> Result<(), ListenerError> {
    if (first - over).saturating_add(feeds.len()) > MAX_SOURCES {
        return Err(ListenerError::TooManySources);
    }
    (first..).zip(feeds).try_for_each(|(number, feed)| feed.complete(number))
}

fn event() -> Result<EventFd, ListenerError> {
    let flags = EfdFlags::EFD_CLOEXEC | EfdFlags::EFD_NONBLOCK;
    EventFd::from_flags(flags).map_err(ListenerError::Wake)
}
