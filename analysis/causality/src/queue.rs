//! A queue of equal things: the n-th out has the n-th in.

use std::collections::VecDeque;

use crate::entry::{Certainty, Entry};
use crate::matches::Edge;

/// By when the points of a queue were seen; None: from the start of their programs.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct QueueBegins {
    pub outs: Option<i64>,
    pub ins: Option<i64>,
}

impl QueueBegins {
    /// Whether outs from `time` on may have been written before anybody saw them.
    pub fn lacks_outs(self, time: i64) -> bool {
        self.outs.is_some_and(|begin| time <= begin)
    }

    /// The same of ins.
    pub fn lacks_ins(self, time: i64) -> bool {
        self.ins.is_some_and(|begin| time <= begin)
    }
}

/// What is known of the queue of one rule.
#[derive(Debug)]
pub(crate) struct RuleQueue<T> {
    /// The number of the out that is next.
    pub head: usize,
    /// Up to when it is known whether frames may be missing.
    pub seen: i64,
    /// Frames may be missing since the queue was known to be empty.
    pub shifted: bool,
    /// By when its points were seen.
    pub begins: QueueBegins,
    /// When the last out ended.
    last: i64,
    /// Ins whose order may yet turn out to be unknown, and their edges.
    pending: VecDeque<Taken<T>>,
}

#[derive(Debug)]
struct Taken<T> {
    by: Entry<T>,
    edge: Option<Edge<T>>,
}

impl<T: Copy> RuleQueue<T> {
    pub fn new() -> RuleQueue<T> {
        let (seen, last) = (i64::MIN, i64::MIN);
        let begins = QueueBegins::default();
        RuleQueue { head: 0, seen, shifted: false, begins, last, pending: VecDeque::new() }
    }

    pub fn clear(&mut self) {
        self.pending.clear();
        self.head = 0;
        self.seen = i64::MIN;
        self.shifted = false;
        self.last = i64::MIN;
    }

    /// Takes note of an out. Returns whether the queue was empty before it: all earlier outs are older
    /// than `within`.
    pub fn note_out(&mut self, out: &Entry<T>, within: Option<i64>) -> bool {
        let last = self.last;
        self.last = last.max(out.hi);
        within.is_some_and(|within| last < out.lo.saturating_sub(within))
    }

    /// The queue was empty before this out, whatever came before.
    pub fn start(&mut self, number: usize, time: i64) {
        self.head = number;
        self.seen = time;
        self.shifted = false;
    }

    /// An in took what it took.
    pub fn take(&mut self, by: Entry<T>, mut edge: Option<Edge<T>>) {
        for other in self.pending.iter_mut().rev().take_while(|taken| taken.by.hi >= by.lo) {
            if other.by.unordered(&by) {
                other
                    .edge
                    .iter_mut()
                    .chain(&mut edge)
                    .for_each(|edge| edge.certainty = Certainty::Possible);
            }
        }
        self.pending.push_back(Taken { by, edge });
    }

    /// The next in that no other one can change any more that begins at `until` or later, and its edge.
    pub fn settle(&mut self, until: Option<i64>) -> Option<Option<Edge<T>>> {
        let settled = until
            .is_none_or(|until| self.pending.front().is_some_and(|pending| pending.by.hi < until));
        if settled { self.pending.pop_front().map(|pending| pending.edge) } else { None }
    }
}
