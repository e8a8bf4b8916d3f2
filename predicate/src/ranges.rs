//! Sets of numbers.

use crate::ast::Comparison;

/// An inclusive range of numbers.
type Range = (i128, i128);

/// A set of integers: ascending ranges that do not touch.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Ranges {
    /// The only range of most sets. Empty (1, 0) if there are no or several ranges.
    only: Range,
    /// All ranges, if they are several.
    several: Box<[Range]>,
}

const LOWEST: i128 = i128::MIN;
const HIGHEST: i128 = i128::MAX;

impl Ranges {
    /// The numbers in any of `ranges`.
    pub fn new(mut ranges: Vec<Range>) -> Ranges {
        ranges.retain(|(low, high)| low <= high);
        ranges.sort_unstable();
        let mut merged: Vec<Range> = Vec::with_capacity(ranges.len());
        for (low, high) in ranges {
            match merged.last_mut() {
                Some(last) if low <= last.1.saturating_add(1) => last.1 = last.1.max(high),
                _ => merged.push((low, high)),
            }
        }
        match merged[..] {
            [] => Ranges { only: (1, 0), several: Box::default() },
            [only] => Ranges { only, several: Box::default() },
            _ => Ranges { only: (1, 0), several: merged.into() },
        }
    }

    /// The numbers for which the comparison with `value` holds.
    pub fn comparing(comparison: Comparison, value: i128) -> Ranges {
        // Values have at most 64 bits, so the neighbours exist.
        let (below, above) = (value.saturating_sub(1), value.saturating_add(1));
        Ranges::new(match comparison {
            Comparison::Equal => vec![(value, value)],
            Comparison::Unequal => vec![(LOWEST, below), (above, HIGHEST)],
            Comparison::Less => vec![(LOWEST, below)],
            Comparison::AtMost => vec![(LOWEST, value)],
            Comparison::Greater => vec![(above, HIGHEST)],
            Comparison::AtLeast => vec![(value, HIGHEST)],
        })
    }

    /// The complement, if `negated`.
    pub fn negated(self, negated: bool) -> Ranges {
        if !negated {
            return self;
        }
        let all = if self.several.is_empty() { &[self.only][..] } else { &self.several };
        let mut others = Vec::with_capacity(all.len() + 1);
        let mut next = Some(LOWEST);
        for &(low, high) in all.iter().filter(|(low, high)| low <= high) {
            if let Some(from) = next.filter(|from| *from < low) {
                others.push((from, low - 1));
            }
            next = high.checked_add(1);
        }
        others.extend(next.map(|from| (from, HIGHEST)));
        Ranges::new(others)
    }

    /// Whether `value` is in the set.
    #[inline(always)]
    pub fn has(&self, value: i128) -> bool {
        let (low, high) = self.only;
        low <= value && value <= high || !self.several.is_empty() && self.is_in_one(value)
    }

    #[inline(never)]
    fn is_in_one(&self, value: i128) -> bool {
        let after = self.several.partition_point(|(low, _)| *low <= value);
        after > 0 && value <= self.several[after - 1].1
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn ranges_that_touch_are_one() {
        assert_eq!(Ranges::new(vec![(3, 4), (1, 2), (9, 8)]), Ranges::new(vec![(1, 4)]));
        assert_eq!(Ranges::new(vec![(1, 9), (2, 3)]).only, (1, 9));
        assert_eq!(Ranges::new(vec![]).negated(true).only, (LOWEST, HIGHEST));
        assert!(!Ranges::new(vec![]).has(0));
        assert!(!Ranges::new(vec![(LOWEST, HIGHEST)]).negated(true).has(0));
    }

    proptest! {
        #[test]
        fn a_set_has_what_it_was_made_of(
            ranges in prop::collection::vec((-20i128..20, -20i128..20), 0..6),
            negated: bool,
        ) {
            let set = Ranges::new(ranges.clone()).negated(negated);
            for value in -25..25 {
                let is_in = ranges.iter().any(|(low, high)| (low..=high).contains(&&value));
                prop_assert_eq!(set.has(value), is_in != negated, "{} {:?}", value, set);
            }
        }
    }
}
