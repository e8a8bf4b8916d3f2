//! The summary of a column's values.

use std::cmp::Ordering;
use std::fmt;

/// The percentiles reported.
pub const PERCENTILES: [f64; 4] = [0.5, 0.9, 0.99, 0.999];

/// A number; whole if the column's values are.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum SummaryNumber {
    /// A whole number.
    Whole(i128),
    /// Any other number.
    Real(f64),
}

/// The largest integer up to which floats represent every whole number.
const FLOATS_HOLD: u128 = 1 << f64::MANTISSA_DIGITS;

impl SummaryNumber {
    /// As a float, for arithmetic.
    pub fn float(self) -> f64 {
        match self {
            SummaryNumber::Whole(number) => number as f64,
            SummaryNumber::Real(number) => number,
        }
    }

    /// The whole number, if it is so large that floats do not represent all of its neighbours.
    pub fn beyond_floats(self) -> Option<i128> {
        match self {
            SummaryNumber::Whole(whole) if whole.unsigned_abs() > FLOATS_HOLD => Some(whole),
            _ => None,
        }
    }

    /// The number clamped to `low` to `high`, which rounding may have left.
    pub(crate) fn within(self, low: SummaryNumber, high: SummaryNumber) -> SummaryNumber {
        let end = if self.is_less(low) {
            low
        } else if high.is_less(self) {
            high
        } else {
            return self;
        };
        end.beyond_floats().map_or(SummaryNumber::Real(end.float()), SummaryNumber::Whole)
    }

    /// Compares exactly, even where floats cannot represent the values.
    pub(crate) fn is_less(self, other: SummaryNumber) -> bool {
        let order = match (self, other) {
            (SummaryNumber::Whole(one), SummaryNumber::Whole(other)) => Some(one.cmp(&other)),
            (SummaryNumber::Real(one), SummaryNumber::Real(other)) => one.partial_cmp(&other),
            (SummaryNumber::Whole(whole), SummaryNumber::Real(real)) => compare(whole, real),
            (SummaryNumber::Real(real), SummaryNumber::Whole(whole)) => {
                compare(whole, real).map(Ordering::reverse)
            }
        };
        order == Some(Ordering::Less)
    }
}

fn compare(whole: i128, real: f64) -> Option<Ordering> {
    // A float beyond this is whole; the cast saturates at the least and the greatest i128.
    if real.abs() >= FLOATS_HOLD as f64 {
        return Some(whole.cmp(&(real as i128)));
    }
    (whole as f64).partial_cmp(&real)
}

impl fmt::Display for SummaryNumber {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            SummaryNumber::Whole(number) => write!(f, "{number}"),
            SummaryNumber::Real(number) => write!(f, "{number}"),
        }
    }
}

/// The summary of a column's values.
#[derive(Debug, Clone, PartialEq)]
pub struct Summary {
    /// The number of values, without missing ones.
    pub count: u64,
    /// The number of NULLs and NaNs.
    pub nulls: u64,
    /// The smallest value; None without values.
    pub min: Option<SummaryNumber>,
    /// The largest value.
    pub max: Option<SummaryNumber>,
    /// The sum; of whole values without rounding.
    pub sum: SummaryNumber,
    /// The arithmetic mean, a float unless only a whole number lies between the smallest and the
    /// largest.
    pub mean: Option<SummaryNumber>,
    /// The standard deviation: the square root of the sum of squared deviations over n − 1.
    pub sd: Option<f64>,
    /// The values of [`PERCENTILES`], interpolated between neighbours as numpy does by default. They
    /// are
    /// floats, and whole numbers where floats do not hold the neighbours.
    pub percentiles: [Option<SummaryNumber>; 4],
    /// Whether the percentiles are exact; otherwise they have three digits.
    pub exact: bool,
}

impl Summary {
    /// The percentiles as floats, in the order of [`PERCENTILES`].
    pub fn percentiles_as_floats(&self) -> [Option<f64>; 4] {
        self.percentiles.map(|number| number.map(SummaryNumber::float))
    }

    /// The mean as a float.
    pub fn mean_as_float(&self) -> Option<f64> {
        self.mean.map(SummaryNumber::float)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_are_compared_exactly() {
        let near = (1 << 53) + 1;
        assert!(SummaryNumber::Real((1u64 << 53) as f64).is_less(SummaryNumber::Whole(near)));
        assert!(SummaryNumber::Whole(near).is_less(SummaryNumber::Real((near + 1) as f64)));
        assert!(!SummaryNumber::Whole(near).is_less(SummaryNumber::Real((near - 1) as f64)));
        assert!(SummaryNumber::Whole(2).is_less(SummaryNumber::Real(2.5)));
        assert!(
            SummaryNumber::Real(f64::NEG_INFINITY).is_less(SummaryNumber::Whole(i64::MIN.into()))
        );
        assert!(SummaryNumber::Whole(u64::MAX.into()).is_less(SummaryNumber::Real(f64::INFINITY)));
    }

    #[test]
    fn what_is_within_stays_what_it_is() {
        let ends = (SummaryNumber::Whole(2), SummaryNumber::Whole((1 << 60) + 1));
        let within = |number: f64| SummaryNumber::Real(number).within(ends.0, ends.1);
        assert_eq!(within(2.5), SummaryNumber::Real(2.5));
        assert_eq!(within(1.0), SummaryNumber::Real(2.0));
        assert_eq!(within(1e300), ends.1);
    }
}
