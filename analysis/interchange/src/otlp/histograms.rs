//! Histograms: the buckets of all threads of a process, as each reading finds them.

use std::collections::{BTreeMap, HashMap};

use super::growing::state::{BucketTotal, CellTotal, HistogramTotal};
use super::message::HistogramDataPoint;
use crate::event::EventRows;
use crate::values::FieldValue;

/// The end of a bucket, and how many values it has.
type BucketCount = (Option<i64>, u64);

/// A ring with cells: capture, segment, ring.
type RingKey = (String, String, Option<i32>);

/// One histogram of one process.
#[derive(Debug, Default)]
pub(super) struct HistogramReadings {
    /// The time of the reading that is being added; None if all readings have been written.
    read: Option<i64>,
    /// By the lower bound of the bucket; None if it has none.
    buckets: BTreeMap<Option<i64>, BucketCount>,
    /// The count of each bucket of each ring.
    counts: HashMap<(RingKey, Option<i64>), u64>,
    sums: HashMap<RingKey, i64>,
}

impl HistogramReadings {
    /// Adds a bucket. If it belongs to another reading, returns the point of the previous one. The fields are
    /// `lo hi count sum`.
    pub fn add(&mut self, rows: &EventRows, row: usize, start: u64) -> Option<HistogramDataPoint> {
        let time = rows.begin(row);
        let before = match self.read {
            Some(read) if read != time => self.point(start),
            _ => None,
        };
        self.read = Some(time);
        let long = |at: usize| match rows.fields.get(at)?.get(row)? {
            FieldValue::Int(value) => Some(value),
            _ => None,
        };
        let (lo, hi) = (long(0), long(1));
        let count = long(2).and_then(|count| u64::try_from(count).ok()).unwrap_or(0);
        let (capture, segment) = rows.origin(row);
        let text = |text: Option<&str>| text.unwrap_or("").to_owned();
        let cells = (text(capture), text(segment), rows.ring(row));
        self.sums.insert(cells.clone(), long(3).unwrap_or(0));
        let known = self.counts.entry((cells, lo)).or_insert(0);
        let added = count.saturating_sub(*known);
        *known = count;
        let bucket = self.buckets.entry(lo).or_insert((hi, 0));
        bucket.1 = bucket.1.saturating_add(added);
        before
    }

    /// The point of the last reading; None if it has been written.
    pub fn point(&mut self, start: u64) -> Option<HistogramDataPoint> {
        let time = self.read.take()?;
        let (explicit_bounds, bucket_counts) = bounds(&self.buckets);
        let count = bucket_counts.iter().fold(0u64, |sum, count| sum.saturating_add(*count));
        // The protocol has no sums of values that may be negative.
        let is_positive = self.buckets.keys().all(|lo| lo.is_some_and(|lo| lo >= 0));
        let sum = self.sums.values().fold(0i64, |sum, of| sum.saturating_add(*of)) as f64;
        Some(HistogramDataPoint {
            start_time_unix_nano: start,
            time_unix_nano: time as u64,
            count,
            sum: is_positive.then_some(sum),
            bucket_counts,
            explicit_bounds,
        })
    }
}

impl HistogramReadings {
    /// All buckets and cells so far.
    pub fn total(&self) -> (Vec<BucketTotal>, Vec<CellTotal>) {
        let bucket =
            |(&lo, &(hi, count)): (&Option<i64>, &BucketCount)| BucketTotal { lo, hi, count };
        let buckets = self.buckets.iter().map(bucket).collect();
        let cell = |key: &RingKey, lo, count, sum| {
            let (capture, segment, ring) = key.clone();
            CellTotal { capture, segment, ring, lo, count, sum }
        };
        let counts = self.counts.iter().map(|((key, lo), &count)| cell(key, *lo, Some(count), 0));
        let sums = self.sums.iter().map(|(key, &sum)| cell(key, None, None, sum));
        let mut cells: Vec<CellTotal> = counts.chain(sums).collect();
        cells.sort_by(|one, other| {
            let key =
                |of: &CellTotal| (of.capture.clone(), of.segment.clone(), of.ring, of.lo, of.count);
            key(one).cmp(&key(other))
        });
        (buckets, cells)
    }

    /// Continues from a total.
    pub fn from_total(total: &HistogramTotal) -> HistogramReadings {
        let mut readings = HistogramReadings::default();
        for bucket in &total.buckets {
            readings.buckets.insert(bucket.lo, (bucket.hi, bucket.count));
        }
        for cell in &total.cells {
            let key = (cell.capture.clone(), cell.segment.clone(), cell.ring);
            match cell.count {
                Some(count) => _ = readings.counts.insert((key, cell.lo), count),
                None => _ = readings.sums.insert(key, cell.sum),
            }
        }
        readings
    }
}

/// Upper bounds of the buckets, inclusive, and their counts. Values are whole numbers, so the bound of a bucket
/// that ends before `hi` is `hi - 1`. An empty bucket separates buckets that do not touch.
fn bounds(buckets: &BTreeMap<Option<i64>, BucketCount>) -> (Vec<f64>, Vec<u64>) {
    let (mut bounds, mut counts): (Vec<i64>, _) = (Vec::new(), Vec::new());
    let mut is_open = true;
    for (&lo, &(hi, count)) in buckets {
        if let Some(lo) = lo
            && bounds.last() != Some(&lo.saturating_sub(1))
        {
            bounds.push(lo.saturating_sub(1));
            counts.push(0);
        }
        counts.push(count);
        match hi {
            Some(hi) => bounds.push(hi.saturating_sub(1)),
            None => {
                is_open = false;
                break;
            }
        }
    }
    if is_open {
        counts.push(0);
    }
    (bounds.into_iter().map(|bound| bound as f64).collect(), counts)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn buckets_are_told_by_the_bounds_that_belong_to_them() {
        let of = |all: &[(Option<i64>, Option<i64>, u64)]| {
            bounds(&all.iter().map(|&(lo, hi, count)| (lo, (hi, count))).collect())
        };
        let touching = of(&[(Some(10), Some(20), 3), (Some(20), Some(40), 4)]);
        assert_eq!(touching, (vec![9.0, 19.0, 39.0], vec![0, 3, 4, 0]));
        let apart = of(&[(Some(10), Some(20), 3), (Some(30), Some(40), 4)]);
        assert_eq!(apart, (vec![9.0, 19.0, 29.0, 39.0], vec![0, 3, 0, 4, 0]));
        let boundless = of(&[(None, Some(0), 1), (Some(0), Some(8), 2), (Some(64), None, 5)]);
        assert_eq!(boundless, (vec![-1.0, 7.0, 63.0], vec![1, 2, 0, 5]));
        assert_eq!(of(&[]), (vec![], vec![0]));
        assert_eq!(of(&[(None, None, 7)]), (vec![], vec![7]));
    }
}
