//! Divides the running time of a thread among its slices: each ns counts for the innermost slice around it.

use std::collections::HashMap;

use super::answer::{RunningIn, ThreadSlice};

/// A slice that has begun.
#[derive(Debug)]
struct OpenSlice {
    /// The slice. `ns` is the time for which it was the innermost slice while the thread ran.
    slice: ThreadSlice,
    /// The place of its name in `RunningTime::shares`.
    share: usize,
}

impl OpenSlice {
    fn end(&self) -> i64 {
        self.slice.ts.saturating_add(self.slice.dur)
    }
}

/// Divides the time that a thread ran within an interval among its slices.
#[derive(Debug, Default)]
pub(super) struct RunningTime {
    /// The times at which the thread ran: from and to, ns since the epoch, in order.
    pieces: Vec<(i64, i64)>,
    /// Pieces before this one are divided.
    piece: usize,
    /// Everything before this time is divided.
    at: i64,
    /// The slices that have begun and not ended, the innermost last.
    open: Vec<OpenSlice>,
    shares: Vec<RunningIn>,
    by_name: HashMap<String, usize>,
}

impl RunningTime {
    /// `pieces` must be in the order of time and must not overlap.
    pub(super) fn new(pieces: Vec<(i64, i64)>) -> RunningTime {
        RunningTime { at: i64::MIN, pieces, ..RunningTime::default() }
    }

    /// Adds a slice of the thread. Slices must come in the order of their beginnings, the longer first.
    pub(super) fn enter(&mut self, slice: ThreadSlice) {
        self.advance(slice.ts);
        let share = match self.by_name.get(&slice.name) {
            Some(&share) => share,
            None => {
                self.by_name.insert(slice.name.clone(), self.shares.len());
                let longest = ThreadSlice { ns: 0, ..slice.clone() };
                self.shares.push(RunningIn { name: slice.name.clone(), ns: 0, slices: 0, longest });
                self.shares.len() - 1
            }
        };
        self.open.push(OpenSlice { slice: ThreadSlice { ns: 0, ..slice }, share });
    }

    /// Call this after the last slice. Returns the names of slices with their times, the most time first.
    pub(super) fn finish(mut self) -> Vec<RunningIn> {
        self.advance(i64::MAX);
        self.shares.retain(|share| share.ns > 0);
        self.shares.sort_by(|a, b| b.ns.cmp(&a.ns).then_with(|| a.name.cmp(&b.name)));
        self.shares
    }

    /// Divides everything before a time.
    fn advance(&mut self, to: i64) {
        while let Some(innermost) = self.open.last() {
            let end = innermost.end().min(to);
            let ns = self.ran_until(end);
            let Some(innermost) = self.open.last_mut() else { break };
            innermost.slice.ns += ns;
            if innermost.end() > to {
                break;
            }
            self.close();
        }
        // Time that no slice covers is skipped.
        self.ran_until(to);
    }

    /// Ends the innermost slice.
    fn close(&mut self) {
        let Some(OpenSlice { slice, share }) = self.open.pop() else { return };
        if slice.ns == 0 {
            return;
        }
        let share = &mut self.shares[share];
        share.ns += slice.ns;
        share.slices += 1;
        if slice.ns > share.longest.ns {
            share.longest = slice;
        }
    }

    /// The time that the thread ran from `at` to the time `to`, in ns. Sets `at` to `to`.
    fn ran_until(&mut self, to: i64) -> i64 {
        let mut ran = 0;
        while let Some(&(from, until)) = self.pieces.get(self.piece).filter(|piece| piece.0 < to) {
            ran += (until.min(to) - from.max(self.at)).max(0);
            if until > to {
                break;
            }
            self.piece += 1;
        }
        self.at = self.at.max(to);
        ran
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use proptest::prelude::*;

    use super::super::answer::FrameOrigin;
    use super::*;

    fn slice(name: String, ts: i64, dur: i64) -> ThreadSlice {
        ThreadSlice {
            name,
            about: None,
            ns: 0,
            ts,
            dur,
            frame: FrameOrigin::default(),
            around: false,
        }
    }

    proptest! {
        /// Slices may overlap in any way: each ns counts for the slice that began last and has not ended.
        #[test]
        fn each_ns_counts_for_the_innermost_slice(
            lengths in proptest::collection::vec((0i64..6, 1i64..6), 0..12),
            mut slices in proptest::collection::vec((0i64..60, 0i64..30, 0u8..4), 0..12),
        ) {
            let mut at = 0;
            let mut pieces = Vec::new();
            for (gap, length) in lengths {
                pieces.push((at + gap, at + gap + length));
                at += gap + length;
            }
            slices.sort_by_key(|slice| (slice.0, -slice.1));
            let mut running = RunningTime::new(pieces.clone());
            for &(ts, dur, name) in &slices {
                running.enter(slice(name.to_string(), ts, dur));
            }
            let found = running.finish();
            let mut expected: BTreeMap<String, i64> = BTreeMap::new();
            for ns in pieces.iter().flat_map(|&(from, to)| from..to) {
                let mut around = slices.iter().rev();
                if let Some(inner) = around.find(|slice| slice.0 <= ns && ns < slice.0 + slice.1) {
                    *expected.entry(inner.2.to_string()).or_default() += 1;
                }
            }
            prop_assert!(found.is_sorted_by_key(|share| -share.ns));
            prop_assert!(found.iter().all(|share| share.slices > 0 && share.longest.ns <= share.ns));
            prop_assert!(found.iter().all(|share| share.longest.ns <= share.longest.dur));
            let found: BTreeMap<String, i64> =
                found.into_iter().map(|share| (share.name, share.ns)).collect();
            prop_assert_eq!(found, expected);
        }
    }
}
