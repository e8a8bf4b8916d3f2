//! Slow intervals with the same reason.

use std::collections::HashMap;

use ppt_query::why::SlowInterval;

/// For each interval, the rank of the first one with the same sentence; ranks count from 1.
pub(super) fn alike(slow: &[SlowInterval]) -> Vec<usize> {
    let mut first: HashMap<String, usize> = HashMap::new();
    let ranks = (1..).zip(slow);
    ranks.map(|(rank, entry)| *first.entry(entry.shape()).or_insert(rank)).collect()
}
