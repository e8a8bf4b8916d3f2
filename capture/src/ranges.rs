//! Sets of numbers that mostly arrive in order.

use std::collections::BTreeMap;

/// A set of u64 as disjoint ranges that do not touch. Numbers that arrive in order form one range;
/// each hole costs one more, up to [`MAX_RANGES`].
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct Ranges {
    /// Start → end (exclusive).
    ranges: BTreeMap<u64, u64>,
    /// Numbers that were inserted only to limit the number of ranges.
    filled: u64,
}

/// Holes beyond this are closed from the front: memory stays bounded for any file.
const MAX_RANGES: usize = 1 << 12;

impl Ranges {
    /// Inserts `start..end`, unless it is empty or some of it is present. Returns whether it was
    /// inserted.
    pub fn insert(&mut self, start: u64, end: u64) -> bool {
        if start >= end || self.touches(start, end) {
            return false;
        }
        let (mut start, mut end) = (start, end);
        if let Some((&before, &until)) = self.ranges.range(..start).next_back()
            && until == start
        {
            start = before;
        }
        if let Some(until) = self.ranges.remove(&end) {
            end = until;
        }
        self.ranges.insert(start, end);
        if self.ranges.len() > MAX_RANGES {
            self.fill_first_hole();
        }
        true
    }

    /// Whether any number of `start..end` is present.
    pub fn touches(&self, start: u64, end: u64) -> bool {
        let below = self.ranges.range(..end).next_back();
        below.is_some_and(|(_, &until)| until > start)
    }

    /// The ranges combined with `start..end`, which may overlap them, in order.
    pub fn with(&self, (start, end): (u64, u64)) -> Vec<(u64, u64)> {
        let mut all: Vec<(u64, u64)> =
            self.ranges.iter().map(|(&start, &end)| (start, end)).collect();
        all.extend((start < end).then_some((start, end)));
        all.sort_unstable();
        all.dedup_by(|later, kept| {
            let joins = later.0 <= kept.1;
            if joins {
                kept.1 = kept.1.max(later.1);
            }
            joins
        });
        all
    }

    /// The first number after all ranges.
    pub fn end(&self) -> Option<u64> {
        self.ranges.last_key_value().map(|(_, &end)| end)
    }

    /// The missing ranges in `start..end`, in order.
    pub fn holes(&self, start: u64, end: u64) -> impl Iterator<Item = (u64, u64)> {
        let mut at = start;
        let bounds = self.ranges.iter().map(|(&from, &to)| (from, to));
        bounds.chain([(end, end)]).filter_map(move |(from, to)| {
            let hole = (at, from.min(end));
            at = at.max(to);
            (hole.0 < hole.1).then_some(hole)
        })
    }

    /// The number of missing numbers in `start..end`.
    pub fn missing(&self, start: u64, end: u64) -> u64 {
        let holes: u64 = self.holes(start, end).map(|(from, to)| to - from).sum();
        holes.saturating_add(self.filled)
    }

    fn fill_first_hole(&mut self) {
        if let Some((start, end)) = self.ranges.pop_first()
            && let Some((next, until)) = self.ranges.pop_first()
        {
            self.filled = self.filled.saturating_add(next - end);
            self.ranges.insert(start, until);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn neighbours_merge_and_overlaps_are_refused() {
        let mut set = Ranges::default();
        assert!(set.insert(10, 20));
        assert!(set.insert(30, 40));
        assert!(set.insert(20, 30));
        assert_eq!(set.ranges.len(), 1);
        for (start, end) in [(10, 40), (0, 11), (39, 50), (15, 16), (5, 45), (7, 7)] {
            assert!(!set.insert(start, end), "{start}..{end}");
        }
        assert!(set.insert(0, 10) && set.insert(40, 41));
        assert_eq!((set.ranges.len(), set.end()), (1, Some(41)));
    }

    #[test]
    fn holes_are_listed_and_counted() {
        let mut set = Ranges::default();
        set.insert(10, 20);
        set.insert(25, 30);
        assert_eq!(set.holes(5, 40).collect::<Vec<_>>(), [(5, 10), (20, 25), (30, 40)]);
        assert_eq!(set.holes(12, 27).collect::<Vec<_>>(), [(20, 25)]);
        assert_eq!(set.missing(10, 30), 5);
        assert_eq!(set.with((28, 40)), [(10, 20), (25, 40)]);
        assert_eq!(set.with((5, 26)), [(5, 30)]);
        assert_eq!(set.with((7, 7)), [(10, 20), (25, 30)]);
    }

    #[test]
    #[cfg_attr(miri, ignore = "too long")]
    fn a_set_full_of_holes_stays_small_and_counts_on() {
        let mut set = Ranges::default();
        for n in 0..3 * MAX_RANGES as u64 {
            set.insert(2 * n, 2 * n + 1);
        }
        assert_eq!(set.ranges.len(), MAX_RANGES);
        assert_eq!(set.missing(0, set.end().unwrap()), 3 * MAX_RANGES as u64 - 1);
    }
}
