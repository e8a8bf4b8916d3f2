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

    /// The interval of a single measurement around `value` for the interval `believed` of the mean. `self` is
    /// the interval of a single measurement for the interval `mean`; it has the same scatter.
    pub(crate) fn single_measurement(
        self,
        value: f64,
        mean: ConfidenceInterval,
        believed: ConfidenceInterval,
    ) -> ConfidenceInterval {
        let scatter = self.width() * self.width() - mean.width() * mean.width();
        let widened = |half: f64| (half * half + (scatter / 4.0).max(0.0)).sqrt();
        ConfidenceInterval {
            low: value - widened(value - believed.low),
            high: value + widened(believed.high - value),
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
        let around = |half| ConfidenceInterval::around(10.0, half);
        let believed = ConfidenceInterval { low: 7.0, high: 10.0 };
        let single = around(5.0).single_measurement(10.0, around(3.0), believed);
        assert_eq!(single, ConfidenceInterval { low: 5.0, high: 14.0 });
        let same = around(5.0).single_measurement(10.0, around(3.0), around(3.0));
        assert_eq!(same, around(5.0));
    }
}
