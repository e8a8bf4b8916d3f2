//! Summarises a kind of frames: the columns to read, and the summaries that take them.

use std::sync::Arc;

use datafusion::arrow::array::{Array, ArrayRef, AsArray, Int64Array, RecordBatch};
use datafusion::arrow::compute::kernels::zip::zip;
use datafusion::arrow::compute::{is_not_null, max, min};
use datafusion::arrow::datatypes::{Field, Int32Type, Int64Type, Schema};
use datafusion::common::DFSchema;
use datafusion::logical_expr::Expr;
use datafusion::physical_expr::PhysicalExpr;
use ppt_stats::Budget;
use ppt_tables::{Bounded, BoundedNumber};

use super::longest::{Compared, LongestCandidates};
use super::request::Sweep;
use crate::engine::{Engine, FrameTable, RowUnit};
use crate::error::QueryError;
use crate::joint_frame_scan::FrameColumns;
use crate::summary::answer::{FrameSummary, Group, SummaryRequest};
use crate::summary::gathered::{arrow, cast_integers};
use crate::summary::partial_summary::{PartialSummary, Slicing};
use crate::summary::plan::{self, ReadPlan};

/// A kind of frames, and the summaries that are wanted.
pub(super) struct SweptKind {
    pub frame: FrameTable,
    /// Indices of the columns to read.
    columns: Vec<usize>,
    /// Names of the summarised fields, in order.
    fields: Vec<String>,
    /// Numbers that are summarised by slices.
    sliced: PlanRows,
    /// Fields that are not summarised by slices.
    plain: Option<PlanRows>,
    /// Intervals that are summarised by groups.
    grouped: Option<PlanRows>,
    slicing: Option<Slicing>,
    pub intervals: Vec<SweptInterval>,
    longest: usize,
    time: RowTime,
    ring: Option<usize>,
    seqno: Option<usize>,
    budget: Budget,
}

/// A field that is an interval of time. Its columns are indices of read columns.
pub(super) struct SweptInterval {
    pub name: String,
    length: usize,
    start: usize,
}

/// The read columns with the times of rows.
#[derive(Clone, Copy)]
struct RowTime {
    ts: Option<usize>,
    drained: Option<usize>,
}

impl RowTime {
    /// `coalesce(ts, drained)`.
    fn times(self, batch: &RecordBatch) -> Result<ArrayRef, QueryError> {
        let column = |at: Option<usize>| at.map(|at| batch.column(at).clone());
        match (column(self.ts), column(self.drained)) {
            (Some(ts), _) if ts.null_count() == 0 => Ok(ts),
            (Some(ts), Some(drained)) if ts.null_count() == ts.len() => Ok(drained),
            (Some(ts), Some(drained)) => {
                let has_ts = is_not_null(&ts).map_err(arrow)?;
                zip(&has_ts, &ts, &drained).map_err(arrow)
            }
            (Some(one), None) | (None, Some(one)) => Ok(one),
            (None, None) => Ok(Arc::new(Int64Array::new_null(batch.num_rows()))),
        }
    }
}

/// Turns read batches into the rows that a plan expects.
struct PlanRows {
    plan: Arc<ReadPlan>,
    columns: Vec<PlanColumn>,
}

/// The source of a plan's column.
enum PlanColumn {
    Column(usize),
    Time,
    Expr(Arc<dyn PhysicalExpr>),
}

impl PlanRows {
    /// Adds the columns that the plan needs to `read`.
    fn new(
        engine: &Engine,
        frame: &FrameTable,
        plan: ReadPlan,
        read: &mut Vec<usize>,
    ) -> Result<PlanRows, QueryError> {
        let schema = frame.table.schema();
        let mut columns = Vec::new();
        for (number, select) in plan.select.iter().enumerate() {
            let expr = match select {
                Expr::Alias(alias) => alias.expr.as_ref(),
                other => other,
            };
            columns.push(match expr {
                _ if number == plan.time => PlanColumn::Time,
                Expr::Column(column) => {
                    PlanColumn::Column(place(read, schema.index_of(&column.name).map_err(arrow)?))
                }
                other => {
                    let mut names: Vec<String> =
                        other.column_refs().into_iter().map(|column| column.name.clone()).collect();
                    names.sort_unstable();
                    for name in names {
                        place(read, schema.index_of(&name).map_err(arrow)?);
                    }
                    let own = DFSchema::try_from(schema.project(read).map_err(arrow)?)?;
                    PlanColumn::Expr(engine.context().create_physical_expr(other.clone(), &own)?)
                }
            });
        }
        Ok(PlanRows { plan: Arc::new(plan), columns })
    }

    fn rows(&self, batch: &RecordBatch, time: &ArrayRef) -> Result<RecordBatch, QueryError> {
        let mut columns = Vec::new();
        for column in &self.columns {
            columns.push(match column {
                PlanColumn::Column(at) => batch.column(*at).clone(),
                PlanColumn::Time => time.clone(),
                // The expression refers to columns that were read before it was created, which come first.
                PlanColumn::Expr(expr) => expr.evaluate(batch)?.into_array(batch.num_rows())?,
            });
        }
        let field = |(at, column): (usize, &ArrayRef)| {
            Field::new(format!("c{at}"), column.data_type().clone(), true)
        };
        let fields: Vec<Field> = columns.iter().enumerate().map(field).collect();
        RecordBatch::try_new(Arc::new(Schema::new(fields)), columns).map_err(arrow)
    }
}

/// The index of a column among the read ones, to which it is added if it is absent.
fn place(read: &mut Vec<usize>, column: usize) -> usize {
    read.iter().position(|&known| known == column).unwrap_or_else(|| {
        read.push(column);
        read.len() - 1
    })
}

impl SweptKind {
    pub fn new(
        engine: &Engine,
        sweep: &Sweep,
        (frame, by): (&FrameTable, Option<String>),
        budget: &Budget,
    ) -> Result<SweptKind, QueryError> {
        let table = (frame, RowUnit::Frame);
        let all = ReadPlan::new(engine, &SummaryRequest::default(), table)?;
        let name = |summarised: &plan::SummarisedField| summarised.field.name().clone();
        let is_number = |summarised: &&plan::SummarisedField| {
            !matches!(summarised.kind, plan::ValueType::Words | plan::ValueType::Keys)
        };
        let sliced: Vec<String> = match sweep.slices {
            Some(_) => {
                all.summarised.iter().filter(is_number).take(sweep.sliced).map(name).collect()
            }
            None => Vec::new(),
        };
        let fields: Vec<String> = all.summarised.iter().map(name).collect();
        let rest: Vec<String> =
            fields.iter().filter(|name| !sliced.contains(name)).cloned().collect();
        let schema = frame.table.schema();
        let mut columns = Vec::new();
        let mut intervals = Vec::new();
        for summarised in &all.summarised {
            let is_length =
                summarised.field.metadata().get("role").is_some_and(|role| role == "length");
            let Some((start, _)) = plan::ends(schema, &summarised.field).filter(|_| is_length)
            else {
                continue;
            };
            let name = summarised.field.name().clone();
            let length = place(&mut columns, schema.index_of(&name).map_err(arrow)?);
            intervals.push(SweptInterval { name, length, start: place(&mut columns, start) });
        }
        let mut plan_rows = |fields: &[String], by: Vec<String>| {
            let mut plan =
                ReadPlan::new(engine, &SummaryRequest { by, ..SummaryRequest::default() }, table)?;
            plan.only(fields);
            PlanRows::new(engine, frame, plan, &mut columns)
        };
        let named: Vec<String> = intervals.iter().map(|interval| interval.name.clone()).collect();
        let by = by.filter(|_| !named.is_empty());
        let sliced = plan_rows(&sliced, Vec::new())?;
        let plain = if rest.is_empty() { None } else { Some(plan_rows(&rest, Vec::new())?) };
        let grouped = by.map(|by| plan_rows(&named, vec![by])).transpose()?;
        let mut standard = |number| {
            let is_its =
                |column: &usize| frame.table.bounded(*column) == Some(Bounded::Number(number));
            let column = (0..schema.fields().len()).find(is_its)?;
            Some(place(&mut columns, column))
        };
        let (ts, drained) = (standard(BoundedNumber::Ts), standard(BoundedNumber::Drained));
        let (ring, seqno) = (standard(BoundedNumber::Ring), standard(BoundedNumber::Seqno));
        let slicing = sweep.slices.map(|slices| Slicing {
            every: slices.every,
            within: Some((slices.first, slices.last)),
        });
        Ok(SweptKind {
            frame: frame.clone(),
            columns,
            fields,
            sliced,
            plain,
            grouped,
            slicing,
            intervals,
            longest: if sweep.is_sample { 0 } else { sweep.longest },
            time: RowTime { ts, drained },
            ring,
            seqno,
            budget: budget.clone(),
        })
    }

    /// Indices of the columns to read.
    pub fn columns(&self) -> Vec<usize> {
        self.columns.clone()
    }

    /// All columns, or none if the kind has no intervals. The batches have the same rows as those of the
    /// sweep.
    pub fn whole_frames(&self) -> FrameColumns {
        let all = self.frame.table.schema().fields().len();
        let columns = if self.intervals.is_empty() { Vec::new() } else { (0..all).collect() };
        FrameColumns { frame: self.frame.clone(), columns }
    }

    /// Times at which the first and the last of these rows were drained, ns since the epoch.
    pub fn drained(&self, batch: &RecordBatch) -> Result<Option<(i64, i64)>, QueryError> {
        let Some(drained) = self.time.drained else { return Ok(None) };
        let drained = cast_integers::<Int64Type>(batch.column(drained))?;
        let drained = drained.as_primitive::<Int64Type>();
        Ok(min(drained).zip(max(drained)))
    }

    /// Begin of the first interval of these rows at or after `least`, ns since the epoch.
    pub fn began(&self, batch: &RecordBatch, least: i64) -> Result<Option<i64>, QueryError> {
        let mut first = None;
        for interval in &self.intervals {
            let starts = cast_integers::<Int64Type>(batch.column(interval.start))?;
            let lengths = cast_integers::<Int64Type>(batch.column(interval.length))?;
            let starts = starts.as_primitive::<Int64Type>();
            let lengths = lengths.as_primitive::<Int64Type>();
            for row in 0..batch.num_rows() {
                let start = starts.value(row);
                if start >= least
                    && first.is_none_or(|first| start < first)
                    && lengths.value(row) >= 0
                    && starts.is_valid(row)
                    && lengths.is_valid(row)
                {
                    first = Some(start);
                }
            }
        }
        Ok(first)
    }
}

/// The partial result for a kind of frames.
pub(super) struct KindState {
    sliced: PartialSummary,
    plain: Option<PartialSummary>,
    grouped: Option<PartialSummary>,
    /// By interval.
    pub longest: Vec<LongestCandidates>,
}

impl KindState {
    pub fn new(kind: &SweptKind) -> KindState {
        let part = |rows: &PlanRows, slicing| {
            PartialSummary::new(rows.plan.clone(), slicing, kind.budget.clone())
        };
        KindState {
            sliced: part(&kind.sliced, kind.slicing),
            plain: kind.plain.as_ref().map(|rows| part(rows, None)),
            grouped: kind.grouped.as_ref().map(|rows| part(rows, None)),
            longest: kind.intervals.iter().map(|_| LongestCandidates::default()).collect(),
        }
    }

    pub fn batch(
        &mut self,
        kind: &SweptKind,
        batch: &RecordBatch,
        position: usize,
    ) -> Result<(), QueryError> {
        let time = kind.time.times(batch)?;
        self.sliced.batch(&kind.sliced.rows(batch, &time)?)?;
        let others = [(&mut self.plain, &kind.plain), (&mut self.grouped, &kind.grouped)];
        for (part, rows) in others {
            if let (Some(part), Some(rows)) = (part, rows) {
                part.batch(&rows.rows(batch, &time)?)?;
            }
        }
        if kind.longest == 0 {
            return Ok(());
        }
        let times = cast_integers::<Int64Type>(&time)?;
        let ring = kind.ring.map(|at| cast_integers::<Int32Type>(batch.column(at))).transpose()?;
        let seqno =
            kind.seqno.map(|at| cast_integers::<Int64Type>(batch.column(at))).transpose()?;
        for (interval, longest) in kind.intervals.iter().zip(&mut self.longest) {
            let lengths = cast_integers::<Int64Type>(batch.column(interval.length))?;
            let compared = Compared {
                lengths: lengths.as_primitive::<Int64Type>(),
                times: times.as_primitive::<Int64Type>(),
                ring: ring.as_ref().map(|ring| ring.as_primitive::<Int32Type>()),
                seqno: seqno.as_ref().map(|seqno| seqno.as_primitive::<Int64Type>()),
                position,
            };
            longest.batch(&compared, kind.longest);
        }
        Ok(())
    }

    pub fn join(&mut self, other: KindState, longest: usize) {
        self.sliced.join(other.sliced);
        let others = [(&mut self.plain, other.plain), (&mut self.grouped, other.grouped)];
        for (ours, theirs) in others {
            if let (Some(ours), Some(theirs)) = (ours, theirs) {
                ours.join(theirs);
            }
        }
        for (ours, theirs) in self.longest.iter_mut().zip(other.longest) {
            ours.join(theirs, longest);
        }
    }

    /// The summaries of all rows, of each slice, and of each group.
    pub async fn finish(
        self,
        kind: &SweptKind,
        threads: usize,
    ) -> Result<(FrameSummary, Vec<Group>, Vec<Group>), QueryError> {
        let (mut all, mut slices) = self.sliced.finish_slices(threads).await?;
        if let Some(plain) = self.plain
            && let (Some(all), (Some(others), _)) = (&mut all, plain.finish_slices(threads).await?)
        {
            all.fields.extend(others.fields);
            let place = |name: &String| kind.fields.iter().position(|field| field == name);
            all.fields.sort_by_key(|field| place(&field.name));
        }
        if kind.slicing.is_none() {
            slices.clear();
        }
        let groups = match self.grouped {
            Some(grouped) => grouped.finish(&SummaryRequest::default(), threads).await?,
            None => Vec::new(),
        };
        let (buffer, frame) = (kind.frame.buffer.clone(), kind.frame.frame.clone());
        let groups_of_all = all.into_iter().collect();
        let total = FrameSummary { buffer, frame, unit: RowUnit::Frame, groups: groups_of_all };
        Ok((total, slices, groups))
    }
}
