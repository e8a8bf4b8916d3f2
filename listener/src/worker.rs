//! The thread of a sink, and its listener's handle.

use std::io;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;
use std::sync::mpsc::{self, Receiver, Sender};
use std::time::{Duration, Instant};

use nix::sys::eventfd::EventFd;

use crate::buffer::Pool;
use crate::lanes::Lane;
use crate::progress::SinkCounters;
use crate::queue::{NextTask, QueueItem, SinkQueue};
use crate::sink::{Ending, Sink, SinkOutcome};
use crate::summary::ExtraSinkSummary;

/// A running sink, from its listener's view.
#[derive(Debug)]
pub(crate) struct Worker {
    pub queue: Arc<SinkQueue>,
    pub counters: Arc<SinkCounters>,
    /// Present until its thread takes it.
    send: Option<Sender<SinkOutcome>>,
    outcome: Receiver<SinkOutcome>,
    /// Whether the sink wants to know up to which time everything has arrived.
    pub keeps_time: bool,
}

impl Worker {
    /// For a sink with a queue of `queue_bytes`; `behind` is set while much waits.
    pub fn new(wake: EventFd, queue_bytes: usize, behind: Arc<AtomicBool>) -> Self {
        let (send, outcome) = mpsc::channel();
        let queue = Arc::new(SinkQueue::new(queue_bytes, behind));
        Self {
            queue,
            counters: Arc::new(SinkCounters::new(wake)),
            send: Some(send),
            outcome,
            keeps_time: false,
        }
    }

    pub fn lane(&self) -> Lane {
        Lane::new(self.queue.clone(), self.counters.clone(), self.keeps_time)
    }

    /// The job of its thread, which runs once.
    pub fn job(&mut self, pool: Arc<Pool>, sink: Box<dyn Sink>) -> impl FnOnce() + Send + use<> {
        let (queue, send) = (self.queue.clone(), self.send.take());
        move || {
            let outcome = run(&queue, &pool, sink);
            // This fails if the receiver no longer waits.
            send.map(|sender| sender.send(outcome));
        }
    }

    /// The result, if the worker ended by `until`.
    pub fn outcome(&self, until: Instant) -> SinkOutcome {
        let patience = until.saturating_duration_since(Instant::now());
        self.outcome.recv_timeout(patience).unwrap_or_else(|_| SinkOutcome {
            error: Some(io::Error::new(io::ErrorKind::TimedOut, "the disk does not answer")),
            complete: false,
        })
    }

    /// The outcome of a further sink, once it has ended or at `until`. The sink misses the items
    /// that it has not processed.
    pub fn extra_summary(&self, until: Instant) -> ExtraSinkSummary {
        let SinkOutcome { error, complete } = self.outcome(until);
        for item in self.queue.abandon() {
            if let QueueItem::Frames(frames) = item {
                self.counters.lost(frames.count().into());
            }
        }
        ExtraSinkSummary { missed: self.counters.missed(), error, complete }
    }

    /// Nothing follows the items in its queue.
    pub fn end(&self, ending: Ending) {
        self.queue.end(ending);
    }
}

/// Feeds `sink` until the end of the queue.
fn run(queue: &SinkQueue, pool: &Pool, mut sink: Box<dyn Sink>) -> SinkOutcome {
    loop {
        let patience = sink.due().saturating_sub(ppt_now::monotonic());
        match queue.next(Duration::from_nanos(patience)) {
            NextTask::Item(QueueItem::Frames(frames)) => {
                sink.frames(&frames);
                frames.give_back(pool);
            }
            NextTask::Item(QueueItem::Sources(new)) => sink.introduce(&new),
            NextTask::Item(QueueItem::Gone(segment_number, closings)) => {
                sink.gone(segment_number, &closings);
            }
            NextTask::Item(QueueItem::Masks(feed, flip)) => sink.masks(feed, &flip),
            NextTask::Item(QueueItem::Threads(feed, changes)) => sink.thread_names(feed, &changes),
            NextTask::Item(QueueItem::Modules(feed, modules)) => sink.modules(feed, &modules),
            NextTask::Item(QueueItem::Upto(mono_ns)) => sink.upto(mono_ns),
            NextTask::Item(QueueItem::Call) | NextTask::Nothing => {}
            NextTask::End(ending) => return sink.end(&ending),
            NextTask::Abandoned => return SinkOutcome { error: None, complete: false },
        }
        sink.tick();
    }
}
