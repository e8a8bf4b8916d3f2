//! `counters` and `histograms`: the values of metrics at each reading.

use std::sync::Arc;

use arrow_schema::SchemaRef;
use ppt_capture::frame_dsl::metric::{Metric, MetricShape};

use super::named::NamedTable;
use crate::bounds::{Bounded, BoundedNumber};
use crate::error::{SetError, TableError};
use crate::readings::{Change, Changed, Changes};
use crate::set::CaptureSet;
use crate::small::{Cell, CellType, batch, schema};
use crate::table::{Batches, CaptureTable, Planned, ROWS_PER_BATCH, Scan, TableRequest};

pub(super) fn make(set: &Arc<CaptureSet>) -> Result<Vec<NamedTable>, SetError> {
    let table = |kind: MetricTable| {
        let fixed = [
            ("capture", CellType::Word),
            ("buffer", CellType::Word),
            ("segment", CellType::Word),
            ("ring", CellType::Int),
            ("host", CellType::Word),
            ("pid", CellType::Int),
            ("tid", CellType::Int),
            ("name", CellType::Word),
            ("ts", CellType::Time),
        ];
        let own = match kind {
            MetricTable::Counters => {
                vec![("value", CellType::Long), ("delta", CellType::Long), ("unit", CellType::Word)]
            }
            MetricTable::Histograms => vec![
                ("lo", CellType::Long),
                ("hi", CellType::Long),
                ("count", CellType::Long),
                ("sum", CellType::Long),
                ("delta", CellType::Long),
                ("unit", CellType::Word),
            ],
        };
        MetricsTable { set: set.clone(), kind, schema: schema(fixed.into_iter().chain(own)) }
    };
    Ok(vec![
        NamedTable::fixed("counters", table(MetricTable::Counters)),
        NamedTable::fixed("histograms", table(MetricTable::Histograms)),
    ])
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum MetricTable {
    Counters,
    Histograms,
}

impl MetricTable {
    fn has(self, metric: &Metric) -> bool {
        metric.shape.is_histogram() == (self == MetricTable::Histograms)
    }
}

#[derive(Debug)]
struct MetricsTable {
    set: Arc<CaptureSet>,
    kind: MetricTable,
    schema: SchemaRef,
}

impl CaptureTable for MetricsTable {
    fn schema(&self) -> &SchemaRef {
        &self.schema
    }

    fn bounded(&self, column: usize) -> Option<Bounded> {
        (self.schema.field(column).name() == "ts").then_some(Bounded::Number(BoundedNumber::Ts))
    }

    fn plan(&self, request: &TableRequest<'_>) -> Result<Planned, TableError> {
        let scan = MetricScan {
            set: self.set.clone(),
            kind: self.kind,
            schema: Arc::new(self.schema.project(request.columns)?),
            columns: request.columns.to_vec(),
        };
        Ok(Planned::from(Arc::new(scan) as Arc<dyn Scan>))
    }
}

/// A scan of readings; each part is a capture.
#[derive(Debug, Clone)]
struct MetricScan {
    set: Arc<CaptureSet>,
    kind: MetricTable,
    schema: SchemaRef,
    columns: Vec<usize>,
}

impl Scan for MetricScan {
    fn schema(&self) -> &SchemaRef {
        &self.schema
    }

    fn parts(&self) -> usize {
        self.set.captures().len().max(1)
    }

    fn read(&self, part: usize) -> Batches {
        let Some(capture) = self.set.captures().get(part) else {
            return Box::new(std::iter::empty());
        };
        let readings = match capture.readings() {
            Ok(readings) => readings,
            Err(error) => return Box::new(std::iter::once(Err(error))),
        };
        let mut changes = Changes::new(readings);
        let scan = self.clone();
        Box::new(std::iter::from_fn(move || {
            let rows = scan.rows_of(part, &mut changes);
            let batch = || batch(&scan.schema, &scan.columns, &rows);
            (!rows.is_empty()).then(batch)
        }))
    }

    fn rows(&self, _: Option<usize>) -> Option<usize> {
        None
    }

    fn explain_text(&self) -> String {
        "readings".to_owned()
    }
}

impl MetricScan {
    /// The next rows; empty at the end.
    fn rows_of(&self, part: usize, changes: &mut Changes) -> Vec<Vec<Cell>> {
        let capture = &self.set.captures()[part];
        let catalog = capture.catalog();
        let mut rows = Vec::new();
        while rows.len() < ROWS_PER_BATCH {
            let Some(changed) = changes.next(&catalog.sources) else { break };
            let info = &catalog.sources[changed.change.info];
            let metric = &info.metrics[changed.change.metric];
            if !self.kind.has(metric) {
                continue;
            }
            let Change { nonce, ring, tid, mono_ns, .. } = changed.change;
            let row = |MetricColumns { is_added, cells }: MetricColumns| {
                let fixed = [
                    Cell::word(&capture.id),
                    Cell::word(&info.source.buffer),
                    Cell::word(&format!("{nonce:016x}")),
                    ring.map_or(Cell::Null, Cell::int),
                    Cell::word(catalog.host()),
                    Cell::int(info.source.process.pid),
                    if is_added && tid != 0 { Cell::int(tid) } else { Cell::Null },
                    Cell::word(&metric.name),
                    Cell::time(catalog.epoch(mono_ns)),
                ];
                fixed.into_iter().chain(cells).collect()
            };
            match self.kind {
                MetricTable::Counters => rows.push(row(counter(metric, &changed))),
                MetricTable::Histograms => rows.extend(histogram(metric, &changed).map(row)),
            }
        }
        rows
    }
}

/// The columns of a row that are not fixed.
struct MetricColumns {
    /// Something was added since the previous reading, so the reading may know the thread.
    is_added: bool,
    cells: Vec<Cell>,
}

/// The columns `value delta unit`.
fn counter(metric: &Metric, changed: &Changed<'_>) -> MetricColumns {
    let cell = metric.cells.start;
    let value = changed.cells.get(&cell).copied().unwrap_or_default();
    let long = |value| match metric.shape {
        MetricShape::UpDownCounter => Cell::Long(value as i64),
        _ => Cell::count(value),
    };
    let cells = vec![long(value), long(changed.delta(cell)), Cell::word(&metric.unit)];
    MetricColumns { is_added: true, cells }
}

/// The columns `lo hi count sum delta unit` of each bucket with values.
fn histogram(metric: &Metric, changed: &Changed<'_>) -> impl Iterator<Item = MetricColumns> {
    let first = metric.cells.start;
    let sum = changed.cells.get(&first).copied().unwrap_or_default();
    let is_time = metric.shape == MetricShape::Exponential;
    let sum = if is_time { Cell::Long(sum as i64) } else { Cell::count(sum) };
    let unit = if is_time && metric.unit.is_empty() { "ns" } else { metric.unit.as_str() };
    // A bound of 2^63 is none: no value is above it.
    let bound = |number: Option<i128>| number.and_then(|number| i64::try_from(number).ok());
    let bound = move |number| bound(number).map_or(Cell::Null, Cell::Long);
    let full = changed.cells.iter().filter(|(_, count)| **count > 0);
    full.filter_map(move |(&cell, &count)| {
        let (lo, hi) = metric.shape.bucket(cell - first)?;
        let delta = changed.delta(cell);
        let (count, added) = (Cell::count(count), Cell::count(delta));
        let cells = vec![bound(lo), bound(hi), count, sum.clone(), added, Cell::word(unit)];
        Some(MetricColumns { is_added: delta > 0, cells })
    })
}
