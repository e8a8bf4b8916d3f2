//! How long threads waited in the span.

use std::collections::HashMap;

use super::ledger::Stretch;
use super::switches::ThreadSwitch;

#[derive(Debug, Default)]
pub(super) struct SpanWaits {
    /// Switches that may come before others which are not read yet.
    unordered: Vec<ThreadSwitch>,
    /// Since when threads wait.
    waiting: HashMap<i32, i64>,
    /// The waits that have ended since the last look.
    ended: HashMap<i32, Vec<Stretch>>,
    /// The time of all threads in the span, and how much of it they waited, in ns.
    in_span: i64,
    waited: i64,
}

impl SpanWaits {
    /// Begins a round.
    pub fn begin(&mut self) {
        (self.in_span, self.waited) = (0, 0);
    }

    /// The time of all threads in the span, and how much of it they waited, in ns.
    pub fn sums(&self) -> (u64, u64) {
        (self.in_span as u64, self.waited as u64)
    }

    /// A thread got or gave up its CPU. CPUs are read one after the other, so this is in no order.
    pub fn switched(&mut self, switch: ThreadSwitch) {
        self.unordered.push(switch);
    }

    /// All switches until `now` are read.
    pub fn settle(&mut self, now: i64) {
        self.ended.clear();
        self.unordered.sort_by_key(|switch| switch.at);
        let settled = self.unordered.partition_point(|switch| switch.at <= now);
        for switch in self.unordered.drain(..settled) {
            if !switch.runs {
                self.waiting.insert(switch.tid, switch.at);
            } else if let Some(from) = self.waiting.remove(&switch.tid) {
                let wait = Stretch { from, to: switch.at };
                self.ended.entry(switch.tid).or_default().push(wait);
            }
        }
    }

    /// Adds a stretch during which a thread was in the span. Stretches of a thread do not overlap.
    pub fn spent(&mut self, tid: i32, stretch: Stretch) {
        self.in_span += stretch.length();
        let waits = self.waiting.get(&tid).map(|&from| Stretch { from, to: i64::MAX });
        let waits = waits.into_iter().chain(self.ended.get(&tid).into_iter().flatten().copied());
        self.waited += waits.map(|wait| wait.within(stretch).length()).sum::<i64>();
    }

    /// Forgets the waits of all other threads. A thread runs before it enters the span.
    pub fn keep(&mut self, is_in_span: impl Fn(i32) -> bool) {
        self.waiting.retain(|&tid, _| is_in_span(tid));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn waits_count_where_they_are_in_the_span() {
        let mut waits = SpanWaits::default();
        // Thread 7 waits from 10 to 30 and from 40 on; it is read in another order. 8 waits outside.
        for (at, tid, runs) in [(30, 7, true), (10, 7, false), (5, 8, false), (40, 7, false)] {
            waits.switched(ThreadSwitch { at, tid, runs });
        }
        waits.settle(35);
        waits.spent(7, Stretch { from: 20, to: 35 });
        assert_eq!(waits.sums(), (15, 10));
        waits.keep(|tid| tid == 7);
        waits.settle(60);
        waits.spent(7, Stretch { from: 35, to: 60 });
        waits.spent(8, Stretch { from: 50, to: 60 });
        assert_eq!(waits.sums(), (50, 30));
        waits.begin();
        assert_eq!(waits.sums(), (0, 0));
        assert!(waits.ended.is_empty());
    }
}
