//! The queue between the drain and a sink. It is bounded in bytes and never blocks the drain.

use std::collections::VecDeque;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use ppt_capture::{Flip, Modules};

use crate::account::Closing;
use crate::chunk::Frames;
use crate::sink::{Ending, Introduction};
use crate::thread_names::NameChanges;

/// Frames on their way to a sink.
#[derive(Debug)]
pub(crate) struct SinkQueue {
    limit: usize,
    inner: Mutex<Inner>,
    filled: Condvar,
    behind: Arc<AtomicBool>,
}

#[derive(Debug, Default)]
struct Inner {
    items: VecDeque<QueueItem>,
    /// Bytes of memory in use, not of frames.
    bytes: usize,
    ending: Option<Ending>,
    abandoned: bool,
}

/// An item of the queue.
#[derive(Debug)]
pub(crate) enum QueueItem {
    /// Frames to process.
    Frames(Frames),
    /// The sources of further feeds, or of further segments.
    Sources(Arc<[Introduction]>),
    /// This segment has ended; its rings ended in these states.
    Gone(usize, Vec<Closing>),
    /// A change of the masks of a segment of this feed.
    Masks(usize, Arc<Flip>),
    /// Names of threads of this feed's process.
    Threads(usize, Arc<NameChanges>),
    /// The code mappings of this feed's process.
    Modules(usize, Modules),
    /// All frames that were written before this time are in earlier items: CLOCK_MONOTONIC, ns.
    Upto(u64),
    /// The sink has a task that does not come from the drain.
    Call,
}

/// The next task of the sink's thread.
#[derive(Debug)]
pub(crate) enum NextTask {
    /// Process this item.
    Item(QueueItem),
    /// Nothing came in time.
    Nothing,
    /// The last frames have been taken: write the end.
    End(Ending),
    /// The caller no longer waits: the sink must not write.
    Abandoned,
}

impl SinkQueue {
    /// `behind` is set when the queue is more than a quarter full, and stays set until it is nearly
    /// empty.
    pub fn new(limit: usize, behind: Arc<AtomicBool>) -> Self {
        Self { limit, inner: Mutex::default(), filled: Condvar::new(), behind }
    }

    /// Whether it is too full: see [`Self::new`].
    pub fn is_behind(&self) -> bool {
        self.behind.load(Relaxed)
    }

    /// Adds frames if there is room. A chunk larger than the queue fits if it is the only one.
    pub fn push(&self, frames: Frames) -> bool {
        let mut inner = self.lock();
        let bytes = frames.weight();
        if inner.bytes + bytes > self.limit && inner.bytes > 0 {
            return false;
        }
        inner.bytes += bytes;
        if inner.bytes > self.limit / 4 {
            self.behind.store(true, Relaxed);
        }
        inner.items.push_back(QueueItem::Frames(frames));
        true
    }

    /// No frames of segment `segment_number` follow those in the queue; its rings ended in these
    /// states.
    pub fn gone(&self, segment_number: usize, closings: Vec<Closing>) {
        self.lock().items.push_back(QueueItem::Gone(segment_number, closings));
        self.notify();
    }

    /// Introduces segments before any of their frames, regardless of the limit: there are few of
    /// them.
    pub fn introduce(&self, feeds: Arc<[Introduction]>) {
        self.lock().items.push_back(QueueItem::Sources(feeds));
        self.notify();
    }

    /// Adds a flip of this feed, regardless of the limit.
    pub fn masks(&self, feed: usize, flip: Arc<Flip>) {
        self.lock().items.push_back(QueueItem::Masks(feed, flip));
        self.notify();
    }

    /// Adds names of threads of this feed's process, regardless of the limit.
    pub fn thread_names(&self, feed: usize, changes: Arc<NameChanges>) {
        self.lock().items.push_back(QueueItem::Threads(feed, changes));
        self.notify();
    }

    /// Adds the modules of this feed's process, regardless of the limit.
    pub fn modules(&self, feed: usize, modules: Modules) {
        self.lock().items.push_back(QueueItem::Modules(feed, modules));
        self.notify();
    }

    /// All frames that were written before this time have been added. This wakes no thread.
    pub fn upto(&self, mono_ns: u64) {
        let mut inner = self.lock();
        match inner.items.back_mut() {
            Some(QueueItem::Upto(before)) => *before = mono_ns,
            _ => inner.items.push_back(QueueItem::Upto(mono_ns)),
        }
    }

    /// Wakes the sink's thread for a task of its own.
    pub fn call(&self) {
        self.lock().items.push_back(QueueItem::Call);
        self.notify();
    }

    /// Notifies the sink's thread of new frames. Called once for several items, because it costs a
    /// system call.
    pub fn notify(&self) {
        self.filled.notify_one();
    }

    /// The next task. Waits for `patience` at most.
    pub fn next(&self, patience: Duration) -> NextTask {
        let empty = |inner: &mut Inner| {
            inner.items.is_empty() && inner.ending.is_none() && !inner.abandoned
        };
        let (mut inner, _) = self
            .filled
            .wait_timeout_while(self.lock(), patience, empty)
            .unwrap_or_else(PoisonError::into_inner);
        if inner.abandoned {
            return NextTask::Abandoned;
        }
        match inner.items.pop_front() {
            Some(item) => {
                if let QueueItem::Frames(frames) = &item {
                    inner.bytes -= frames.weight();
                    if inner.bytes < self.limit / 16 {
                        self.behind.store(false, Relaxed);
                    }
                }
                NextTask::Item(item)
            }
            None => inner.ending.take().map_or(NextTask::Nothing, NextTask::End),
        }
    }

    /// Nothing follows the items in the queue.
    pub fn end(&self, ending: Ending) {
        self.lock().ending = Some(ending);
        self.notify();
    }

    /// Tells the sink's thread to stop as soon as possible. Returns the items that stay
    /// unprocessed.
    pub fn abandon(&self) -> impl Iterator<Item = QueueItem> + use<> {
        let mut inner = self.lock();
        inner.abandoned = true;
        let left = std::mem::take(&mut inner.items);
        drop(inner);
        self.notify();
        left.into_iter()
    }

    /// A thread that panicked while it held the lock left the queue consistent.
    fn lock(&self) -> MutexGuard<'_, Inner> {
        self.inner.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::buffer::WordBuffer;
    use crate::chunk::Chunk;

    fn frames(first_seq: u64, capacity: usize) -> Frames {
        Chunk { first_seq, frames: WordBuffer::new(capacity), ..Chunk::default() }.into()
    }

    #[test]
    fn it_is_bounded_in_bytes_and_keeps_its_order() {
        let behind = Arc::new(AtomicBool::new(false));
        let queue = SinkQueue::new(10_000, behind.clone());
        assert!(queue.push(frames(1, 6000)));
        assert!(!queue.push(frames(2, 6000)));
        assert!(queue.push(frames(3, 1000)));
        assert!(behind.load(Relaxed));
        queue.end(Ending {
            reason: ppt_capture::EndReason::Stopped,
            message: String::new(),
            dropped: Vec::new(),
        });
        for expected in [1, 3] {
            let NextTask::Item(QueueItem::Frames(frames)) = queue.next(Duration::ZERO) else {
                panic!("frames")
            };
            assert_eq!(frames.first_seq(), expected);
        }
        assert!(!behind.load(Relaxed));
        assert!(matches!(queue.next(Duration::ZERO), NextTask::End(_)));
        assert!(matches!(queue.next(Duration::ZERO), NextTask::Nothing));
        (1..4).for_each(|number| queue.upto(number));
        assert!(queue.push(frames(4, 60_000)), "larger than the queue, but alone");
        assert!(!queue.push(frames(5, 1000)));
        queue.upto(9);
        let NextTask::Item(QueueItem::Upto(3)) = queue.next(Duration::ZERO) else {
            panic!("only the last")
        };
        assert_eq!(queue.abandon().count(), 2);
        assert!(matches!(queue.next(Duration::ZERO), NextTask::Abandoned));
    }
}
