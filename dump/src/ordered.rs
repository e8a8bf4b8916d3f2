//! Work that several threads do, whose results come back in the order of the work.

use std::collections::VecDeque;
use std::num::NonZero;
use std::sync::mpsc::{Receiver, SyncSender, sync_channel};
use std::sync::{Mutex, PoisonError};
use std::thread::{self, Scope};

/// A job with the place where its result is waited for.
type Ticket<J, R> = (J, SyncSender<R>);

/// Where threads fetch their jobs.
pub(crate) type Counter<J, R> = Mutex<Receiver<Ticket<J, R>>>;

/// Hands out jobs and gives back results, of which as many wait as there are twice as many threads:
/// memory stays bounded, and nobody runs far ahead.
pub(crate) struct Ordered<J, R> {
    jobs: SyncSender<Ticket<J, R>>,
    waiting: VecDeque<Receiver<R>>,
    most: usize,
}

/// The way to the jobs of [`Ordered`], and back: the second part goes to [`Ordered::start`].
pub(crate) fn counter<J, R>() -> (SyncSender<Ticket<J, R>>, Counter<J, R>) {
    let (jobs, fetch) = sync_channel(threads());
    (jobs, Mutex::new(fetch))
}

/// One for each processor that we may use.
fn threads() -> usize {
    thread::available_parallelism().map_or(1, NonZero::get)
}

impl<J: Send, R: Send> Ordered<J, R> {
    /// Starts the threads; each works by a function of its own, which `worker` makes. They end when
    /// this is dropped.
    pub fn start<'scope, W: FnMut(J) -> R + Send + 'scope>(
        scope: &'scope Scope<'scope, '_>,
        (jobs, counter): (SyncSender<Ticket<J, R>>, &'scope Counter<J, R>),
        worker: impl Fn() -> W,
    ) -> Self
    where
        J: 'scope,
        R: 'scope,
    {
        for _ in 0..threads() {
            let mut work = worker();
            scope.spawn(move || {
                loop {
                    let ticket = counter.lock().unwrap_or_else(PoisonError::into_inner).recv();
                    let Ok((job, result)) = ticket else { return };
                    // Nobody waits for it any more where the output has failed.
                    let _ = result.send(work(job));
                }
            });
        }
        Self { jobs, waiting: VecDeque::new(), most: 2 * threads() }
    }

    /// One more job; the oldest result, if it is time for it.
    pub fn push(&mut self, job: J) -> Option<R> {
        let oldest = if self.waiting.len() >= self.most { self.pop() } else { None };
        let (result, wait) = sync_channel(1);
        self.waiting.push_back(wait);
        let sent = self.jobs.send((job, result));
        sent.expect("the threads end after this");
        oldest
    }

    /// Waits for the oldest result; none where there are no jobs left.
    pub fn pop(&mut self) -> Option<R> {
        let oldest = self.waiting.pop_front()?;
        Some(oldest.recv().expect("every job has its result"))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn results_come_in_order() {
        let (jobs, counter) = counter();
        let mut results = Vec::new();
        thread::scope(|scope| {
            let mut ordered = Ordered::start(scope, (jobs, &counter), || {
                |job: u64| {
                    // The early ones take longest.
                    (0..(1000 - job) * 50).for_each(|it| _ = std::hint::black_box(it));
                    job
                }
            });
            for job in 0..1000 {
                results.extend(ordered.push(job));
            }
            while let Some(result) = ordered.pop() {
                results.push(result);
            }
        });
        assert!(results.into_iter().eq(0..1000));
    }
}
