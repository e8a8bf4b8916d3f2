//! Counters and histograms, from their readings.

use std::collections::{BTreeMap, HashMap, VecDeque};

use ppt_capture::frame_dsl::metric::{Metric, MetricShape};
use ppt_capture::{Cells, HistogramCells, SourceInfo};

use crate::rate::Rate;

/// The most counters and histograms that are distinguished.
const MAX_SERIES: usize = 512;
/// The most cells with remembered values. Additions to other cells are not reported.
const MAX_CELLS: usize = 1 << 19;
/// The most readings with remembered times.
const MAX_READINGS: usize = 256;
/// The shortest period of a rate, in ns.
const MIN_RATE_PERIOD: u64 = 900_000_000;
/// Without a reading for this time in ns, the rate is 0.
const SILENT: u64 = 5_000_000_000;
/// The longest period that a reading covers, in ns. Readings without changes are not recorded.
const MAX_READING_PERIOD: u64 = 2_000_000_000;

/// The counters and histograms of all sources.
#[derive(Default)]
pub(crate) struct LiveMetrics {
    pub metrics: Vec<LiveMetric>,
    /// The metrics of each source, in the order of their cells.
    sources: HashMap<u16, Vec<SourceMetric>>,
    /// The previous values of cells.
    cells: HashMap<CellKey, u64>,
    /// The times of readings in order, in ns.
    readings: VecDeque<u64>,
    period: Option<u64>,
}

/// A metric of a source.
struct SourceMetric {
    metric: Metric,
    /// The index in [`LiveMetrics::metrics`]. None if there are too many metrics.
    index: Option<usize>,
}

/// Identifies a cell.
#[derive(PartialEq, Eq, Hash)]
struct CellKey {
    source: u16,
    /// The nonce of the segment.
    nonce: u64,
    ring: Option<u32>,
    /// The number of the cell in its row.
    number: u32,
}

/// A counter or a histogram.
pub(crate) struct LiveMetric {
    pub buffer: String,
    pub name: String,
    pub unit: String,
    pub shape: MetricShape,
    /// Sums of all cells, by index.
    pub cells: BTreeMap<u32, i128>,
    /// The added amounts of a counter, or the numbers of values of a histogram.
    pub rate: Rate,
    latest: VecDeque<Addition>,
    /// Additions to the cells of a histogram in the latest two periods, earlier first.
    periods: [BTreeMap<u32, u64>; 2],
    /// The number of the second period.
    current: u64,
}

/// An amount that was added to a metric.
struct Addition {
    /// The time of the reading in ns.
    time: u64,
    amount: i128,
}

impl LiveMetrics {
    /// The latest values cover one or two periods of `period` ns. None if they cover all time.
    pub fn new(period: Option<u64>) -> LiveMetrics {
        LiveMetrics { period, ..LiveMetrics::default() }
    }

    /// Adds the metrics of a source. Sources of one buffer share their metrics.
    pub fn add_source(&mut self, info: &SourceInfo) {
        if self.sources.contains_key(&info.id) {
            return;
        }
        let buffer = &info.source.buffer;
        let index = |metric: &Metric| {
            let is_same = |live_metric: &LiveMetric| {
                (&live_metric.buffer, &live_metric.name, live_metric.shape)
                    == (buffer, &metric.name, metric.shape)
            };
            if let Some(index) = self.metrics.iter().position(is_same) {
                return Some(index);
            }
            if self.metrics.len() == MAX_SERIES {
                return None;
            }
            self.metrics.push(LiveMetric {
                buffer: buffer.clone(),
                name: metric.name.clone(),
                unit: metric.unit.clone(),
                shape: metric.shape,
                cells: BTreeMap::new(),
                rate: Rate::default(),
                latest: VecDeque::new(),
                periods: Default::default(),
                current: 0,
            });
            Some(self.metrics.len() - 1)
        };
        let metrics = info.metrics.clone();
        let indices: Vec<_> = metrics.iter().map(index).collect();
        let metrics = metrics.into_iter().zip(indices);
        let metrics = metrics.map(|(metric, index)| SourceMetric { metric, index }).collect();
        self.sources.insert(info.id, metrics);
    }

    /// Adds a reading of the cells of a source.
    pub fn add_reading(&mut self, cells: &Cells<'_>) {
        let head = cells.head;
        let Some(metrics) = self.sources.get(&head.source) else { return };
        let period = self.period.map_or(0, |period| head.mono_ns / period);
        for row in cells.rows() {
            for (number, value) in row.values() {
                let (source, nonce, ring) = (head.source, head.nonce, row.ring);
                let key = CellKey { source, nonce, ring, number };
                if self.cells.len() >= MAX_CELLS && !self.cells.contains_key(&key) {
                    continue;
                }
                let before = self.cells.insert(key, value).unwrap_or_default();
                if head.is_base {
                    continue;
                }
                let at = metrics.partition_point(|entry| entry.metric.cells.end <= number);
                let Some(SourceMetric { metric, index: Some(index) }) = metrics.get(at) else {
                    continue;
                };
                if let Some(cell) = number.checked_sub(metric.cells.start) {
                    let delta = value.wrapping_sub(before);
                    self.metrics[*index].add(cell, delta, head.mono_ns, period);
                }
            }
        }
        if self.readings.back().is_none_or(|reading| *reading < head.mono_ns) {
            self.readings.push_back(head.mono_ns);
            if self.readings.len() > MAX_READINGS {
                self.readings.pop_front();
            }
        }
    }

    /// The rate of a metric per second at `now`, from the additions since the reading before the last
    /// second. `began` is the first time of the capture.
    pub fn per_second(&self, metric: &LiveMetric, now: u64, began: u64) -> f64 {
        let Some(&last) = self.readings.back() else { return 0.0 };
        if now.saturating_sub(last) > SILENT {
            return 0.0;
        }
        let until = last.saturating_sub(MIN_RATE_PERIOD);
        let before = self.readings.iter().rev().find(|reading| **reading <= until);
        let from = before.copied().unwrap_or(began).max(last.saturating_sub(MAX_READING_PERIOD));
        let additions = metric.latest.iter().filter(|addition| addition.time > from);
        let added: i128 = additions.map(|addition| addition.amount).sum();
        added as f64 * 1e9 / last.saturating_sub(from).max(1) as f64
    }

    /// The latest values of a histogram at `now`.
    pub fn latest(&self, metric: &LiveMetric, now: u64) -> HistogramCells {
        let current = metric.current;
        let elapsed = self.period.map_or(0, |period| (now / period).saturating_sub(current));
        let periods: &[BTreeMap<u32, u64>] = match elapsed {
            0 => &metric.periods,
            1 => &metric.periods[1..],
            _ => &[],
        };
        let mut cells: BTreeMap<u32, u64> = BTreeMap::new();
        for (&cell, &count) in periods.iter().flatten() {
            let sum = cells.entry(cell).or_default();
            *sum = sum.saturating_add(count);
        }
        metric.histogram(cells.into_iter())
    }
}

impl LiveMetric {
    /// Adds `delta` to a cell, in the period with this number.
    fn add(&mut self, cell: u32, delta: u64, now: u64, period: u64) {
        let signed = match self.shape {
            MetricShape::UpDownCounter => i128::from(delta as i64),
            _ => i128::from(delta),
        };
        let sum = self.cells.entry(cell).or_default();
        *sum = sum.saturating_add(signed);
        let is_sum = self.shape.is_histogram() && self.shape.bucket(cell).is_none();
        if is_sum {
            return;
        }
        self.rate.add(now, u64::try_from(signed).unwrap_or_default());
        self.latest.push_back(Addition { time: now, amount: signed });
        let oldest = now.saturating_sub(2 * MAX_READING_PERIOD);
        let is_old = |addition: &Addition| addition.time < oldest;
        while self.latest.len() > 4 * MAX_READINGS || self.latest.front().is_some_and(is_old) {
            self.latest.pop_front();
        }
        if period > self.current {
            let last = std::mem::take(&mut self.periods[1]);
            let follows = period == self.current + 1;
            self.periods[0] = if follows { last } else { BTreeMap::new() };
            self.current = period;
        }
        if self.shape.is_histogram() {
            let count = self.periods[1].entry(cell).or_default();
            *count = count.saturating_add(delta);
        }
    }

    /// The sum of a counter.
    pub fn total(&self) -> i128 {
        self.cells.get(&0).copied().unwrap_or_default()
    }

    /// All values of a histogram.
    pub fn whole_histogram(&self) -> HistogramCells {
        let count = |(&cell, &sum): (&u32, &i128)| (cell, u64::try_from(sum).unwrap_or_default());
        self.histogram(self.cells.iter().map(count))
    }

    fn histogram(&self, cells: impl Iterator<Item = (u32, u64)>) -> HistogramCells {
        let mut histogram = HistogramCells::default();
        for (cell, count) in cells.filter(|cell| cell.1 > 0) {
            if let Some((lo, hi)) = self.shape.bucket(cell) {
                histogram.count = histogram.count.saturating_add(count);
                histogram.buckets.push((lo, hi, count));
            }
        }
        histogram
    }
}
