//! Counters and histograms: the readings of a capture, in the order of the file.

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

/// What changed in one row of a segment.
#[derive(Debug)]
struct ChangedRow {
    ring: Option<u32>,
    tid: u32,
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

    /// The same as what was before all that is looked at.
    pub fn into_base(self) -> CellChunk {
        CellChunk { is_base: true, ..self }
    }
}

/// A counter or a histogram that a reading found changed, in one row of a segment.
#[derive(Debug)]
pub(crate) struct Change {
    /// Index of the source in the catalog.
    pub info: usize,
    /// Index of its counters and histograms.
    pub metric: usize,
    pub nonce: u64,
    /// None: the row that all threads share.
    pub ring: Option<u32>,
    /// The thread that added since the reading before; 0: several did, or it is not known.
    pub tid: u32,
    pub mono_ns: u64,
    /// Its cells that changed, with their values since the session began.
    values: Vec<(u32, u64)>,
}

/// A change, and what it leads to.
#[derive(Debug)]
pub(crate) struct Changed<'a> {
    pub change: Change,
    /// What the cells that changed were before, in the order of their numbers.
    pub before: Vec<(u32, u64)>,
    /// The cells of its metric after it: those that are not 0, or were stated.
    pub cells: &'a BTreeMap<u32, u64>,
}

impl Changed<'_> {
    /// What was added to a cell, modulo 2^64.
    pub fn delta(&self, cell: u32) -> u64 {
        let place = self.before.binary_search_by_key(&cell, |&(number, _)| number);
        let now = self.cells.get(&cell).copied().unwrap_or_default();
        place.map_or(0, |place| now.wrapping_sub(self.before[place].1))
    }
}

/// Source, segment, row and metric.
type MetricRow = (usize, u64, Option<u32>, usize);

/// The changes of a capture, and the values that they lead to.
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
        let place = (change.info, change.nonce, change.ring, change.metric);
        let cells = self.values.entry(place).or_default();
        let was = |&(cell, _): &(u32, u64)| (cell, cells.get(&cell).copied().unwrap_or_default());
        let before = change.values.iter().map(was).collect();
        cells.extend(change.values.iter().copied());
        Some(Changed { change, before, cells })
    }

    fn add_reading(&mut self, reading: CellChunk, sources: &[SourceInfo]) {
        let CellChunk { source, nonce, mono_ns, is_base, rows } = reading;
        // The reader checks that there is a source.
        let Some(info) = sources.iter().position(|info| info.id == source) else { return };
        let metrics = &sources[info].metrics;
        for ChangedRow { ring, tid, values } in rows {
            for (metric, values) in by_metric(metrics, &values) {
                if is_base {
                    let place = (info, nonce, ring, metric);
                    self.values.entry(place).or_default().extend(values.iter().copied());
                    continue;
                }
                let values = values.to_vec();
                let change = Change { info, metric, nonce, ring, tid, mono_ns, values };
                self.pending.push_back(change);
            }
        }
    }
}

/// The metrics to which these cells belong, each with its own; both ascend.
fn by_metric<'a>(
    metrics: &'a [Metric],
    values: &'a [(u32, u64)],
) -> impl Iterator<Item = (usize, &'a [(u32, u64)])> {
    let of = |cell: u32| metrics.partition_point(|metric| metric.cells.end <= cell);
    let chunks = values.chunk_by(move |a, b| of(a.0) == of(b.0));
    chunks.map(move |values| (of(values[0].0), values)).filter(|entry| entry.0 < metrics.len())
}
