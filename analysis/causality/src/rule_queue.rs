//! A queue of equal things: the n-th out causes the n-th in. The simulated queues of what-if are in
//! `retime/job_queues.rs`.

use std::collections::VecDeque;

use crate::entry::{Certainty, Entry};
use crate::matches::Edge;

/// The times from which the points of a queue were recorded; None if from the start of their programs.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct QueueBegins {
    pub outs: Option<i64>,
    pub ins: Option<i64>,
}

impl QueueBegins {
    /// Whether outs from `time` on may have been written before recording began.
    pub fn lacks_outs(self, time: i64) -> bool {
        self.outs.is_some_and(|begin| time <= begin)
    }

    /// Whether ins from `time` on may have been written before recording began.
    pub fn lacks_ins(self, time: i64) -> bool {
        self.ins.is_some_and(|begin| time <= begin)
    }
}

/// The state of the queue of one rule.
#[derive(Debug)]
pub(crate) struct RuleQueue<T> {
    /// The number of the next out.
    pub head: usize,
    /// The time up to which `may_be_shifted` holds.
    pub checked_for_losses_until: i64,
    /// Frames may be missing since the queue was known to be empty.
    pub may_be_shifted: bool,
    /// The times from which its points were recorded.
    pub begins: QueueBegins,
    /// The latest time of any out.
    last: i64,
    /// Ins whose order may still turn out to be unknown, and their edges.
    pending: VecDeque<Taken<T>>,
}

#[derive(Debug)]
struct Taken<T> {
    effect: Entry<T>,
    edge: Option<Edge<T>>,
}

impl<T: Copy> RuleQueue<T> {
    pub fn new() -> RuleQueue<T> {
        RuleQueue {
            head: 0,
            checked_for_losses_until: i64::MIN,
            may_be_shifted: false,
            begins: QueueBegins::default(),
            last: i64::MIN,
            pending: VecDeque::new(),
        }
    }

    pub fn clear(&mut self) {
        self.pending.clear();
        self.head = 0;
        self.checked_for_losses_until = i64::MIN;
        self.may_be_shifted = false;
        self.last = i64::MIN;
    }

    /// Notes an out. Returns whether the queue was empty before it: all earlier outs are older than `within`.
    pub fn note_out(&mut self, out: &Entry<T>, within: Option<i64>) -> bool {
        let last = self.last;
        self.last = last.max(out.hi);
        within.is_some_and(|within| last < out.lo.saturating_sub(within))
    }

    /// Starts an empty queue at the out with this number and time.
    pub fn start(&mut self, number: usize, time: i64) {
        self.head = number;
        self.checked_for_losses_until = time;
        self.may_be_shifted = false;
    }

    /// Adds an in and its edge. If its order relative to another in is unknown, both edges are possible only.
    pub fn take(&mut self, effect: Entry<T>, mut edge: Option<Edge<T>>) {
        for other in self.pending.iter_mut().rev().take_while(|taken| taken.effect.hi >= effect.lo)
        {
            if other.effect.unordered(&effect) {
                other
                    .edge
                    .iter_mut()
                    .chain(&mut edge)
                    .for_each(|edge| edge.certainty = Certainty::Possible);
            }
        }
        self.pending.push_back(Taken { effect, edge });
    }

    /// Removes the first in whose edge no in from `until` on can change, and returns that edge.
    pub fn settle(&mut self, until: Option<i64>) -> Option<Option<Edge<T>>> {
        let settled = until
            .is_none_or(|until| self.pending.front().is_some_and(|first| first.effect.hi < until));
        if settled { self.pending.pop_front().map(|pending| pending.edge) } else { None }
    }
}
