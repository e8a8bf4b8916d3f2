//! State shared by the recorder, its writer and their caller.

use std::io;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use ppt_capture::{Stretch, TriggerCause};

use super::store::HeldMemory;
use super::watch::Fired;
use super::window::Content;
use crate::queue::SinkQueue;

/// An event of a window.
#[derive(Debug)]
pub enum News {
    /// The window is in a file.
    Written {
        /// The file.
        name: String,
        /// The content of the file.
        content: Content,
        /// Whether all of the window was in memory.
        is_whole: bool,
        /// The available part of the window.
        held: Stretch,
        /// The window that the triggers asked for.
        wanted: Stretch,
        /// The number of its triggers.
        triggers: u64,
    },
    /// The window cannot be written now. It stays in memory, and writing is retried.
    Waits(io::Error),
    /// The window could not be written, and the session is over.
    GivenUp(io::Error),
}

/// The progress of a recorder.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct FlightProgress {
    /// Windows in files.
    pub written: u64,
    /// Windows that are over, but not in a file yet.
    pub waiting: u64,
    /// Windows that never came into a file.
    pub lost: u64,
    /// Triggers that counted.
    pub triggers: u64,
    /// Triggers that came within the cooldown of another.
    pub ignored: u64,
    /// Triggers that came while too many windows were open.
    pub too_many: u64,
    /// Bytes of memory that the recorder uses now.
    pub bytes: usize,
    /// The most bytes that it has used.
    pub most_bytes: usize,
    /// Frames that have arrived.
    pub frames: u64,
    /// Frames for which it had no room, because waiting windows occupied it.
    pub missed: u64,
}

#[derive(Debug, Default)]
pub(crate) struct Shared {
    asked: Mutex<Vec<(u64, Fired)>>,
    news: Mutex<Vec<News>>,
    ends: Mutex<Option<Instant>>,
    ended: Condvar,
    pub held: Arc<HeldMemory>,
    written: AtomicU64,
    waiting: AtomicU64,
    lost: AtomicU64,
    pub triggers: AtomicU64,
    pub ignored: AtomicU64,
    pub too_many: AtomicU64,
    pub missed: AtomicU64,
    pub frames: AtomicU64,
}

/// A panic in another thread leaves the state consistent.
fn locked<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

impl Shared {
    /// The triggers that the caller has requested since the last call.
    pub fn asked(&self) -> Vec<(u64, Fired)> {
        std::mem::take(&mut *locked(&self.asked))
    }

    pub fn send(&self, news: News) {
        locked(&self.news).push(news);
    }

    /// One more window waits to be written.
    pub fn waits(&self) {
        self.waiting.fetch_add(1, Relaxed);
    }

    /// The number of waiting windows.
    pub fn waiting(&self) -> u64 {
        self.waiting.load(Relaxed)
    }

    /// A window no longer waits.
    pub fn settled(&self) {
        self.waiting.fetch_sub(1, Relaxed);
    }

    pub fn written(&self, news: News) {
        self.written.fetch_add(1, Relaxed);
        self.send(news);
    }

    pub fn lose_window(&self) {
        self.lost.fetch_add(1, Relaxed);
    }

    /// The session is over. Writing is retried for at most `patience`.
    pub fn end(&self, patience: Duration) {
        locked(&self.ends).get_or_insert_with(|| Instant::now() + patience);
        self.ended.notify_all();
    }

    /// Whether writing is no longer retried.
    pub fn gives_up(&self) -> bool {
        locked(&self.ends).is_some_and(|until| Instant::now() >= until)
    }

    /// Waits for `time`. The end of the session, if it comes during the wait, cuts the wait short.
    pub fn pause(&self, time: Duration) {
        let ends = locked(&self.ends);
        let is_over = ends.is_some();
        let wait =
            self.ended.wait_timeout_while(ends, time, |instant| instant.is_some() == is_over);
        drop(wait.unwrap_or_else(PoisonError::into_inner));
    }
}

/// A flight recorder, from its caller's view.
#[derive(Debug, Clone)]
pub struct Flight {
    shared: Arc<Shared>,
    queue: Arc<SinkQueue>,
}

impl Flight {
    pub(crate) fn new(shared: Arc<Shared>, queue: Arc<SinkQueue>) -> Self {
        Self { shared, queue }
    }

    /// Triggers now, regardless of the cooldown. `feed` is the feed that it concerns, if any.
    pub fn trigger(&self, why: TriggerCause, feed: Option<usize>, note: String) {
        locked(&self.shared.asked)
            .push((ppt_now::monotonic(), Fired::without_frame(why, feed, note)));
        self.queue.call();
    }

    /// Events of windows since the last call.
    pub fn news(&self) -> Vec<News> {
        std::mem::take(&mut *locked(&self.shared.news))
    }

    /// The current progress.
    pub fn progress(&self) -> FlightProgress {
        let Shared { written, waiting, lost, triggers, ignored, too_many, .. } = &*self.shared;
        let Shared { missed, frames, held, .. } = &*self.shared;
        FlightProgress {
            written: written.load(Relaxed),
            waiting: waiting.load(Relaxed),
            lost: lost.load(Relaxed),
            triggers: triggers.load(Relaxed),
            ignored: ignored.load(Relaxed),
            too_many: too_many.load(Relaxed),
            bytes: held.now(),
            most_bytes: held.most(),
            frames: frames.load(Relaxed),
            missed: missed.load(Relaxed),
        }
    }
}
