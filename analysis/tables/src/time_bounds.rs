//! `time_lo` and `time_hi`: bounds of a row's `ts`. Tables have these columns when captures of several hosts
//! were put on one clock.

use std::sync::Arc;

use arrow_array::cast::AsArray;
use arrow_array::types::{Int32Type, TimestampNanosecondType};
use arrow_array::{Array, ArrayRef, RecordBatch, RecordBatchOptions, TimestampNanosecondArray};
use arrow_schema::{Field, Schema, SchemaRef};

use crate::bounds::Bounded;
use crate::builder::timestamp;
use crate::error::TableError;
use crate::hosts::Clocks;
use crate::standard::Standard;
use crate::table::{Batches, CaptureTable, Pass, Planned, Runner, Scan, Start, TableRequest};

/// Names of the columns, which come after those of the table.
const NAMES: [&str; 2] = ["time_lo", "time_hi"];

/// A table with the bounds of its times.
#[derive(Debug)]
pub(crate) struct Bracketed {
    table: Arc<dyn CaptureTable>,
    clocks: Arc<Clocks>,
    schema: SchemaRef,
    /// Indices of the columns `capture` and `ts`.
    capture: usize,
    ts: usize,
}

/// Adds the bounds of times to a table that has the columns `capture` and `ts`; None if it lacks them.
pub(crate) fn bracketed(
    table: &Arc<dyn CaptureTable>,
    clocks: &Arc<Clocks>,
) -> Option<Arc<dyn CaptureTable>> {
    let index = |standard: Standard| table.schema().index_of(standard.name()).ok();
    let (capture, ts) = (index(Standard::Capture)?, index(Standard::Ts)?);
    let has_types = table.schema().field(capture).data_type() == &crate::builder::word_type()
        && table.schema().field(ts).data_type() == &timestamp();
    let are_names_free = NAMES.iter().all(|name| table.schema().index_of(name).is_err());
    if !has_types || !are_names_free {
        return None;
    }
    let more = NAMES.map(|name| Arc::new(Field::new(name, timestamp(), true)));
    let fields = table.schema().fields().iter().cloned().chain(more);
    let schema = Arc::new(Schema::new(fields.collect::<Vec<_>>()));
    let (table, clocks) = (table.clone(), clocks.clone());
    Some(Arc::new(Bracketed { table, clocks, schema, capture, ts }))
}

impl CaptureTable for Bracketed {
    fn schema(&self) -> &SchemaRef {
        &self.schema
    }

    fn bounded(&self, column: usize) -> Option<Bounded> {
        if column < self.table.schema().fields().len() { self.table.bounded(column) } else { None }
    }

    fn plan(&self, request: &TableRequest<'_>) -> Result<Planned, TableError> {
        let own = self.table.schema().fields().len();
        if request.columns.iter().all(|&column| column < own) {
            return self.table.plan(request);
        }
        let mut read: Vec<usize> =
            request.columns.iter().copied().filter(|&column| column < own).collect();
        for needed in [self.capture, self.ts] {
            if !read.contains(&needed) {
                read.push(needed);
            }
        }
        let place =
            |column: usize| read.iter().position(|&index| index == column).unwrap_or_default();
        let made = request.columns.iter().map(|&column| match column.checked_sub(own) {
            None => BoundColumn::Read(place(column)),
            Some(0) => BoundColumn::Lo,
            Some(_) => BoundColumn::Hi,
        });
        let maker = BoundsMaker {
            clocks: self.clocks.clone(),
            schema: Arc::new(self.schema.project(request.columns)?),
            columns: made.collect(),
            capture: place(self.capture),
            ts: place(self.ts),
        };
        let planned = self.table.plan(&TableRequest { columns: &read, ..*request })?;
        Ok(with(planned, &Arc::new(maker)))
    }
}

fn with(planned: Planned, maker: &Arc<BoundsMaker>) -> Planned {
    let more = planned.more.into_iter().map(|planned| with(planned, maker)).collect();
    match planned.pass {
        None => {
            let scan = Arc::new(BracketedScan { scan: planned.scan, maker: maker.clone() });
            Planned { scan, pass: None, more }
        }
        Some(pass) => {
            let (start, own) = (pass.start, maker.clone());
            let start = Start(Arc::new(move || {
                Box::new(BracketedRunner { runner: start.0(), maker: own.clone() })
                    as Box<dyn Runner>
            }));
            let pass = Pass { schema: maker.schema.clone(), start, ..pass };
            Planned { scan: planned.scan, pass: Some(pass), more }
        }
    }
}

/// The origin of a column.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum BoundColumn {
    Read(usize),
    Lo,
    Hi,
}

/// Computes the requested columns from those that a scan reads.
#[derive(Debug)]
struct BoundsMaker {
    clocks: Arc<Clocks>,
    schema: SchemaRef,
    columns: Vec<BoundColumn>,
    /// Indices in the columns that are read.
    capture: usize,
    ts: usize,
}

impl BoundsMaker {
    fn make(&self, batch: &RecordBatch) -> Result<RecordBatch, TableError> {
        let captures = batch.column(self.capture).as_dictionary::<Int32Type>().keys();
        let times = batch.column(self.ts).as_primitive::<TimestampNanosecondType>();
        let bounds = |row: usize| {
            let known = captures.is_valid(row) && times.is_valid(row);
            let capture = known.then(|| usize::try_from(captures.value(row)).ok())??;
            self.clocks.around(capture, times.value(row))
        };
        let bounds: Vec<Option<(i64, i64)>> = (0..batch.num_rows()).map(bounds).collect();
        let times_of = |end: fn(&(i64, i64)) -> i64| -> ArrayRef {
            let times = bounds.iter().map(|bounds| bounds.as_ref().map(end));
            let times = times.collect::<TimestampNanosecondArray>();
            Arc::new(times.with_data_type(timestamp()))
        };
        let columns = self.columns.iter().map(|made| match *made {
            BoundColumn::Read(place) => batch.column(place).clone(),
            BoundColumn::Lo => times_of(|bounds| bounds.0),
            BoundColumn::Hi => times_of(|bounds| bounds.1),
        });
        let options = RecordBatchOptions::new().with_row_count(Some(batch.num_rows()));
        let columns = columns.collect();
        Ok(RecordBatch::try_new_with_options(self.schema.clone(), columns, &options)?)
    }
}

#[derive(Debug)]
struct BracketedScan {
    scan: Arc<dyn Scan>,
    maker: Arc<BoundsMaker>,
}

impl Scan for BracketedScan {
    fn schema(&self) -> &SchemaRef {
        &self.maker.schema
    }

    fn parts(&self) -> usize {
        self.scan.parts()
    }

    fn read(&self, part: usize) -> Batches {
        let maker = self.maker.clone();
        Box::new(self.scan.read(part).map(move |batch| maker.make(&batch?)))
    }

    fn rows(&self, part: Option<usize>) -> Option<usize> {
        self.scan.rows(part)
    }

    fn explain_text(&self) -> String {
        self.scan.explain_text()
    }

    fn ordered(&self, columns: &[usize]) -> Option<Arc<dyn Scan>> {
        let read = columns.iter().map(|&column| match self.maker.columns[column] {
            BoundColumn::Read(place) => Some(place),
            BoundColumn::Lo | BoundColumn::Hi => None,
        });
        let scan = self.scan.ordered(&read.collect::<Option<Vec<_>>>()?)?;
        Some(Arc::new(BracketedScan { scan, maker: self.maker.clone() }))
    }
}

struct BracketedRunner {
    runner: Box<dyn Runner>,
    maker: Arc<BoundsMaker>,
}

impl Runner for BracketedRunner {
    fn push(&mut self, batch: RecordBatch) -> Result<Vec<RecordBatch>, TableError> {
        self.runner.push(batch)?.iter().map(|batch| self.maker.make(batch)).collect()
    }

    fn finish(&mut self) -> Result<Vec<RecordBatch>, TableError> {
        self.runner.finish()?.iter().map(|batch| self.maker.make(batch)).collect()
    }
}
