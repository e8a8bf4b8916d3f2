//! Threads that take turns: they run an interval one at a time, as if a lock were around it.

use std::collections::HashMap;

/// The largest overlap of intervals that are one at a time, as a share of their lengths: stamps are not exact.
const MAX_OVERLAP: f64 = 0.01;
/// If intervals that know nothing of each other would overlap for a smaller share, it does not show whether they take
/// turns.
const MIN_EXPECTED_OVERLAP: f64 = 0.05;
/// Fewer intervals can be one at a time by chance.
const MIN_INTERVALS: usize = 30;

/// An interval of a thread. All times are of one clock.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub struct ThreadInterval {
    /// The begin, in ns.
    pub begin: i64,
    /// The end, in ns.
    pub end: i64,
    /// The thread, by any number that no other thread has.
    pub thread: u64,
}

impl ThreadInterval {
    /// The length in ns; 0 if it ends before it begins. Captures may hold any times.
    pub(crate) fn length(&self) -> f64 {
        self.end.saturating_sub(self.begin).max(0) as f64
    }
}

/// Whether several threads run these intervals one at a time, though independent threads would run two of them at once
/// for more than 5 % of their lengths.
pub fn take_turns(intervals: &mut [ThreadInterval]) -> bool {
    intervals.sort_unstable();
    let Some(first) = intervals.first().filter(|_| intervals.len() >= MIN_INTERVALS) else {
        return false;
    };
    let mut lengths = HashMap::<u64, f64>::new();
    let (mut overlap, mut reached, mut last_thread) = (0.0, first.begin, first.thread);
    for interval in intervals.iter() {
        *lengths.entry(interval.thread).or_default() += interval.length();
        if interval.thread != last_thread {
            overlap += ThreadInterval { end: reached.min(interval.end), ..*interval }.length();
        }
        if interval.end >= reached {
            (reached, last_thread) = (interval.end, interval.thread);
        }
    }
    let time = ThreadInterval { end: reached, ..*first }.length().max(1.0);
    let sum: f64 = lengths.values().sum();
    let squares: f64 = lengths.values().map(|length| length * length).sum();
    // Each pair of threads is in the interval at once for the product of their shares of the time.
    let expected = (sum * sum - squares) / 2.0 / time;
    expected > MIN_EXPECTED_OVERLAP * sum && overlap <= MAX_OVERLAP * sum
}

#[cfg(test)]
mod tests {
    use super::*;

    fn interval(begin: i64, length: i64, thread: u64) -> ThreadInterval {
        ThreadInterval { begin, end: begin + length, thread }
    }

    #[test]
    fn threads_that_are_never_in_it_at_once_take_turns() {
        let turns = |length, threads: u64| {
            let each = (0..100).map(|at| interval(at * 1000, length, at as u64 % threads));
            take_turns(&mut each.collect::<Vec<_>>())
        };
        assert!(turns(900, 2) && turns(300, 4));
        // One thread is always alone, and short intervals are so by chance.
        assert!(!turns(900, 1) && !turns(50, 4));
        // The next one begins before the last one ends.
        assert!(!turns(1100, 2) && turns(1005, 2));
        assert!(!take_turns(&mut []));
        // Extreme times do not overflow.
        let farthest = |at: u64| ThreadInterval { begin: i64::MIN, end: i64::MAX, thread: at };
        assert!(!take_turns(&mut (0..40).map(farthest).collect::<Vec<_>>()));
        // Few show nothing.
        let mut few: Vec<_> = (0..20).map(|at| interval(at * 1000, 900, at as u64 % 2)).collect();
        assert!(!take_turns(&mut few));
    }
}
