//! Counters and histograms, from their readings.

use std::collections::{BTreeMap, HashMap, VecDeque};

use ppt_capture::frame_dsl::metric::{Metric, MetricShape};
use ppt_capture::{Cells, HistogramCells, SourceInfo};

use crate::rate::Rate;

/// The most counters and histograms distinguished.
const MAX_SERIES: usize = 512;
/// The most cells with remembered values; additions to other cells are not reported.
const MOST_CELLS: usize = 1 << 19;
/// The most readings with remembered times.
const MOST_READINGS: usize = 256;
/// The approximate period of a rate, in ns.
const LATELY: u64 = 900_000_000;
/// A source that was not read for this long counts as having added nothing, in ns.
const SILENT: u64 = 5_000_000_000;
/// The longest period that a reading covers, in ns; readings without changes are not recorded.
const LONGEST: u64 = 2_000_000_000;

/// All metrics.
#[derive(Default)]
pub(crate) struct LiveMetrics {
    pub all: Vec<LiveMetric>,
    /// By source: its metrics, and their indices in `all`.
    sources: HashMap<u16, Vec<(Metric, Option<usize>)>>,
    /// By source, segment, row and number: the cell's previous value.
    cells: HashMap<(u16, u64, Option<u32>, u32), u64>,
    /// Times of readings in order, in ns.
    readings: VecDeque<u64>,
    stretch: Option<u64>,
}

/// A counter or a histogram.
pub(crate) struct LiveMetric {
    pub buffer: String,
    pub name: String,
    pub unit: String,
    pub shape: MetricShape,
    /// Sums of all cells, by index.
    pub cells: BTreeMap<u32, i128>,
    /// Amounts added, or numbers of values.
    pub rate: Rate,
    /// The latest amounts, each with its time.
    latest: VecDeque<(u64, i128)>,
    /// Additions to the cells in the latest two periods, and the number of the second period.
    halves: [BTreeMap<u32, u64>; 2],
    current: u64,
}

impl LiveMetrics {
    /// The latest values cover one or two periods of `stretch` ns; None: all time.
    pub fn new(stretch: Option<u64>) -> LiveMetrics {
        LiveMetrics { stretch, ..LiveMetrics::default() }
    }

    pub fn source(&mut self, info: &SourceInfo) {
        if self.sources.contains_key(&info.id) {
            return;
        }
        let buffer = &info.source.buffer;
        let place = |metric: &Metric| {
            let is_it = |live_metric: &LiveMetric| {
                (&live_metric.buffer, &live_metric.name, live_metric.shape)
                    == (buffer, &metric.name, metric.shape)
            };
            if let Some(known) = self.all.iter().position(is_it) {
                return Some(known);
            }
            if self.all.len() == MAX_SERIES {
                return None;
            }
            self.all.push(LiveMetric {
                buffer: buffer.clone(),
                name: metric.name.clone(),
                unit: metric.unit.clone(),
                shape: metric.shape,
                cells: BTreeMap::new(),
                rate: Rate::default(),
                latest: VecDeque::new(),
                halves: Default::default(),
                current: 0,
            });
            Some(self.all.len() - 1)
        };
        let metrics = info.metrics.clone();
        let places: Vec<_> = metrics.iter().map(place).collect();
        self.sources.insert(info.id, metrics.into_iter().zip(places).collect());
    }

    /// Adds a reading.
    pub fn read(&mut self, cells: &Cells<'_>) {
        let head = cells.head;
        let Some(metrics) = self.sources.get(&head.source) else { return };
        let stretch = self.stretch.map_or(0, |stretch| head.mono_ns / stretch);
        for row in cells.rows() {
            for (cell, value) in row.values() {
                let key = (head.source, head.nonce, row.ring, cell);
                if self.cells.len() >= MOST_CELLS && !self.cells.contains_key(&key) {
                    continue;
                }
                let before = self.cells.insert(key, value).unwrap_or_default();
                if head.is_base {
                    continue;
                }
                let at = metrics.partition_point(|metric| metric.0.cells.end <= cell);
                let Some((metric, Some(place))) = metrics.get(at) else { continue };
                let place = cell.checked_sub(metric.cells.start).map(|cell| (*place, cell));
                if let Some((told, cell)) = place {
                    let delta = value.wrapping_sub(before);
                    self.all[told].add(cell, delta, head.mono_ns, stretch);
                }
            }
        }
        if self.readings.back().is_none_or(|reading| *reading < head.mono_ns) {
            self.readings.push_back(head.mono_ns);
            if self.readings.len() > MOST_READINGS {
                self.readings.pop_front();
            }
        }
    }

    /// The recent rate per second at `now`: since the reading before the last second.
    pub fn per_second(&self, of: &LiveMetric, now: u64, began: u64) -> f64 {
        let Some(&last) = self.readings.back() else { return 0.0 };
        if now.saturating_sub(last) > SILENT {
            return 0.0;
        }
        let before =
            self.readings.iter().rev().find(|reading| **reading <= last.saturating_sub(LATELY));
        let from = before.copied().unwrap_or(began).max(last.saturating_sub(LONGEST));
        let added: i128 =
            of.latest.iter().filter(|entry| entry.0 > from).map(|entry| entry.1).sum();
        added as f64 * 1e9 / last.saturating_sub(from).max(1) as f64
    }

    /// The latest values of a histogram at `now`.
    pub fn latest(&self, of: &LiveMetric, now: u64) -> HistogramCells {
        let is_over = self.stretch.map_or(0, |stretch| (now / stretch).saturating_sub(of.current));
        let mut cells: BTreeMap<u32, u64> = BTreeMap::new();
        let [before, last] = &of.halves;
        let told = [(before, is_over == 0), (last, is_over < 2)];
        for (&cell, &count) in told.iter().filter(|entry| entry.1).flat_map(|entry| entry.0) {
            let sum = cells.entry(cell).or_default();
            *sum = sum.saturating_add(count);
        }
        of.histogram(cells.into_iter())
    }
}

impl LiveMetric {
    fn add(&mut self, cell: u32, delta: u64, now: u64, stretch: u64) {
        // The count of a bucket cannot exceed what a capture holds.
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
        self.latest.push_back((now, signed));
        let old = |entry: &(u64, i128)| entry.0 < now.saturating_sub(2 * LONGEST);
        while self.latest.len() > 4 * MOST_READINGS || self.latest.front().is_some_and(old) {
            self.latest.pop_front();
        }
        if stretch > self.current {
            let last = std::mem::take(&mut self.halves[1]);
            let follows = stretch == self.current + 1;
            self.halves[0] = if follows { last } else { BTreeMap::new() };
            self.current = stretch;
        }
        if self.shape.is_histogram() {
            let count = self.halves[1].entry(cell).or_default();
            *count = count.saturating_add(delta);
        }
    }

    /// The total of the metric.
    pub fn total(&self) -> i128 {
        self.cells.get(&0).copied().unwrap_or_default()
    }

    /// All values of a histogram.
    pub fn whole(&self) -> HistogramCells {
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
