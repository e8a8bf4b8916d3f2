//! The threads in the span, and their weights.

use std::collections::HashMap;

use super::edges::SpanEdge;
use super::errors::RoundFault;
use super::ledger::Stretch;
use super::scheduling::{self, NotWeighed};

/// A step of nice(2) is this factor of weight.
const STEP: f64 = 1.25;
/// The largest accepted share of ends without a begin in their thread.
const MAX_UNMATCHED: f64 = 0.02;

#[derive(Debug, Default)]
struct SpanThread {
    /// The number of begins without an end.
    depth: u32,
    /// The time up to which its stretches were passed on.
    settled: i64,
    /// The number of steps by which it is heavier.
    heavier: i32,
}

#[derive(Debug, Default)]
pub(super) struct SpanThreads {
    threads: HashMap<i32, SpanThread>,
    /// Steps of weight of a thread in the span.
    steps: i32,
    ends: u64,
    unmatched: u64,
}

impl SpanThreads {
    /// Begins a round.
    pub fn begin(&mut self, factor: f64, now: i64) {
        self.steps = ((factor.ln() / STEP.ln()).round() as i32).min(scheduling::MAX_STEPS);
        (self.ends, self.unmatched) = (0, 0);
        self.threads.values_mut().for_each(|thread| thread.settled = now);
        self.threads.retain(|_, thread| thread.depth > 0 || thread.heavier > 0);
    }

    /// Ends a round: nobody is heavier.
    pub fn end(&mut self) {
        self.steps = 0;
    }

    /// Whether more ends than by chance belong to begins of other threads.
    pub fn is_across_threads(&self) -> bool {
        self.unmatched as f64 > MAX_UNMATCHED * self.ends as f64 + 2.0
    }

    /// A thread enters or leaves the span. Returns the stretch that its leaving ends.
    pub fn pass(&mut self, edge: &SpanEdge) -> Option<(i32, Stretch)> {
        let thread = self.threads.entry(edge.tid).or_default();
        if edge.is_begin {
            if thread.depth == 0 {
                thread.settled = thread.settled.max(edge.at_ns);
            }
            thread.depth += 1;
            return None;
        }
        self.ends += 1;
        if thread.depth == 0 {
            self.unmatched += 1;
            return None;
        }
        thread.depth -= 1;
        if thread.depth > 0 {
            return None;
        }
        let stretch = Stretch { from: thread.settled, to: edge.at_ns };
        thread.settled = thread.settled.max(edge.at_ns);
        Some((edge.tid, stretch))
    }

    /// The stretches up to `now` of all threads in the span.
    pub fn until(&mut self, now: i64) -> impl Iterator<Item = (i32, Stretch)> {
        let inside = self
            .threads
            .iter_mut()
            .filter(move |thread| thread.1.depth > 0 && thread.1.settled < now);
        inside.map(move |(&tid, thread)| {
            let from = std::mem::replace(&mut thread.settled, now);
            (tid, Stretch { from, to: now })
        })
    }

    pub fn is_in_span(&self, tid: i32) -> bool {
        self.threads.get(&tid).is_some_and(|thread| thread.depth > 0)
    }

    pub fn is_any_in_span(&self) -> bool {
        self.threads.values().any(|thread| thread.depth > 0)
    }

    pub fn is_any_heavier(&self) -> bool {
        self.threads.values().any(|thread| thread.heavier > 0)
    }

    /// The scheduler charges a thread in the span k times the virtual time, so its weight is k times as large.
    pub fn weigh(&mut self) -> Result<(), RoundFault> {
        let mut result = Ok(());
        for (&tid, thread) in &mut self.threads {
            let steps = if thread.depth > 0 { self.steps } else { 0 };
            if steps == thread.heavier {
                continue;
            }
            match scheduling::weigh(tid, std::mem::replace(&mut thread.heavier, steps), steps) {
                Ok(()) => {}
                // The thread has ended.
                Err(NotWeighed::Gone) => thread.depth = 0,
                Err(NotWeighed::OwnPriority) => result = Err(RoundFault::Priority(tid)),
                Err(NotWeighed::System) => result = Err(RoundFault::Weight(tid)),
            }
        }
        result
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn edge(tid: i32, at_ns: i64, is_begin: bool) -> SpanEdge {
        SpanEdge { tid, at_ns, is_begin }
    }

    #[test]
    fn nested_spans_are_one_stretch() {
        let mut threads = SpanThreads::default();
        for begin in [10, 12] {
            assert_eq!(threads.pass(&edge(7, begin, true)), None);
        }
        let until: Vec<_> = threads.until(20).collect();
        assert_eq!(until, [(7, Stretch { from: 10, to: 20 })]);
        assert_eq!(threads.pass(&edge(7, 25, false)), None);
        assert!(threads.is_in_span(7) && threads.is_any_in_span());
        assert_eq!(threads.pass(&edge(7, 30, false)), Some((7, Stretch { from: 20, to: 30 })));
        assert!(!threads.is_any_in_span());
    }

    #[test]
    fn spans_of_several_threads_are_noticed() {
        let mut threads = SpanThreads::default();
        for number in 0..100 {
            threads.pass(&edge(7, number, true));
            threads.pass(&edge(8, number, false));
        }
        assert!(threads.is_across_threads());
    }
}
