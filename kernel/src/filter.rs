//! The kernel's filter of threads for a tracepoint of all threads, as text.
//!
//! The kernel takes one page of text, and a filter cannot be replaced. So ranges of thread numbers pass, as do
//! all threads that are made later. The reader of the records ignores threads of other processes. Numbers of
//! threads wrap around after the highest one: the filter is useful until that is close.

use std::fs::{self, File};
use std::os::unix::fs::FileExt;

/// The largest number of ranges in a filter.
const MAX_RANGES: usize = 48;

/// The threads that pass a filter.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Filter {
    ranges: Vec<(i32, i32)>,
    /// Every number above this one.
    above: i32,
}

impl Filter {
    /// Lets `threads` pass, and all threads with a number above `newest`, the latest one.
    pub fn new(threads: impl IntoIterator<Item = i32>, newest: i32) -> Self {
        let mut threads: Vec<i32> =
            threads.into_iter().filter(|&thread| thread <= newest).collect();
        threads.sort_unstable();
        threads.dedup();
        let mut gaps: Vec<i32> = threads.windows(2).map(|window| window[1] - window[0]).collect();
        gaps.sort_unstable_by(|one, other| other.cmp(one));
        // Larger gaps than this one stay open.
        let closed = gaps.get(MAX_RANGES - 1).copied().unwrap_or(1);
        let mut ranges: Vec<(i32, i32)> = Vec::new();
        for thread in threads {
            match ranges.last_mut() {
                Some(range) if thread - range.1 <= closed => range.1 = thread,
                _ => ranges.push((thread, thread)),
            }
        }
        Self { ranges, above: newest }
    }

    /// The filter as text, for a tracepoint with the thread in `field`.
    pub fn text(&self, field: &str) -> String {
        let ranges = self.ranges.iter().map(|&(first, last)| {
            if first == last {
                format!("{field} == {first}")
            } else {
                format!("({field} >= {first} && {field} <= {last})")
            }
        });
        let above = format!("{field} > {}", self.above);
        ranges.chain([above]).collect::<Vec<_>>().join(" || ")
    }
}

/// Detects that the numbers of threads are about to wrap around.
#[derive(Debug)]
pub(crate) struct TidWraparound {
    /// Numbers above this one are close to the highest.
    close: i32,
    /// The number of the newest thread in ppt's pid namespace, at the last look.
    newest: i32,
    /// The file that has the number of the newest thread.
    loadavg: Option<File>,
}

impl TidWraparound {
    pub fn new() -> Self {
        let highest = fs::read_to_string("/proc/sys/kernel/pid_max").ok();
        let highest = highest.and_then(|highest| highest.trim().parse::<i32>().ok()).unwrap_or(0);
        // A machine does not make a quarter of all numbers between two looks.
        let close = highest - highest / 4;
        Self { close, newest: 0, loadavg: File::open("/proc/loadavg").ok() }
    }

    /// The number of the newest thread at the last look.
    pub fn newest(&self) -> i32 {
        self.newest
    }

    /// Whether numbers are about to wrap around, or have done so since the last look, or this is unknown.
    pub fn is_close(&mut self) -> bool {
        let mut text = [0; 128];
        let read = self.loadavg.as_ref().and_then(|loadavg| loadavg.read_at(&mut text, 0).ok());
        let text = read.and_then(|len| std::str::from_utf8(&text[..len]).ok());
        let newest = text.and_then(|text| text.split_whitespace().last()?.parse().ok());
        let Some(newest) = newest else { return true };
        let has_wrapped = newest < self.newest;
        self.newest = newest;
        has_wrapped || newest > self.close
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn few_threads_are_named_and_many_are_ranges() {
        assert_eq!(Filter::new([], 9).text("pid"), "pid > 9");
        let text = "pid == 7 || (pid >= 100 && pid <= 102) || pid > 200";
        assert_eq!(Filter::new([102, 7, 101, 100], 200).text("pid"), text);
        let filter = Filter::new([7], 200);
        let passed = [6, 7, 200, 201].map(|thread| passes(&filter, thread));
        assert_eq!(passed, [false, true, false, true]);
    }

    #[test]
    fn numbers_that_begin_anew_are_seen() {
        let at = |close, newest| TidWraparound { close, newest, ..TidWraparound::new() };
        let mut far = at(i32::MAX, 0);
        assert!(!far.is_close() && far.newest() > 0);
        assert!(at(0, 0).is_close(), "close to the highest one");
        assert!(at(i32::MAX, i32::MAX).is_close(), "they have wrapped around");
        assert!(TidWraparound { loadavg: None, ..far }.is_close(), "not known");
    }

    fn passes(filter: &Filter, thread: i32) -> bool {
        let within = |&(first, last): &(i32, i32)| (first..=last).contains(&thread);
        thread > filter.above || filter.ranges.iter().any(within)
    }

    proptest! {
        #[test]
        fn every_thread_passes_and_the_kernel_takes_the_text(
            threads in prop::collection::vec(1i32..4_194_304, 1..3000),
            newest in 1i32..4_194_304,
        ) {
            let filter = Filter::new(threads.clone(), newest);
            assert!(filter.ranges.len() <= MAX_RANGES);
            assert!(threads.iter().all(|&thread| passes(&filter, thread)));
            assert!(filter.text("prev_pid").len() < 4096 - 64);
        }
    }
}
