//! Readings of counters and histograms, in file order.

use std::collections::VecDeque;
use std::collections::{BTreeMap, HashMap};

use ppt_capture::frame_dsl::metric::Metric;
use ppt_capture::{Cells, SourceInfo};

/// One chunk of cells.
#[derive(Debug)]
pub(crate) struct CellChunk {
    source: u16,
    nonce: u64,
    mono_ns: u64,
    is_base: bool,
    rows: Vec<ChangedRow>,
}

/// The changed cells of one row of a segment.
#[derive(Debug)]
struct ChangedRow {
    ring: Option<u32>,
    tid: u32,
    /// Cell and value.
    values: Vec<(u32, u64)>,
}

impl CellChunk {
    pub fn new(cells: &Cells<'_>) -> CellChunk {
        let head = &cells.head;
        let rows = cells.rows().map(|row| ChangedRow {
            ring: row.ring,
            tid: row.tid,
            values: row.values().collect(),
        });
        CellChunk {
            source: head.source,
            nonce: head.nonce,
            mono_ns: head.mono_ns,
            is_base: head.is_base,
            rows: rows.collect(),
        }
    }

    /// Marks the cells as base values, which are no change.
    pub fn into_base(self) -> CellChunk {
        CellChunk { is_base: true, ..self }
    }
}

/// A counter or histogram that changed between two readings, in one row of a segment.
#[derive(Debug)]
pub(crate) struct Change {
    /// Index of the source in the catalog.
    pub info: usize,
    /// Index in the counters and histograms of the source.
    pub metric: usize,
    pub nonce: u64,
    /// None for the row that all threads share.
    pub ring: Option<u32>,
    /// The thread that added since the previous reading; 0: unknown, or several threads.
    pub tid: u32,
    pub mono_ns: u64,
    /// Changed cells, with their totals since the session began.
    values: Vec<(u32, u64)>,
}

/// A change, with the values before and after it.
#[derive(Debug)]
pub(crate) struct Changed<'a> {
    pub change: Change,
    /// The changed cells with their previous values, in the order of cells.
    pub before: Vec<(u32, u64)>,
    /// All cells of the metric after the change. Cells that were never stated are absent, and 0.
    pub cells: &'a BTreeMap<u32, u64>,
}

impl Changed<'_> {
    /// The increment of a cell, modulo 2^64.
    pub fn delta(&self, cell: u32) -> u64 {
        let place = self.before.binary_search_by_key(&cell, |&(number, _)| number);
        let now = self.cells.get(&cell).copied().unwrap_or_default();
        place.map_or(0, |place| now.wrapping_sub(self.before[place].1))
    }
}

/// A metric in one row of a segment.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
struct MetricRow {
    /// Index of the source in the catalog.
    info: usize,
    /// The nonce of the segment.
    nonce: u64,
    ring: Option<u32>,
    metric: usize,
}

/// Iterates over the changes of a capture, and keeps the current values.
#[derive(Debug)]
pub(crate) struct Changes {
    readings: std::vec::IntoIter<CellChunk>,
    pending: VecDeque<Change>,
    values: HashMap<MetricRow, BTreeMap<u32, u64>>,
}

impl Changes {
    pub fn new(readings: Vec<CellChunk>) -> Changes {
        Changes { readings: readings.into_iter(), pending: VecDeque::new(), values: HashMap::new() }
    }

    /// The next change.
    pub fn next(&mut self, sources: &[SourceInfo]) -> Option<Changed<'_>> {
        while self.pending.is_empty() {
            let reading = self.readings.next()?;
            self.add_reading(reading, sources);
        }
        let change = self.pending.pop_front()?;
        let Change { info, nonce, ring, metric, .. } = change;
        let cells = self.values.entry(MetricRow { info, nonce, ring, metric }).or_default();
        let previous =
            |&(cell, _): &(u32, u64)| (cell, cells.get(&cell).copied().unwrap_or_default());
        let before = change.values.iter().map(previous).collect();
        cells.extend(change.values.iter().copied());
        Some(Changed { change, before, cells })
    }

    fn add_reading(&mut self, reading: CellChunk, sources: &[SourceInfo]) {
        let CellChunk { source, nonce, mono_ns, is_base, rows } = reading;
        // The reader has checked that the source exists.
        let Some(info) = sources.iter().position(|info| info.id == source) else { return };
        let metrics = &sources[info].metrics;
        for ChangedRow { ring, tid, values } in rows {
            for (metric, values) in by_metric(metrics, &values) {
                if is_base {
                    let row = MetricRow { info, nonce, ring, metric };
                    self.values.entry(row).or_default().extend(values.iter().copied());
                    continue;
                }
                let values = values.to_vec();
                let change = Change { info, metric, nonce, ring, tid, mono_ns, values };
                self.pending.push_back(change);
            }
        }
    }
}

/// Groups cells by metric; metrics and cells ascend.
fn by_metric<'a>(
    metrics: &'a [Metric],
    values: &'a [(u32, u64)],
) -> impl Iterator<Item = (usize, &'a [(u32, u64)])> {
    let metric_of = |cell: u32| metrics.partition_point(|metric| metric.cells.end <= cell);
    let chunks = values.chunk_by(move |a, b| metric_of(a.0) == metric_of(b.0));
    chunks
        .map(move |values| (metric_of(values[0].0), values))
        .filter(|entry| entry.0 < metrics.len())
}
