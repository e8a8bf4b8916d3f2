//! Between the drain and a sink: bounded in bytes, and never a reason for the drain to wait.

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
pub(crate) struct Queue {
    limit: usize,
    inner: Mutex<Inner>,
    filled: Condvar,
    behind: Arc<AtomicBool>,
}

#[derive(Debug, Default)]
struct Inner {
    items: VecDeque<QueueItem>,
    /// Of memory, not of frames.
    bytes: usize,
    ending: Option<Ending>,
    abandoned: bool,
}

/// An item of the queue.
#[derive(Debug)]
pub(crate) enum QueueItem {
    /// Frames to deal with.
    Frames(Frames),
    /// The sources of further feeds, or of further segments.
    Sources(Arc<[Introduction]>),
    /// No more chunks of this segment will come; its rings were left so.
    Gone(usize, Vec<Closing>),
    /// What was enabled and disabled in a segment of this feed.
    Masks(usize, Arc<Flip>),
    /// Names of threads of this feed's process.
    Threads(usize, Arc<NameChanges>),
    /// What this feed's process has mapped as code.
    Modules(usize, Modules),
    /// All frames that were written before this time are in the items before: CLOCK_MONOTONIC, ns.
    Upto(u64),
    /// The sink has something to do that does not come from the drain.
    Call,
}

/// The next task of the sink's thread.
#[derive(Debug)]
pub(crate) enum NextTask {
    /// Deal with this.
    Item(QueueItem),
    /// Nothing came in time.
    Nothing,
    /// The last frames have been taken: write the end.
    End(Ending),
    /// Nobody waits any more: the sink must not write.
    Abandoned,
}

impl Queue {
    /// `behind` is set while more than a quarter of it is full, and until it is nearly empty.
    pub fn new(limit: usize, behind: Arc<AtomicBool>) -> Self {
        Self { limit, inner: Mutex::default(), filled: Condvar::new(), behind }
    }

    /// Whether more waits than should.
    pub fn is_behind(&self) -> bool {
        self.behind.load(Relaxed)
    }

    /// Adds frames if there is room. A chunk that is larger than the queue fits if no other frames are
    /// there.
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

    /// No more frames of segment `segment_number` come after those that are in the queue: its rings
    /// were left so.
    pub fn gone(&self, segment_number: usize, closings: Vec<Closing>) {
        self.lock().items.push_back(QueueItem::Gone(segment_number, closings));
        self.notify();
    }

    /// Has segments introduced before any frame of theirs is taken: however full it is, for there
    /// are few of them.
    pub fn introduce(&self, feeds: Arc<[Introduction]>) {
        self.lock().items.push_back(QueueItem::Sources(feeds));
        self.notify();
    }

    /// Has a flip of this feed stated, however full it is.
    pub fn masks(&self, feed: usize, flip: Arc<Flip>) {
        self.lock().items.push_back(QueueItem::Masks(feed, flip));
        self.notify();
    }

    /// Has names of threads of this feed's process stated, however full it is.
    pub fn thread_names(&self, feed: usize, changes: Arc<NameChanges>) {
        self.lock().items.push_back(QueueItem::Threads(feed, changes));
        self.notify();
    }

    /// Has the modules of this feed's process stated, however full it is.
    pub fn modules(&self, feed: usize, modules: Modules) {
        self.lock().items.push_back(QueueItem::Modules(feed, modules));
        self.notify();
    }

    /// All frames that were written before this time have been added. Nobody is woken for that.
    pub fn upto(&self, mono_ns: u64) {
        let mut inner = self.lock();
        match inner.items.back_mut() {
            Some(QueueItem::Upto(before)) => *before = mono_ns,
            _ => inner.items.push_back(QueueItem::Upto(mono_ns)),
        }
    }

    /// Has the sink's thread look what there is to do.
    pub fn call(&self) {
        self.lock().items.push_back(QueueItem::Call);
        self.notify();
    }

    /// Tells the sink's thread that there are frames: once after a few of them, for it costs a
    /// system call.
    pub fn notify(&self) {
        self.filled.notify_one();
    }

    /// The next thing to do; waits for `patience` at most.
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

    /// Nothing follows the items that are in the queue.
    pub fn end(&self, ending: Ending) {
        self.lock().ending = Some(ending);
        self.notify();
    }

    /// The sink's thread is to stop as soon as it can. Returns what nobody will deal with.
    pub fn abandon(&self) -> impl Iterator<Item = QueueItem> + use<> {
        let mut inner = self.lock();
        inner.abandoned = true;
        let left = std::mem::take(&mut inner.items);
        drop(inner);
        self.notify();
        left.into_iter()
    }

    /// A thread that panicked while it held the lock left a queue that is still one.
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
        let queue = Queue::new(10_000, behind.clone());
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
        (1..4).for_each(|it| queue.upto(it));
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
