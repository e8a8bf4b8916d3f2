//! Threads that take turns: they run an interval one at a time, as if a lock were around it.

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

/// Whether several threads run these intervals one at a time, though independent threads would run two of them at once
/// for more than 5 % of their lengths.
pub fn take_turns(intervals: &mut [ThreadInterval]) -> bool {
    intervals.sort_unstable();
    let Some(first) = intervals.first().filter(|_| intervals.len() >= MIN_INTERVALS) else {
        return false;
    };
    let mut lengths = std::collections::HashMap::<u64, f64>::new();
    let (mut overlap, mut reached, mut last_thread) = (0, first.begin, first.thread);
    for interval in intervals.iter() {
        *lengths.entry(interval.thread).or_default() += (interval.end - interval.begin) as f64;
        if interval.thread != last_thread {
            overlap += (reached.min(interval.end) - interval.begin).max(0);
        }
        if interval.end >= reached {
            (reached, last_thread) = (interval.end, interval.thread);
        }
    }
    let time = (reached - first.begin).max(1) as f64;
    let sum: f64 = lengths.values().sum();
    let squares: f64 = lengths.values().map(|length| length * length).sum();
    // Each pair of threads is in the interval at once for the product of their shares of the time.
    let expected = (sum * sum - squares) / 2.0 / time;
    expected > MIN_EXPECTED_OVERLAP * sum && overlap as f64 <= MAX_OVERLAP * sum
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
        // Few show nothing.
        let mut few: Vec<_> = (0..20).map(|at| interval(at * 1000, 900, at as u64 % 2)).collect();
        assert!(!take_turns(&mut few));
    }
}
