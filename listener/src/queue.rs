//! Between drain and disk: bounded in bytes, and never a reason for the drain to wait.

use std::collections::VecDeque;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use crate::account::Closing;
use crate::buffer::Pool;
use crate::chunk::Chunk;
use crate::sink::{Ending, Introduction};

/// Chunks on their way to the disk.
#[derive(Debug)]
pub(crate) struct Queue {
    limit: usize,
    inner: Mutex<Inner>,
    filled: Condvar,
    behind: Arc<AtomicBool>,
    /// For the chunks that go through it.
    pool: Pool,
}

#[derive(Debug, Default)]
struct Inner {
    items: VecDeque<Item>,
    /// Of memory, not of frames.
    bytes: usize,
    ending: Option<Ending>,
    abandoned: bool,
}

/// What goes through the queue.
#[derive(Debug)]
pub(crate) enum Item {
    /// Frames to write.
    Chunk(Box<Chunk>),
    /// Where the frames of further feeds, or of further segments, come from.
    Sources(Vec<Introduction>),
    /// No more chunks of this segment will come; its rings were left so.
    Gone(usize, Vec<Closing>),
}

/// What the disk thread has to do next.
#[derive(Debug)]
pub(crate) enum Next {
    /// Deal with this.
    Item(Item),
    /// Nothing came in time.
    Nothing,
    /// The last chunk has been taken: write the end.
    End(Ending),
    /// Nobody waits any more: write nothing.
    Abandoned,
}

impl Queue {
    /// `behind` is set while more than a quarter of it is full, and until it is nearly empty.
    pub fn new(limit: usize, behind: Arc<AtomicBool>) -> Self {
        let (inner, pool) = Default::default();
        Self { limit, inner, filled: Condvar::new(), behind, pool }
    }

    /// Where its chunks have their memory from, and give it back to.
    pub fn pool(&self) -> &Pool {
        &self.pool
    }

    /// Whether more waits for the disk than should.
    pub fn is_behind(&self) -> bool {
        self.behind.load(Relaxed)
    }

    /// Takes a chunk, or gives it back where there is no room. A chunk larger than the queue goes
    /// in when it is alone.
    pub fn push(&self, chunk: Box<Chunk>) -> Result<(), Box<Chunk>> {
        let mut inner = self.lock();
        let bytes = weight(&chunk);
        if inner.bytes + bytes > self.limit && !inner.items.is_empty() {
            return Err(chunk);
        }
        inner.bytes += bytes;
        if inner.bytes > self.limit / 4 {
            self.behind.store(true, Relaxed);
        }
        inner.items.push_back(Item::Chunk(chunk));
        Ok(())
    }

    /// No more chunks of segment `part` come after those that are in the queue: its rings were left
    /// so.
    pub fn gone(&self, part: usize, closings: Vec<Closing>) {
        self.lock().items.push_back(Item::Gone(part, closings));
        self.notify();
    }

    /// Has segments introduced before any chunk of theirs is written: however full it is, for there
    /// are few of them.
    pub fn introduce(&self, feeds: Vec<Introduction>) {
        self.lock().items.push_back(Item::Sources(feeds));
        self.notify();
    }

    /// Tells the disk thread that there are chunks: once after a few of them, for it costs a
    /// system call.
    pub fn notify(&self) {
        self.filled.notify_one();
    }

    /// The next thing to do; waits for `patience` at most.
    pub fn next(&self, patience: Duration) -> Next {
        let empty = |inner: &mut Inner| {
            inner.items.is_empty() && inner.ending.is_none() && !inner.abandoned
        };
        let (mut inner, _) = self
            .filled
            .wait_timeout_while(self.lock(), patience, empty)
            .unwrap_or_else(PoisonError::into_inner);
        if inner.abandoned {
            return Next::Abandoned;
        }
        match inner.items.pop_front() {
            Some(item) => {
                if let Item::Chunk(chunk) = &item {
                    inner.bytes -= weight(chunk);
                    if inner.bytes < self.limit / 16 {
                        self.behind.store(false, Relaxed);
                    }
                }
                Next::Item(item)
            }
            None => inner.ending.take().map_or(Next::Nothing, Next::End),
        }
    }

    /// Nothing comes after what is in the queue.
    pub fn end(&self, ending: Ending) {
        self.lock().ending = Some(ending);
        self.notify();
    }

    /// The disk thread is to stop as soon as it can. Returns what nobody will deal with.
    pub fn abandon(&self) -> impl Iterator<Item = Item> + use<> {
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

fn weight(chunk: &Chunk) -> usize {
    chunk.frames.memory() + size_of::<Chunk>()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::buffer::Buffer;

    fn chunk(first_seq: u64, capacity: usize) -> Box<Chunk> {
        Box::new(Chunk { first_seq, frames: Buffer::new(capacity), ..Chunk::default() })
    }

    #[test]
    fn it_is_bounded_in_bytes_and_keeps_its_order() {
        let behind = Arc::new(AtomicBool::new(false));
        let queue = Queue::new(10_000, behind.clone());
        queue.push(chunk(1, 6000)).unwrap();
        assert_eq!(queue.push(chunk(2, 6000)).unwrap_err().first_seq, 2);
        queue.push(chunk(3, 1000)).unwrap();
        assert!(behind.load(Relaxed));
        queue.end(Ending {
            reason: ppt_capture::EndReason::Stopped,
            message: String::new(),
            dropped: Vec::new(),
        });
        for expected in [1, 3] {
            let Next::Item(Item::Chunk(chunk)) = queue.next(Duration::ZERO) else {
                panic!("a chunk")
            };
            assert_eq!(chunk.first_seq, expected);
        }
        assert!(!behind.load(Relaxed));
        assert!(matches!(queue.next(Duration::ZERO), Next::End(_)));
        assert!(matches!(queue.next(Duration::ZERO), Next::Nothing));
        queue.push(chunk(4, 60_000)).expect("larger than the queue, but alone");
        assert_eq!(queue.abandon().count(), 1);
        assert!(matches!(queue.next(Duration::ZERO), Next::Abandoned));
    }
}
