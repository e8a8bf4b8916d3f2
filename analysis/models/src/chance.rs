//! Distributions.

use statrs::distribution::{ContinuousCDF, FisherSnedecor, Normal, StudentsT};

/// The quantile of Student's t; `freedom` is above 0.
pub(crate) fn t_quantile(share: f64, freedom: f64) -> f64 {
    StudentsT::new(0.0, 1.0, freedom).map_or(f64::NAN, |t| t.inverse_cdf(share))
}

/// The two-sided p value of a t.
pub(crate) fn t_beyond(t: f64, freedom: f64) -> f64 {
    if t.is_nan() {
        return f64::NAN;
    }
    StudentsT::new(0.0, 1.0, freedom).map_or(f64::NAN, |students_t| 2.0 * students_t.sf(t.abs()))
}

/// The p value of an F.
pub(crate) fn f_beyond(f: f64, one: f64, other: f64) -> f64 {
    if f.is_nan() {
        return f64::NAN;
    }
    FisherSnedecor::new(one, other).map_or(f64::NAN, |snedecor| snedecor.sf(f.max(0.0)))
}

/// The cumulative distribution function of the normal distribution.
pub(crate) fn normal_below(z: f64) -> f64 {
    Normal::standard().cdf(z)
}

/// The quantile of the normal distribution.
pub(crate) fn normal_quantile(share: f64) -> f64 {
    Normal::standard().inverse_cdf(share)
}
