//! One-pass statistics of columns: arithmetic only, no I/O.
//!
//! [`Samples`] collects the values of a column. While they fit into the [`Budget`], they are kept
//! and the results are exact. Beyond it they become a [`Sketch`] of three digits in constant
//! memory. A [`Histogram`] shows the distribution of values, and [`Distinct`] counts the distinct
//! ones. A [`Resampler`] draws the indices of a bootstrap.
#![forbid(unsafe_code)]

mod distinct;
mod histogram;
mod moments;
mod quantile;
mod resampler;
mod samples;
mod sketch;
mod summary;

pub use distinct::{Distinct, DistinctCount, DistinctValue};
pub use histogram::{Bin, BinScale, Histogram};
pub use quantile::quantile;
pub use resampler::Resampler;
pub use samples::{Budget, Samples};
pub use sketch::Sketch;
pub use summary::{PERCENTILES, Summary, SummaryNumber};

/// A value of a column. NaN counts as missing.
pub trait ColumnValue: Copy + PartialOrd + Send + 'static {
    /// The value for output, exact if it fits.
    fn number(self) -> SummaryNumber;
    /// The value for arithmetic.
    fn float(self) -> f64;
    /// The value if its type has whole numbers only, which are summed without rounding.
    fn whole(self) -> Option<i128>;
}

impl ColumnValue for i64 {
    fn number(self) -> SummaryNumber {
        SummaryNumber::Whole(self.into())
    }
    fn float(self) -> f64 {
        self as f64
    }
    fn whole(self) -> Option<i128> {
        Some(self.into())
    }
}

impl ColumnValue for u64 {
    fn number(self) -> SummaryNumber {
        SummaryNumber::Whole(self.into())
    }
    fn float(self) -> f64 {
        self as f64
    }
    fn whole(self) -> Option<i128> {
        Some(self.into())
    }
}

impl ColumnValue for f64 {
    fn number(self) -> SummaryNumber {
        SummaryNumber::Real(self)
    }
    fn float(self) -> f64 {
        self
    }
    fn whole(self) -> Option<i128> {
        None
    }
}
