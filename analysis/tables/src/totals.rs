//! Totals of counters and histograms, which agree with `ppt info` for a single capture.

use std::collections::BTreeMap;

use ppt_capture::HistogramCells;
use ppt_capture::frame_dsl::metric::{Metric, MetricShape};

use crate::error::TableError;
use crate::set::CaptureSet;

/// The total of a counter or a histogram of a buffer over all captures.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Total {
    /// The buffer.
    pub buffer: String,
    /// The name of the counter or histogram.
    pub name: String,
    /// The unit; may be empty. Histograms of durations without a unit are in ns.
    pub unit: String,
    /// The sum, or the buckets.
    pub value: TotalValue,
}

/// The total of a counter or a histogram.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum TotalValue {
    /// The sum of a counter.
    Counter(i128),
    /// The cells of a histogram, and whether its values are durations.
    Histogram(HistogramCells, bool),
}

impl CaptureSet {
    /// Whether a counter of this name can decrease: it is an up-down counter in some capture.
    pub fn may_fall(&self, buffer: &str, counter: &str) -> bool {
        let sources = self.captures().iter().flat_map(|capture| &capture.catalog().sources);
        let of_buffer = sources.filter(|info| info.source.buffer == buffer);
        let mut metrics = of_buffer.flat_map(|info| info.metrics.iter());
        metrics.any(|metric| metric.name == counter && metric.shape == MetricShape::UpDownCounter)
    }

    /// The totals of the counters and histograms of the buffers that `is_wanted` accepts, by buffer, in
    /// declared order.
    ///
    /// # Errors
    /// A capture cannot be read.
    pub fn totals(&self, is_wanted: impl Fn(&str) -> bool) -> Result<Vec<Total>, TableError> {
        let mut all: Vec<Total> = Vec::new();
        for capture in self.captures() {
            let cells = capture.cells()?;
            for info in &capture.catalog().sources {
                if info.metrics.is_empty() || !is_wanted(&info.source.buffer) {
                    continue;
                }
                let sums = cells.sums(info.id);
                for metric in &info.metrics {
                    let total = Total::new(&info.source.buffer, metric, &sums);
                    match all.iter_mut().find(|other| other.is_same_metric(&total)) {
                        Some(sum) => sum.add(total.value),
                        None => all.push(total),
                    }
                }
            }
        }
        // The sort is stable: the order within a buffer remains.
        all.sort_by(|a, b| a.buffer.cmp(&b.buffer));
        Ok(all)
    }
}

impl Total {
    fn new(buffer: &str, metric: &Metric, sums: &BTreeMap<u32, u64>) -> Total {
        let sum = || sums.get(&metric.cells.start).copied().unwrap_or_default();
        let value = match metric.shape {
            MetricShape::Counter => TotalValue::Counter(sum().into()),
            MetricShape::UpDownCounter => TotalValue::Counter((sum() as i64).into()),
            MetricShape::Exponential => {
                TotalValue::Histogram(HistogramCells::from_sums(metric, sums), true)
            }
            MetricShape::Linear { .. } => {
                TotalValue::Histogram(HistogramCells::from_sums(metric, sums), false)
            }
        };
        let (buffer, name) = (buffer.to_owned(), metric.name.clone());
        Total { buffer, name, unit: metric.unit.clone(), value }
    }

    fn is_same_metric(&self, other: &Total) -> bool {
        let kind = |total: &Total| match &total.value {
            TotalValue::Counter(_) => None,
            TotalValue::Histogram(_, is_time) => Some(*is_time),
        };
        (&self.buffer, &self.name, &self.unit, kind(self))
            == (&other.buffer, &other.name, &other.unit, kind(other))
    }

    fn add(&mut self, value: TotalValue) {
        match (&mut self.value, value) {
            (TotalValue::Counter(sum), TotalValue::Counter(more)) => {
                *sum = sum.saturating_add(more);
            }
            (TotalValue::Histogram(sum, _), TotalValue::Histogram(more, _)) => {
                sum.count = sum.count.wrapping_add(more.count);
                sum.sum = sum.sum.wrapping_add(more.sum);
                let buckets = sum.buckets.drain(..).chain(more.buckets);
                let mut all: BTreeMap<_, u64> = BTreeMap::new();
                for (lo, hi, count) in buckets {
                    let known = all.entry((lo, hi.unwrap_or(i128::MAX))).or_default();
                    *known = known.wrapping_add(count);
                }
                let bucket =
                    |((lo, hi), count)| (lo, Some(hi).filter(|number| *number < i128::MAX), count);
                sum.buckets = all.into_iter().map(bucket).collect();
            }
            // Both have the same kind, see `is_same_metric`.
            _ => {}
        }
    }
}
