//! A capture while it is written.

mod begin;
mod feeds;
mod finish;

use std::fmt;
use std::io::Write;
use std::os::fd::{AsFd, BorrowedFd};
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use std::sync::mpsc::Sender;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use ppt_capture::{Dropped, FileHeader, Flip, Modules};
use ppt_now::Clocks;

pub use self::begin::PreparedListener;
use crate::buffer::Pool;
use crate::drain::DrainedSegment;
use crate::error::ListenerError;
use crate::feed::{Feed, FeedChange};
use crate::keeper::KeptSegment;
use crate::ledger::Ledger;
use crate::options::ListenerOptions;
use crate::origins::{Adds, DroppedByFeed};
use crate::progress::{Counters, Progress};
use crate::rotate::Rotation;
use crate::sink::Introduction;
use crate::summary::Undersized;
use crate::tally::{FeedTally, Tallies};
use crate::thread_names::NameChanges;
use crate::watched::WatchedFeed;
use crate::worker::Worker;

/// A capture that is being written.
///
/// [`Listener::finish`] ends it. A listener that is dropped instead leaves a capture without an
/// end, as if the process had been killed.
pub struct Listener {
    feeds: Vec<WatchedFeed>,
    /// Number of segments of all feeds.
    segments: usize,
    /// Whether the capture continues in other files, which omit feeds that have ended.
    rotates: bool,
    counters: Arc<Counters>,
    /// The worker of the capture, and those of further sinks.
    capture: Worker,
    extra_workers: Vec<Worker>,
    pool: Arc<Pool>,
    ledger: Arc<Mutex<Ledger>>,
    dropped: Arc<DroppedByFeed>,
    adds: Arc<Adds>,
    tallies: Option<Arc<Tallies>>,
    clocks: Clocks,
    stop: Arc<AtomicBool>,
    keeper: Option<JoinHandle<()>>,
    to_keeper: Sender<FeedChange<KeptSegment>>,
    drain: Option<JoinHandle<()>>,
    to_drain: Sender<FeedChange<DrainedSegment>>,
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

    /// Begins a capture that may continue in other files, as [`start`](Self::start) does.
    ///
    /// # Errors
    /// As for [`start`](Self::start).
    pub fn rotating<W: Write + Send + 'static>(
        out: W,
        header: FileHeader,
        feeds: Vec<Feed>,
        options: ListenerOptions,
        rotation: Option<Rotation<W>>,
    ) -> Result<Self, ListenerError> {
        Self::begin(out, header, feeds, options, rotation)?.start()
    }

    fn workers(&self) -> impl Iterator<Item = &Worker> {
        [&self.capture].into_iter().chain(&self.extra_workers)
    }

    /// Introduces segments to every sink.
    fn introduce(&self, new: &Arc<[Introduction]>) {
        self.workers().for_each(|worker| worker.queue.introduce(new.clone()));
    }

    /// The system no longer trusts the CPU's counter; the capture states that.
    pub fn distrust_ticks(&self) {
        self.clocks.distrusted.store(true, Relaxed);
    }

    fn wake_threads(&self) {
        // The threads may be in a long sleep.
        self.keeper.iter().for_each(|thread| thread.thread().unpark());
        self.drain.iter().for_each(|thread| thread.thread().unpark());
    }

    fn dropped_now(&self) -> MutexGuard<'_, Vec<Dropped>> {
        self.dropped.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The number of feeds so far.
    pub fn feeds(&self) -> usize {
        self.feeds.len()
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
        feeds
            .filter_map(|(feed, watched)| {
                Some(Undersized { feed, enough_slots: watched.undersized()? })
            })
            .collect()
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
        self.dropped_now()[feed] = dropped;
        if let Some(tally) = self.tally(feed) {
            tally.drop_frames(dropped);
        }
    }

    /// Reports the number of adds and observations of `feed` that were lost since the session
    /// began, because its target could not map the segment. The capture states it with the next
    /// reading of counters.
    pub fn adds_not_mapped(&self, feed: usize, adds: u64) {
        let mut adds_by_feed = self.adds.lock().unwrap_or_else(PoisonError::into_inner);
        adds_by_feed.insert(feed, adds);
        drop(adds_by_feed);
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
