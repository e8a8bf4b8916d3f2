//! `time_lo` and `time_hi`: between which times a row was, beside its `ts`, where captures of several hosts
//! have the times of one clock.

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

/// The columns, behind those of the table.
const NAMES: [&str; 2] = ["time_lo", "time_hi"];

/// A table with the bounds of its times.
#[derive(Debug)]
pub(crate) struct Bracketed {
    of: Arc<dyn CaptureTable>,
    clocks: Arc<Clocks>,
    schema: SchemaRef,
    /// The places of `capture` and `ts`.
    capture: usize,
    ts: usize,
}

/// The table with the bounds of its times, if it has times of captures.
pub(crate) fn bracketed(
    of: &Arc<dyn CaptureTable>,
    clocks: &Arc<Clocks>,
) -> Option<Arc<dyn CaptureTable>> {
    let place =
        |of: &Arc<dyn CaptureTable>, standard: Standard| of.schema().index_of(standard.name()).ok();
    let (capture, ts) = (place(of, Standard::Capture)?, place(of, Standard::Ts)?);
    let has_types = of.schema().field(capture).data_type() == &crate::builder::word_type()
        && of.schema().field(ts).data_type() == &timestamp();
    let free = NAMES.iter().all(|name| of.schema().index_of(name).is_err());
    if !has_types || !free {
        return None;
    }
    let more = NAMES.map(|name| Arc::new(Field::new(name, timestamp(), true)));
    let fields = of.schema().fields().iter().cloned().chain(more);
    let schema = Arc::new(Schema::new(fields.collect::<Vec<_>>()));
    let (of, clocks) = (of.clone(), clocks.clone());
    Some(Arc::new(Bracketed { of, clocks, schema, capture, ts }))
}

impl CaptureTable for Bracketed {
    fn schema(&self) -> &SchemaRef {
        &self.schema
    }

    fn bounded(&self, column: usize) -> Option<Bounded> {
        if column < self.of.schema().fields().len() { self.of.bounded(column) } else { None }
    }

    fn plan(&self, request: &TableRequest<'_>) -> Result<Planned, TableError> {
        let own = self.of.schema().fields().len();
        if request.columns.iter().all(|&column| column < own) {
            return self.of.plan(request);
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
        let maker = Maker {
            clocks: self.clocks.clone(),
            schema: Arc::new(self.schema.project(request.columns)?),
            columns: made.collect(),
            capture: place(self.capture),
            ts: place(self.ts),
        };
        let planned = self.of.plan(&TableRequest { columns: &read, ..*request })?;
        Ok(with(planned, &Arc::new(maker)))
    }
}

fn with(planned: Planned, maker: &Arc<Maker>) -> Planned {
    let beside = planned.beside.into_iter().map(|planned| with(planned, maker)).collect();
    match planned.pass {
        None => {
            let scan = Arc::new(BracketedScan { of: planned.scan, maker: maker.clone() });
            Planned { scan, pass: None, beside }
        }
        Some(pass) => {
            let (start, own) = (pass.start, maker.clone());
            let start = Start(Arc::new(move || {
                Box::new(BracketedRunner { of: start.0(), maker: own.clone() }) as Box<dyn Runner>
            }));
            let pass = Pass { schema: maker.schema.clone(), start, ..pass };
            Planned { scan: planned.scan, pass: Some(pass), beside }
        }
    }
}

/// Where a column comes from.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum BoundColumn {
    Read(usize),
    Lo,
    Hi,
}

/// Makes the columns that are asked for out of those that are read.
#[derive(Debug)]
struct Maker {
    clocks: Arc<Clocks>,
    schema: SchemaRef,
    columns: Vec<BoundColumn>,
    /// Where these are in what is read.
    capture: usize,
    ts: usize,
}

impl Maker {
    fn make(&self, batch: &RecordBatch) -> Result<RecordBatch, TableError> {
        let captures = batch.column(self.capture).as_dictionary::<Int32Type>().keys();
        let times = batch.column(self.ts).as_primitive::<TimestampNanosecondType>();
        let bounds = |row: usize| {
            let known = captures.is_valid(row) && times.is_valid(row);
            let capture = known.then(|| usize::try_from(captures.value(row)).ok())??;
            self.clocks.around(capture, times.value(row))
        };
        let bounds: Vec<Option<(i64, i64)>> = (0..batch.num_rows()).map(bounds).collect();
        let of = |value: fn(&(i64, i64)) -> i64| -> ArrayRef {
            let all = bounds.iter().map(|entry| entry.as_ref().map(value));
            let all = all.collect::<TimestampNanosecondArray>();
            Arc::new(all.with_data_type(timestamp()))
        };
        let columns = self.columns.iter().map(|made| match *made {
            BoundColumn::Read(place) => batch.column(place).clone(),
            BoundColumn::Lo => of(|entry| entry.0),
            BoundColumn::Hi => of(|entry| entry.1),
        });
        let options = RecordBatchOptions::new().with_row_count(Some(batch.num_rows()));
        let columns = columns.collect();
        Ok(RecordBatch::try_new_with_options(self.schema.clone(), columns, &options)?)
    }
}

#[derive(Debug)]
struct BracketedScan {
    of: Arc<dyn Scan>,
    maker: Arc<Maker>,
}

impl Scan for BracketedScan {
    fn schema(&self) -> &SchemaRef {
        &self.maker.schema
    }

    fn parts(&self) -> usize {
        self.of.parts()
    }

    fn read(&self, part: usize) -> Batches {
        let maker = self.maker.clone();
        Box::new(self.of.read(part).map(move |batch| maker.make(&batch?)))
    }

    fn rows(&self, part: Option<usize>) -> Option<usize> {
        self.of.rows(part)
    }

    fn explain_text(&self) -> String {
        self.of.explain_text()
    }

    fn ordered(&self, columns: &[usize]) -> Option<Arc<dyn Scan>> {
        let read = columns.iter().map(|&column| match self.maker.columns[column] {
            BoundColumn::Read(place) => Some(place),
            BoundColumn::Lo | BoundColumn::Hi => None,
        });
        let of = self.of.ordered(&read.collect::<Option<Vec<_>>>()?)?;
        Some(Arc::new(BracketedScan { of, maker: self.maker.clone() }))
    }
}

struct BracketedRunner {
    of: Box<dyn Runner>,
    maker: Arc<Maker>,
}

impl Runner for BracketedRunner {
    fn push(&mut self, batch: RecordBatch) -> Result<Vec<RecordBatch>, TableError> {
        self.of.push(batch)?.iter().map(|batch| self.maker.make(batch)).collect()
    }

    fn finish(&mut self) -> Result<Vec<RecordBatch>, TableError> {
        self.of.finish()?.iter().map(|batch| self.maker.make(batch)).collect()
    }
}
