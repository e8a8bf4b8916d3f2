//! Percentiles that are shown only if there are enough values.

use ppt_query::stats::Summary;

/// Minimum number of values for p50, p90, p99 and p99.9: the p99 of five values is hardly more than
/// their maximum.
pub const MIN_VALUES: [u64; 4] = [1, 10, 100, 1000];

/// p50, p90, p99 and p99.9, each if there are enough values.
pub fn shown_percentiles(summary: &Summary) -> [Option<f64>; 4] {
    let known = summary.percentiles_as_floats();
    std::array::from_fn(|which| known[which].filter(|_| summary.count >= MIN_VALUES[which]))
}

/// Positions of p50, p90, p99 and p99.9 in a chart: the next lower percentile replaces a missing one.
pub fn filled_percentiles(summary: &Summary) -> [Option<f64>; 4] {
    let known = shown_percentiles(summary);
    std::array::from_fn(|which| known[..=which].iter().rev().find_map(|one| *one))
}
