//! Which thread woke a thread, what the waker did during the wait, which thread woke the waker, and
//! so on.

use super::cut::TimeUse;
use super::during::During;
use super::slow::{Hop, Slow};
use crate::engine::Engine;
use crate::error::QueryError;

/// Threads that are followed.
const MAX_THREADS: usize = 4;
/// The least share of an interval that is worth following.
const WORTH: f64 = 0.05;

/// A wait whose waker is asked next.
struct Next {
    slow: usize,
    part: usize,
    asked: During,
    passed: Vec<i32>,
}

impl Engine {
    /// Follows those who ended the largest wait of each.
    pub(super) async fn follow_wakers(&self, slow: &mut [Slow]) -> Result<(), QueryError> {
        let mut next: Vec<Next> = slow.iter().enumerate().filter_map(first).collect();
        for _ in 0..MAX_THREADS {
            if next.is_empty() {
                break;
            }
            let asked: Vec<During> = next.iter().map(|entry| entry.asked.clone()).collect();
            let answers = self.states_during(&asked).await?;
            let mut further = Vec::new();
            for (mut of, did) in next.into_iter().zip(answers) {
                let Some((part, spent)) = did.parts.into_iter().next() else { continue };
                let Some(thread) = of.asked.tid.filter(|_| part != TimeUse::Unknown) else {
                    continue;
                };
                let waker = part.woken().and_then(|entry| entry.thread).filter(|_| part.is_wait());
                let within = (of.asked.from, of.asked.to);
                let hop = Hop { thread, name: None, within, part, spent, doing: None };
                slow[of.slow].parts[of.part].hops.push(hop);
                of.passed.push(thread);
                if let Some(waker) = waker.filter(|entry| !of.passed.contains(entry)) {
                    let (from, to) = spent.longest;
                    of.asked = During { tid: Some(waker), from, to, ..of.asked };
                    further.push(of);
                }
            }
            next = further;
        }
        Ok(())
    }
}

/// The largest wait that a thread of the program ended, if it matters.
fn first((number, slow): (usize, &Slow)) -> Option<Next> {
    let mut parts = slow.parts.iter().enumerate();
    let of_thread = |entry: &TimeUse| {
        entry.is_wait() && entry.woken().is_some_and(|entry| entry.thread.is_some())
    };
    let (at, part) = parts.find(|entry| of_thread(&entry.1.part))?;
    let matters = part.spent.ns as f64 >= WORTH * slow.dur as f64;
    let asked = slow.waker_during(part);
    let passed = slow.tid.into_iter().collect();
    matters.then_some(Next { slow: number, part: at, asked, passed })
}
