//! How a kind of frames is swept: which columns are read, and who takes them in.

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

use super::asked::Sweep;
use super::longest::{Compared, Longest};
use crate::engine::{Engine, FrameTable, RowUnit};
use crate::error::QueryError;
use crate::joint_scan::FrameColumns;
use crate::summary::answer::{Ask, FrameSummary, Group};
use crate::summary::gathered::{arrow, whole};
use crate::summary::part::{PartialSummary, Slicing};
use crate::summary::plan::{self, ReadPlan};

/// A kind of frames, and what is asked of it.
pub(super) struct SweptKind {
    pub frame: FrameTable,
    /// Columns of its table that are read.
    columns: Vec<usize>,
    /// The summary of all rows: the names of its fields, in their order.
    fields: Vec<String>,
    /// Numbers that are summarised by slices, fields that are not, and intervals by groups.
    sliced: PlanRows,
    plain: Option<PlanRows>,
    grouped: Option<PlanRows>,
    slicing: Option<Slicing>,
    pub intervals: Vec<SweptInterval>,
    longest: usize,
    time: RowTime,
    ring: Option<usize>,
    seqno: Option<usize>,
    budget: Budget,
}

/// A field that is an interval of time; its columns are those of what is read.
pub(super) struct SweptInterval {
    pub name: String,
    length: usize,
    start: usize,
}

/// When rows were: columns of what is read.
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
                let is_there = is_not_null(&ts).map_err(arrow)?;
                zip(&is_there, &ts, &drained).map_err(arrow)
            }
            (Some(one), None) | (None, Some(one)) => Ok(one),
            (None, None) => Ok(Arc::new(Int64Array::new_null(batch.num_rows()))),
        }
    }
}

/// Rows as a plan wants them.
struct PlanRows {
    plan: Arc<ReadPlan>,
    columns: Vec<Fed>,
}

/// A column of a plan.
enum Fed {
    Column(usize),
    Time,
    Expr(Arc<dyn PhysicalExpr>),
}

impl PlanRows {
    /// Notes in `read` which columns are read of the table.
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
                _ if number == plan.time => Fed::Time,
                Expr::Column(column) => {
                    Fed::Column(place(read, schema.index_of(&column.name).map_err(arrow)?))
                }
                other => {
                    let mut names: Vec<String> =
                        other.column_refs().into_iter().map(|column| column.name.clone()).collect();
                    names.sort_unstable();
                    for name in names {
                        place(read, schema.index_of(&name).map_err(arrow)?);
                    }
                    let own = DFSchema::try_from(schema.project(read).map_err(arrow)?)?;
                    Fed::Expr(engine.context().create_physical_expr(other.clone(), &own)?)
                }
            });
        }
        Ok(PlanRows { plan: Arc::new(plan), columns })
    }

    fn rows(&self, batch: &RecordBatch, time: &ArrayRef) -> Result<RecordBatch, QueryError> {
        let mut columns = Vec::new();
        for fed in &self.columns {
            columns.push(match fed {
                Fed::Column(at) => batch.column(*at).clone(),
                Fed::Time => time.clone(),
                // It knows the columns that were read when it was made, which are the first ones.
                Fed::Expr(expr) => expr.evaluate(batch)?.into_array(batch.num_rows())?,
            });
        }
        let field = |(at, column): (usize, &ArrayRef)| {
            Field::new(format!("c{at}"), column.data_type().clone(), true)
        };
        let fields: Vec<Field> = columns.iter().enumerate().map(field).collect();
        RecordBatch::try_new(Arc::new(Schema::new(fields)), columns).map_err(arrow)
    }
}

/// The place of a column in what is read, where it is put if it is not there.
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
        let of = (frame, RowUnit::Frame);
        let all = ReadPlan::new(engine, &Ask::default(), of)?;
        let name = |role: &plan::Role| role.field.name().clone();
        let is_number = |role: &&plan::Role| {
            !matches!(role.kind, plan::ValueType::Words | plan::ValueType::Keys)
        };
        let sliced: Vec<String> = match sweep.slices {
            Some(_) => all.roles.iter().filter(is_number).take(sweep.sliced).map(name).collect(),
            None => Vec::new(),
        };
        let fields: Vec<String> = all.roles.iter().map(name).collect();
        let rest: Vec<String> =
            fields.iter().filter(|name| !sliced.contains(name)).cloned().collect();
        let schema = frame.table.schema();
        let mut columns = Vec::new();
        let mut intervals = Vec::new();
        for role in &all.roles {
            let is_length = role.field.metadata().get("role").is_some_and(|role| role == "length");
            let Some((start, _)) = plan::ends(schema, &role.field).filter(|_| is_length) else {
                continue;
            };
            let name = role.field.name().clone();
            let length = place(&mut columns, schema.index_of(&name).map_err(arrow)?);
            intervals.push(SweptInterval { name, length, start: place(&mut columns, start) });
        }
        let mut feed = |fields: &[String], by: Vec<String>| {
            let mut plan = ReadPlan::new(engine, &Ask { by, ..Ask::default() }, of)?;
            plan.only(fields);
            PlanRows::new(engine, frame, plan, &mut columns)
        };
        let named: Vec<String> = intervals.iter().map(|interval| interval.name.clone()).collect();
        let by = by.filter(|_| !named.is_empty());
        let sliced = feed(&sliced, Vec::new())?;
        let plain = if rest.is_empty() { None } else { Some(feed(&rest, Vec::new())?) };
        let grouped = by.map(|by| feed(&named, vec![by])).transpose()?;
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

    /// Columns of its table that are read.
    pub fn columns(&self) -> Vec<usize> {
        self.columns.clone()
    }

    /// All columns, if frames of it are wanted as a whole; the same rows in any case.
    pub fn whole_frames(&self) -> FrameColumns {
        let all = self.frame.table.schema().fields().len();
        let columns = if self.intervals.is_empty() { Vec::new() } else { (0..all).collect() };
        FrameColumns { frame: self.frame.clone(), columns }
    }

    /// When the listener had the first and the last of these rows.
    pub fn drained(&self, batch: &RecordBatch) -> Result<Option<(i64, i64)>, QueryError> {
        let Some(drained) = self.time.drained else { return Ok(None) };
        let drained = whole::<Int64Type>(batch.column(drained))?;
        let drained = drained.as_primitive::<Int64Type>();
        Ok(min(drained).zip(max(drained)))
    }

    /// When the first interval of these rows began, from `least` on.
    pub fn began(&self, batch: &RecordBatch, least: i64) -> Result<Option<i64>, QueryError> {
        let mut first = None;
        for interval in &self.intervals {
            let starts = whole::<Int64Type>(batch.column(interval.start))?;
            let lengths = whole::<Int64Type>(batch.column(interval.length))?;
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

/// What is known of the frames of a kind.
pub(super) struct KindState {
    sliced: PartialSummary,
    plain: Option<PartialSummary>,
    grouped: Option<PartialSummary>,
    /// By interval.
    pub longest: Vec<Longest>,
}

impl KindState {
    pub fn new(kind: &SweptKind) -> KindState {
        let part = |feed: &PlanRows, slicing| {
            PartialSummary::new(feed.plan.clone(), slicing, kind.budget.clone())
        };
        KindState {
            sliced: part(&kind.sliced, kind.slicing),
            plain: kind.plain.as_ref().map(|feed| part(feed, None)),
            grouped: kind.grouped.as_ref().map(|feed| part(feed, None)),
            longest: kind.intervals.iter().map(|_| Longest::default()).collect(),
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
        for (part, feed) in others {
            if let (Some(part), Some(feed)) = (part, feed) {
                part.batch(&feed.rows(batch, &time)?)?;
            }
        }
        if kind.longest == 0 {
            return Ok(());
        }
        let times = whole::<Int64Type>(&time)?;
        let ring = kind.ring.map(|at| whole::<Int32Type>(batch.column(at))).transpose()?;
        let seqno = kind.seqno.map(|at| whole::<Int64Type>(batch.column(at))).transpose()?;
        for (interval, longest) in kind.intervals.iter().zip(&mut self.longest) {
            let lengths = whole::<Int64Type>(batch.column(interval.length))?;
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

    /// What is said of all rows, of those of each slice, and of those of each group.
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
            Some(grouped) => grouped.finish(&Ask::default(), threads).await?,
            None => Vec::new(),
        };
        let (buffer, frame) = (kind.frame.buffer.clone(), kind.frame.frame.clone());
        let groups_of_all = all.into_iter().collect();
        let total = FrameSummary { buffer, frame, unit: RowUnit::Frame, groups: groups_of_all };
        Ok((total, slices, groups))
    }
}
