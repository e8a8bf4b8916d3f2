//! `counters` and `histograms`: what programs added up, as each reading found it.

use std::collections::BTreeMap;
use std::sync::Arc;

use arrow_schema::SchemaRef;
use ppt_capture::frame_dsl::metric::{Metric, Shape};

use super::named::Named;
use crate::bounds::{Bounded, Number};
use crate::error::{SetError, TableError};
use crate::readings::{Change, Changes};
use crate::set::CaptureSet;
use crate::small::{Cell, Kind, batch, schema};
use crate::table::{Batches, Planned, Request, Scan, Table};

/// Rows of a batch, about.
const ROWS: usize = 8192;

pub(super) fn make(set: &Arc<CaptureSet>) -> Result<Vec<Named>, SetError> {
    let of = |what: What| {
        let fixed = [
            ("capture", Kind::Word),
            ("buffer", Kind::Word),
            ("segment", Kind::Word),
            ("ring", Kind::Int),
            ("host", Kind::Word),
            ("pid", Kind::Int),
            ("tid", Kind::Int),
            ("name", Kind::Word),
            ("ts", Kind::Time),
        ];
        let own = match what {
            What::Counters => {
                vec![("value", Kind::Long), ("delta", Kind::Long), ("unit", Kind::Word)]
            }
            What::Histograms => vec![
                ("lo", Kind::Long),
                ("hi", Kind::Long),
                ("count", Kind::Long),
                ("sum", Kind::Long),
            ],
        };
        Metrics { set: set.clone(), what, schema: schema(fixed.into_iter().chain(own)) }
    };
    Ok(vec![
        Named::fixed("counters", of(What::Counters)),
        Named::fixed("histograms", of(What::Histograms)),
    ])
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum What {
    Counters,
    Histograms,
}

impl What {
    fn has(self, metric: &Metric) -> bool {
        metric.shape.is_histogram() == (self == What::Histograms)
    }
}

#[derive(Debug)]
struct Metrics {
    set: Arc<CaptureSet>,
    what: What,
    schema: SchemaRef,
}

impl Table for Metrics {
    fn schema(&self) -> &SchemaRef {
        &self.schema
    }

    fn bounded(&self, column: usize) -> Option<Bounded> {
        (self.schema.field(column).name() == "ts").then_some(Bounded::Number(Number::Ts))
    }

    fn plan(&self, request: &Request<'_>) -> Result<Planned, TableError> {
        let scan = MetricScan {
            set: self.set.clone(),
            what: self.what,
            schema: Arc::new(self.schema.project(request.columns)?),
            columns: request.columns.to_vec(),
        };
        Ok(Planned::from(Arc::new(scan) as Arc<dyn Scan>))
    }
}

/// A part is a capture.
#[derive(Debug, Clone)]
struct MetricScan {
    set: Arc<CaptureSet>,
    what: What,
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
        let mut changes = Changes::of(readings);
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

    fn told(&self) -> String {
        "readings".to_owned()
    }
}

impl MetricScan {
    /// The next rows; none at the end.
    fn rows_of(&self, part: usize, changes: &mut Changes) -> Vec<Vec<Cell>> {
        let capture = &self.set.captures()[part];
        let catalog = capture.catalog();
        let mut rows = Vec::new();
        while rows.len() < ROWS {
            let Some((change, before, cells)) = changes.next(&catalog.sources) else { break };
            let info = &catalog.sources[change.info];
            let metric = &info.metrics[change.metric];
            if !self.what.has(metric) {
                continue;
            }
            let Change { nonce, ring, tid, mono_ns, .. } = change;
            let fixed = [
                Cell::word(&capture.id),
                Cell::word(&info.source.buffer),
                Cell::word(&format!("{nonce:016x}")),
                ring.map_or(Cell::Null, Cell::int),
                Cell::word(catalog.host()),
                Cell::int(info.source.process.pid),
                if tid == 0 { Cell::Null } else { Cell::int(tid) },
                Cell::word(&metric.name),
                Cell::Time(catalog.epoch(mono_ns)),
            ];
            let row = |own: Vec<Cell>| fixed.iter().cloned().chain(own).collect();
            match self.what {
                What::Counters => rows.push(row(counter(metric, before, cells))),
                What::Histograms => rows.extend(histogram(metric, cells).into_iter().map(row)),
            }
        }
        rows
    }
}

/// `value delta unit`.
fn counter(metric: &Metric, before: u64, cells: &BTreeMap<u32, u64>) -> Vec<Cell> {
    let value = cells.get(&metric.cells.start).copied().unwrap_or_default();
    let delta = value.wrapping_sub(before);
    let long = |value| match metric.shape {
        Shape::UpDownCounter => Cell::Long(value as i64),
        _ => Cell::count(value),
    };
    vec![long(value), long(delta), Cell::word(&metric.unit)]
}

/// `lo hi count sum` of each bucket that holds values.
fn histogram(metric: &Metric, cells: &BTreeMap<u32, u64>) -> Vec<Vec<Cell>> {
    let first = metric.cells.start;
    let sum = cells.get(&first).copied().unwrap_or_default();
    let sum = match metric.shape {
        Shape::Exponential => Cell::Long(sum as i64),
        _ => Cell::count(sum),
    };
    // 2^63 bounds nothing: no value is above.
    let bound = |it: Option<i128>| it.and_then(|it| i64::try_from(it).ok());
    let bound = |it| bound(it).map_or(Cell::Null, Cell::Long);
    let full = cells.iter().filter(|(_, count)| **count > 0);
    full.filter_map(|(&cell, &count)| {
        let (lo, hi) = metric.shape.bucket(cell - first)?;
        Some(vec![bound(lo), bound(hi), Cell::count(count), sum.clone()])
    })
    .collect()
}
