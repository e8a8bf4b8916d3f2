//! Percentiles, where there are values enough for them.

use ppt_query::stats::Summary;

/// So many values have p50, p90, p99 and p99.9: of five values, p99 is hardly more than the greatest.
pub const MIN_VALUES: [u64; 4] = [1, 10, 100, 1000];

/// p50, p90, p99 and p99.9, each if there are values enough for it.
pub fn percentiles(summary: &Summary) -> [Option<f64>; 4] {
    let known = summary.percentiles_as_floats();
    std::array::from_fn(|which| known[which].filter(|_| summary.count >= MIN_VALUES[which]))
}

/// The same as places in a chart: one that is not known lies on the one below.
pub fn marked(summary: &Summary) -> [Option<f64>; 4] {
    let known = percentiles(summary);
    std::array::from_fn(|which| known[..=which].iter().rev().find_map(|one| *one))
}
