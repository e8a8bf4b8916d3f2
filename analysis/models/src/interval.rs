//! Between what and what something lies.

use std::fmt;

use serde::{Deserialize, Serialize};

/// Holds the true value in so many of a hundred cases as its level says.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct Interval {
    /// The lower end.
    pub low: f64,
    /// The upper end.
    pub high: f64,
}

impl Interval {
    /// So much to both sides.
    pub fn around(middle: f64, half: f64) -> Interval {
        Interval { low: middle - half, high: middle + half }
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

impl fmt::Display for Interval {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} to {}", self.low, self.high)
    }
}
