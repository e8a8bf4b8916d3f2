//! Percentiles that are shown only if there are enough values.

use ppt_query::stats::Summary;

/// Minimum number of values for p50, p90, p99 and p99.9, because the p99 of five values is hardly more than
/// their maximum.
pub const MIN_VALUES: [u64; 4] = [1, 10, 100, 1000];

/// p50, p90, p99 and p99.9, each if there are enough values.
pub fn shown_percentiles(summary: &Summary) -> [Option<f64>; 4] {
    let percentiles = summary.percentiles_as_floats();
    std::array::from_fn(|index| percentiles[index].filter(|_| summary.count >= MIN_VALUES[index]))
}

/// Positions of p50, p90, p99 and p99.9 in a chart. The next lower percentile replaces a missing one.
pub fn filled_percentiles(summary: &Summary) -> [Option<f64>; 4] {
    let shown = shown_percentiles(summary);
    std::array::from_fn(|index| shown[..=index].iter().rev().find_map(|percentile| *percentile))
}
