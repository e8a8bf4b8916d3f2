//! Between what and what something lies.

use std::fmt;

use serde::{Deserialize, Serialize};

/// Holds the true value in as many of a hundred cases as its level says.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct ConfidenceInterval {
    /// The lower end.
    pub low: f64,
    /// The upper end.
    pub high: f64,
}

impl ConfidenceInterval {
    /// So much to both sides.
    pub fn around(middle: f64, half: f64) -> ConfidenceInterval {
        ConfidenceInterval { low: middle - half, high: middle + half }
    }

    /// As this interval, which is of one measurement, is to `mean`, which is of the mean of many, so is
    /// the answer to `believed`: both are around `value`, and what a measurement is off is the same.
    pub(crate) fn of_one(
        self,
        value: f64,
        mean: ConfidenceInterval,
        believed: ConfidenceInterval,
    ) -> ConfidenceInterval {
        let off = self.width() * self.width() - mean.width() * mean.width();
        let wide = |end: f64| (end * end + (off / 4.0).max(0.0)).sqrt();
        ConfidenceInterval {
            low: value - wide(value - believed.low),
            high: value + wide(believed.high - value),
        }
    }

    /// Whether it is in it.
    pub fn holds(self, value: f64) -> bool {
        self.low <= value && value <= self.high
    }

    /// From end to end.
    pub fn width(self) -> f64 {
        self.high - self.low
    }
}

impl fmt::Display for ConfidenceInterval {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} to {}", self.low, self.high)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_measurement_is_less_certain_than_the_mean() {
        let of = |half| ConfidenceInterval::around(10.0, half);
        let one = of(5.0).of_one(10.0, of(3.0), ConfidenceInterval { low: 7.0, high: 10.0 });
        assert_eq!(one, ConfidenceInterval { low: 5.0, high: 14.0 });
        assert_eq!(of(5.0).of_one(10.0, of(3.0), of(3.0)), of(5.0));
    }
}
