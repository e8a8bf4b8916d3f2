//! The longest intervals.

use std::cmp::Reverse;

use datafusion::arrow::array::{Array, Int32Array, Int64Array};

/// Whether the number is absent, and the number: absent ones sort last.
type SortedNumber = (bool, i64);

/// An interval. Intervals are sorted by length, longest first, then by time, ring and number.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Candidate {
    length: Reverse<i64>,
    time: SortedNumber,
    ring: SortedNumber,
    seqno: SortedNumber,
    /// Number of the batch that has its frame.
    pub position: usize,
    pub row: usize,
}

/// The columns of a batch by which candidates are compared.
pub(super) struct Compared<'a> {
    pub lengths: &'a Int64Array,
    pub times: &'a Int64Array,
    pub ring: Option<&'a Int32Array>,
    pub seqno: Option<&'a Int64Array>,
    pub position: usize,
}

impl Compared<'_> {
    fn candidate(&self, row: usize) -> Candidate {
        let sorted = |is_valid: bool, value: i64| if is_valid { (false, value) } else { (true, 0) };
        let ring = self.ring.filter(|ring| ring.is_valid(row)).map(|ring| ring.value(row).into());
        let seqno = self.seqno.filter(|seqno| seqno.is_valid(row)).map(|seqno| seqno.value(row));
        Candidate {
            length: Reverse(self.lengths.value(row)),
            time: sorted(self.times.is_valid(row), self.times.value(row)),
            ring: sorted(ring.is_some(), ring.unwrap_or(0)),
            seqno: sorted(seqno.is_some(), seqno.unwrap_or(0)),
            position: self.position,
            row,
        }
    }
}

/// The longest intervals of a field so far.
#[derive(Debug, Default)]
pub(super) struct LongestCandidates {
    /// Sorted.
    pub found: Vec<Candidate>,
}

impl LongestCandidates {
    /// Adds the intervals of a batch, of which at most `limit` are kept.
    pub fn batch(&mut self, compared: &Compared<'_>, limit: usize) {
        let lengths = compared.lengths;
        let mut least = self.least(limit);
        for (row, &length) in lengths.values().iter().enumerate() {
            if length >= least && lengths.is_valid(row) {
                self.add(compared.candidate(row), limit);
                least = self.least(limit);
            }
        }
    }

    /// The smallest length that can still be among the longest.
    fn least(&self, limit: usize) -> i64 {
        let last = self.found.last().filter(|_| self.found.len() >= limit);
        last.map_or(i64::MIN, |last| last.length.0)
    }

    fn add(&mut self, candidate: Candidate, limit: usize) {
        let place = self.found.partition_point(|known| *known < candidate);
        if place < limit {
            self.found.insert(place, candidate);
            self.found.truncate(limit);
        }
    }

    pub fn join(&mut self, other: LongestCandidates, limit: usize) {
        other.found.into_iter().for_each(|candidate| self.add(candidate, limit));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_longest_come_first_and_the_earliest_of_equals() {
        let lengths = Int64Array::from(vec![Some(5), None, Some(9), Some(5), Some(9), Some(1)]);
        let times = Int64Array::from(vec![Some(3), Some(0), None, Some(2), Some(8), Some(0)]);
        let compared =
            Compared { lengths: &lengths, times: &times, ring: None, seqno: None, position: 4 };
        let rows = |longest: &LongestCandidates| {
            longest.found.iter().map(|found| found.row).collect::<Vec<_>>()
        };
        let (mut few, mut all) = (LongestCandidates::default(), LongestCandidates::default());
        few.batch(&compared, 3);
        all.batch(&compared, 10);
        assert_eq!((rows(&few), rows(&all)), (vec![4, 2, 3], vec![4, 2, 3, 0, 5]));
        let mut joined = LongestCandidates::default();
        joined.join(all, 2);
        joined.join(few, 2);
        assert_eq!(rows(&joined), [4, 4]);
    }
}
