//! Detection of records of the same wake-up.
//!
//! While an event of all threads replaces one with a filter, both write records. The kernel takes no interrupts
//! between the two records of one wake-up, so they are adjacent in their ring; that of the event which was
//! enabled last comes first (`perf_trace_add` in kernel/trace/trace_event_perf.c).

/// The raw bytes of the latest wake-up in a ring, from the event of all threads.
#[derive(Debug, Clone, Default)]
pub(crate) struct LatestWakeup(Vec<u8>);

impl LatestWakeup {
    /// Whether the next record of the ring is of another wake-up than the previous one. `of_all`: the event of
    /// all threads wrote it.
    pub fn is_another(&mut self, of_all: bool, raw: &[u8]) -> bool {
        let is_another = of_all || self.0 != raw;
        self.end_wakeup();
        if of_all {
            self.0.extend_from_slice(raw);
        }
        is_another
    }

    /// Notes that the next record of the ring is not of a wake-up.
    pub fn end_wakeup(&mut self) {
        self.0.clear();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_wake_up_counts_once() {
        let mut wakes = LatestWakeup::default();
        // One event records, then both, then the other one.
        let all = [false, false, true, false, true, false, true, true];
        let count = all.iter().filter(|&&of_all| wakes.is_another(of_all, b"a")).count();
        assert_eq!(count, 6);
        assert!(wakes.is_another(false, b"b"));
        assert!(wakes.is_another(true, b"b"));
        wakes.end_wakeup();
        assert!(wakes.is_another(false, b"b"));
    }
}
