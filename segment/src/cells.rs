//! Cells: the words of counters and histograms.
//!
//! A cell of a thread's own row has one writer, the owner of the ring that the row belongs to: a
//! load and a store suffice. A later owner of the ring reads what earlier owners added, because
//! giving a ring back releases and claiming it acquires. Cells of the shared row have any number of
//! writers. A reader sums the rows. It may see an add late, but never an add that was not made, and
//! never one twice.

use std::sync::atomic::Ordering::Relaxed;

use crate::word::SharedWord;

/// Adds to a cell of the calling thread's own row.
#[inline(always)]
pub fn add_own<W: SharedWord>(cell: &W, value: u64) {
    cell.store(cell.load(Relaxed).wrapping_add(value), Relaxed);
}

/// Adds to a cell of the shared row.
#[inline(always)]
pub fn add_shared<W: SharedWord>(cell: &W, value: u64) {
    cell.add(value);
}

/// The value of a cell.
#[inline(always)]
pub fn read<W: SharedWord>(cell: &W) -> u64 {
    cell.load(Relaxed)
}

/// Cells of a histogram before its buckets.
pub mod histogram {
    /// The sum of all values, modulo 2^64.
    pub const SUM: u32 = 0;
    /// Values below the first bucket.
    pub const BELOW: u32 = 1;
    /// The first bucket. The buckets of a linear histogram are followed by one more cell, for
    /// values above.
    pub const BUCKETS: u32 = 2;
}

/// Buckets per power of two in an exponential histogram, as a power of two.
pub const LOG2_PARTS: u32 = 4;

/// Buckets of an exponential histogram: 0 to 2^63 - 1, each at most a 16th as wide as its lowest
/// value.
pub const EXPONENTIAL: u32 = (63 - LOG2_PARTS + 1) << LOG2_PARTS;

/// The cell, from the first of its histogram, that counts `value` in an exponential histogram.
#[inline(always)]
pub fn exponential(value: i64) -> u32 {
    if value < 0 {
        return histogram::BELOW;
    }
    let value = value as u64;
    // Values below 16 have a bucket each.
    let shift = (63 - (value | 1 << LOG2_PARTS).leading_zeros()) - LOG2_PARTS;
    histogram::BUCKETS + (shift << LOG2_PARTS) + (value >> shift) as u32
}

/// The same for a histogram of `buckets` buckets over `from..to`, which must not be empty.
#[inline(always)]
pub fn linear(value: u32, from: u64, to: u64, buckets: u32) -> u32 {
    let value = value as u64;
    if value < from {
        histogram::BELOW
    } else if value >= to {
        histogram::BUCKETS + buckets
    } else {
        histogram::BUCKETS + ((value - from) * buckets as u64 / (to - from)) as u32
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_duration_has_a_bucket() {
        let index = |value| exponential(value) - histogram::BUCKETS;
        assert_eq!((exponential(-1), exponential(i64::MIN)), (1, 1));
        assert_eq!((index(0), index(15), index(16), index(31)), (0, 15, 16, 31));
        assert_eq!((index(32), index(33), index(34), index(63)), (32, 32, 33, 47));
        assert_eq!(index(i64::MAX), EXPONENTIAL - 1);
        let mut last = 0;
        for power in 4..63 {
            for part in 0..16 {
                let least = (16 + part) << (power - 4);
                assert_eq!(index(least), last.max(16), "{least}");
                assert_eq!(index(least - 1 + (1 << (power - 4))), last.max(16));
                last = last.max(16) + 1;
            }
        }
        assert_eq!(last, EXPONENTIAL);
    }

    #[test]
    fn linear_buckets_divide_the_range() {
        let of = |value| linear(value, 10, 20, 4);
        assert_eq!([0, 9].map(of), [1, 1]);
        // 10 values in 4 buckets: 10 to 12, 13 and 14, 15 to 17, 18 and 19.
        assert_eq!([10, 12, 13, 14, 15, 17, 18, 19].map(of), [2, 2, 3, 3, 4, 4, 5, 5]);
        assert_eq!([20, u32::MAX].map(of), [6, 6]);
        assert_eq!(linear(u32::MAX, 0, 1 << 32, 4096), 2 + 4095);
    }
}
