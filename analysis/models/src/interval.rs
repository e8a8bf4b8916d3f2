//! Confidence intervals.

use std::fmt;

use serde::{Deserialize, Serialize};

/// A confidence interval: at level 0.95, it holds the true value in 95 % of cases.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct ConfidenceInterval {
    /// The lower end.
    pub low: f64,
    /// The upper end.
    pub high: f64,
}

impl ConfidenceInterval {
    /// The interval from `middle - half` to `middle + half`.
    pub fn around(middle: f64, half: f64) -> ConfidenceInterval {
        ConfidenceInterval { low: middle - half, high: middle + half }
    }

    /// The interval of one measurement around `value` that corresponds to the interval `believed` of the mean,
    /// as this one corresponds to `mean`: the scatter of a measurement is the same.
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

    /// Whether a value is in the interval.
    pub fn holds(self, value: f64) -> bool {
        self.low <= value && value <= self.high
    }

    /// The distance of the ends.
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
