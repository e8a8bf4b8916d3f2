//! What is said of the values of a column.

use std::fmt;

/// The percentiles that are told.
pub const PERCENTILES: [f64; 4] = [0.5, 0.9, 0.99, 0.999];

/// A number, whole where the column's are.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Number {
    /// A whole one.
    Whole(i128),
    /// Any other.
    Real(f64),
}

impl Number {
    /// For arithmetic.
    pub fn float(self) -> f64 {
        match self {
            Number::Whole(number) => number as f64,
            Number::Real(number) => number,
        }
    }
}

impl fmt::Display for Number {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Number::Whole(number) => write!(f, "{number}"),
            Number::Real(number) => write!(f, "{number}"),
        }
    }
}

/// What is said of the values of a column.
#[derive(Debug, Clone, PartialEq)]
pub struct Summary {
    /// Values, without those that are none.
    pub count: u64,
    /// NULLs and NaNs.
    pub nulls: u64,
    /// The least; None where there is no value.
    pub min: Option<Number>,
    /// The greatest.
    pub max: Option<Number>,
    /// Of all values; of whole ones without rounding.
    pub sum: Number,
    /// The arithmetic mean.
    pub mean: Option<f64>,
    /// The standard deviation: the root of the squares' sum over n − 1.
    pub sd: Option<f64>,
    /// Those of [`PERCENTILES`], interpolated between neighbours as numpy does by default.
    pub percentiles: [Option<f64>; 4],
    /// Whether the percentiles are exact; else three digits of them are.
    pub exact: bool,
}
