//! Periods in which frames are missing.

/// No frame is missing.
pub(crate) static NOTHING: Missing = Missing { times: Vec::new() };

/// Periods in which frames are missing, in ns.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct Missing {
    /// Disjoint, ascending.
    times: Vec<(i64, i64)>,
}

impl Missing {
    /// The union of `gaps`, each from its first to its second time, both included. None if the gap has no known
    /// beginning or end.
    pub fn during(gaps: impl IntoIterator<Item = (Option<i64>, Option<i64>)>) -> Missing {
        let known = |(from, to): (Option<i64>, Option<i64>)| {
            (from.unwrap_or(i64::MIN), to.unwrap_or(i64::MAX))
        };
        let mut all: Vec<_> =
            gaps.into_iter().map(known).filter(|entry| entry.0 <= entry.1).collect();
        all.sort_unstable();
        let mut times: Vec<(i64, i64)> = Vec::new();
        for (from, to) in all {
            match times.last_mut() {
                Some(last) if from <= last.1 => last.1 = last.1.max(to),
                _ => times.push((from, to)),
            }
        }
        Missing { times }
    }

    /// The periods, disjoint and ascending.
    pub fn times(&self) -> &[(i64, i64)] {
        &self.times
    }

    /// Whether a frame written between these times, both included, may be missing.
    pub fn between(&self, from: i64, to: i64) -> bool {
        let first = self.times.partition_point(|gap| gap.1 < from);
        self.times.get(first).is_some_and(|gap| gap.0 <= to)
    }

    /// The earliest time at which a frame may be missing, of those written after `from` and before `to`.
    pub fn first_within(&self, from: i64, to: i64) -> Option<i64> {
        let first = self.times.partition_point(|gap| gap.1 <= from);
        let gap = self.times.get(first).filter(|gap| gap.0 < to)?;
        (from < to).then(|| gap.0.max(from))
    }

    /// Whether a frame of this time or later may be missing.
    pub fn since(&self, from: i64) -> bool {
        self.between(from, i64::MAX)
    }

    /// Whether a frame of this time or earlier may be missing.
    pub fn until(&self, to: i64) -> bool {
        self.between(i64::MIN, to)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn gaps_bound_what_may_be_missing() {
        let gaps =
            [(Some(10), Some(20)), (Some(15), Some(16)), (Some(40), Some(50)), (Some(9), Some(8))];
        let missing = Missing::during(gaps);
        assert_eq!(missing.times, [(10, 20), (40, 50)]);
        assert!(missing.between(20, 30) && missing.between(0, 10) && missing.between(12, 13));
        assert!(!missing.between(21, 39) && !missing.between(0, 9) && !missing.between(51, 60));
        let first = |from, to| missing.first_within(from, to);
        assert_eq!((first(0, 10), first(0, 11), first(15, 16)), (None, Some(10), Some(15)));
        assert_eq!((first(20, 40), first(20, 41), first(50, 99)), (None, Some(40), None));
        assert!(missing.since(50) && !missing.since(51) && missing.until(10) && !missing.until(9));
        assert!(Missing::during([(None, Some(3))]).until(i64::MIN));
        assert!(Missing::during([(Some(3), None)]).since(i64::MAX));
        assert!(!Missing::default().since(i64::MIN));
    }
}
