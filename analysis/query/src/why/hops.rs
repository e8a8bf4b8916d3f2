//! Chains of wakers: the thread that woke a thread, its activity during the wait, the thread that woke it, and so
//! on.

use super::answer::{SlowInterval, WakerHop};
use super::cut::TimeUse;
use super::during::ThreadStretch;
use crate::engine::Engine;
use crate::error::QueryError;

/// The largest number of wakers that are followed.
const MAX_THREADS: usize = 4;
/// The least share of an interval that a wait must have to be followed.
const MIN_SHARE: f64 = 0.05;

/// A wait whose waker is looked at next.
struct FollowedWait {
    slow: usize,
    part: usize,
    waker: ThreadStretch,
    /// The threads that were already visited.
    visited: Vec<i32>,
}

impl Engine {
    /// For each interval, follows the wakers of its largest wait.
    pub(super) async fn follow_wakers(&self, slow: &mut [SlowInterval]) -> Result<(), QueryError> {
        let mut next: Vec<FollowedWait> =
            slow.iter().enumerate().filter_map(largest_wait).collect();
        for _ in 0..MAX_THREADS {
            if next.is_empty() {
                break;
            }
            let wakers: Vec<ThreadStretch> = next.iter().map(|wait| wait.waker.clone()).collect();
            let answers = self.states_during(&wakers).await?;
            let mut further = Vec::new();
            for (mut wait, did) in next.into_iter().zip(answers) {
                let Some((state, spent)) = did.parts.into_iter().next() else { continue };
                let Some(thread) = wait.waker.tid.filter(|_| state != TimeUse::Unknown) else {
                    continue;
                };
                let waker = state.woken().and_then(|by| by.thread).filter(|_| state.is_wait());
                let within = (wait.waker.from, wait.waker.to);
                let hop = WakerHop { thread, name: None, within, state, spent, slice: None };
                slow[wait.slow].parts[wait.part].hops.push(hop);
                wait.visited.push(thread);
                if let Some(waker) = waker.filter(|waker| !wait.visited.contains(waker)) {
                    let (from, to) = spent.longest;
                    wait.waker = ThreadStretch { tid: Some(waker), from, to, ..wait.waker };
                    further.push(wait);
                }
            }
            next = further;
        }
        Ok(())
    }
}

/// The largest wait that a thread of the program ended, if it is large enough.
fn largest_wait((number, slow): (usize, &SlowInterval)) -> Option<FollowedWait> {
    let mut parts = slow.parts.iter().enumerate();
    let of_thread =
        |used: &TimeUse| used.is_wait() && used.woken().is_some_and(|by| by.thread.is_some());
    let (at, part) = parts.find(|numbered| of_thread(&numbered.1.state))?;
    let matters = part.spent.ns as f64 >= MIN_SHARE * slow.dur as f64;
    let waker = slow.waker_during(part);
    let visited = slow.tid.into_iter().collect();
    matters.then_some(FollowedWait { slow: number, part: at, waker, visited })
}
