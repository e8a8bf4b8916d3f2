//! Parallel work with results in the order of the jobs.

use std::collections::VecDeque;
use std::num::NonZero;
use std::sync::mpsc::{Receiver, SyncSender, sync_channel};
use std::sync::{Mutex, PoisonError};
use std::thread::{self, Scope};

/// A job with the channel for its result.
type Ticket<J, R> = (J, SyncSender<R>);

/// The queue from which threads take jobs.
pub(crate) type JobCounter<J, R> = Mutex<Receiver<Ticket<J, R>>>;

/// Distributes jobs and returns results in order. At most twice as many results wait as there are
/// threads, so memory stays bounded and no thread runs far ahead.
pub(crate) struct Ordered<'scope, J, R> {
    jobs: SyncSender<Ticket<J, R>>,
    waiting: VecDeque<Receiver<R>>,
    most: usize,
    /// Does the work if the system provides no thread.
    alone: Option<Box<dyn FnMut(J) -> R + 'scope>>,
}

/// The sender for the jobs of [`Ordered`], and the queue for [`Ordered::start`].
pub(crate) fn counter<J, R>() -> (SyncSender<Ticket<J, R>>, JobCounter<J, R>) {
    let (jobs, fetch) = sync_channel(threads());
    (jobs, Mutex::new(fetch))
}

/// One for each processor that this process may use.
fn threads() -> usize {
    thread::available_parallelism().map_or(1, NonZero::get)
}

impl<'scope, J: Send, R: Send> Ordered<'scope, J, R> {
    /// Starts the threads. Each works with its own function, made by `worker`. They end when this
    /// is dropped. If the system provides fewer threads, for example because memory is limited, the
    /// existing ones do the work, or the caller's thread does.
    pub fn start<W: FnMut(J) -> R + Send + 'scope>(
        scope: &'scope Scope<'scope, '_>,
        counter: (SyncSender<Ticket<J, R>>, &'scope JobCounter<J, R>),
        worker: impl Fn() -> W,
    ) -> Self
    where
        J: 'scope,
        R: 'scope,
    {
        Self::with_threads(threads(), scope, counter, worker)
    }

    fn with_threads<W: FnMut(J) -> R + Send + 'scope>(
        threads: usize,
        scope: &'scope Scope<'scope, '_>,
        (jobs, counter): (SyncSender<Ticket<J, R>>, &'scope JobCounter<J, R>),
        worker: impl Fn() -> W,
    ) -> Self
    where
        J: 'scope,
        R: 'scope,
    {
        let spawn = |_: usize| {
            let mut work = worker();
            let run = move || {
                loop {
                    let ticket = counter.lock().unwrap_or_else(PoisonError::into_inner).recv();
                    let Ok((job, result)) = ticket else { return };
                    // There is no receiver any more if the output has failed.
                    let _ = result.send(work(job));
                }
            };
            thread::Builder::new().spawn_scoped(scope, run).is_ok()
        };
        let started = (0..threads).take_while(|&at| spawn(at)).count();
        let alone = (started == 0).then(|| Box::new(worker()) as Box<dyn FnMut(J) -> R>);
        Self { jobs, waiting: VecDeque::new(), most: 2 * started.max(1), alone }
    }

    /// Adds a job. Returns the oldest result if it must be taken now.
    pub fn push(&mut self, job: J) -> Option<R> {
        let oldest = if self.waiting.len() >= self.most { self.pop() } else { None };
        let (result, wait) = sync_channel(1);
        self.waiting.push_back(wait);
        match &mut self.alone {
            Some(work) => result.send(work(job)).expect("the receiver is in the queue"),
            None => self.jobs.send((job, result)).expect("the threads end after this"),
        }
        oldest
    }

    /// Waits for the oldest result. `None` if there are no jobs left.
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
        in_order(threads());
    }

    #[test]
    fn without_threads_the_caller_does_the_work() {
        in_order(0);
    }

    fn in_order(threads: usize) {
        let (jobs, counter) = counter();
        let mut results = Vec::new();
        thread::scope(|scope| {
            let mut ordered = Ordered::with_threads(threads, scope, (jobs, &counter), || {
                |job: u64| {
                    // The early jobs take longest.
                    (0..(1000 - job) * 50).for_each(|number| _ = std::hint::black_box(number));
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
