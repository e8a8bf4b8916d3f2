//! `overlap('a', 'b' [, 'key'…])`: the pairs of rows of two sets of intervals that overlap in time.
//!
//! `a` and `b` are tables or views with the columns `ts` and `dur`. Rows can form a pair if they are
//! equal in the key: the named columns, or by default those of `host`, `pid` and `tid` that both have. A
//! pair has the columns of both, with the prefixes `a_` and `b_`, and the time in which they overlap:
//! `ts`, `dur`. The end of an interval does not belong to it; an interval without length is a moment.
//!
//! Both are sorted by key and start (spilling to disk if that takes more memory than is allowed) and
//! swept together, so that only the open intervals are in memory.

use std::collections::BTreeMap;
use std::fmt;
use std::sync::Arc;

use async_trait::async_trait;
use datafusion::arrow::array::{
    Array, ArrayRef, AsArray, Int64Array, RecordBatch, TimestampNanosecondArray, new_null_array,
};
use datafusion::arrow::compute::{SortOptions, cast, interleave};
use datafusion::arrow::datatypes::{
    DataType, Field, Int64Type, Schema, SchemaRef, TimeUnit, TimestampNanosecondType,
};
use datafusion::arrow::row::{OwnedRow, RowConverter, SortField};
use datafusion::catalog::{Session, TableFunctionArgs, TableFunctionImpl, TableProvider};
use datafusion::common::{ScalarValue, internal_err, plan_err};
use datafusion::error::Result;
use datafusion::execution::{SendableRecordBatchStream, SessionState, TaskContext};
use datafusion::logical_expr::{Expr, TableType};
use datafusion::physical_expr::expressions::Column;
use datafusion::physical_expr::{
    Distribution, EquivalenceProperties, LexOrdering, OrderingRequirements, Partitioning,
    PhysicalExpr, PhysicalSortExpr,
};
use datafusion::physical_plan::execution_plan::{Boundedness, EmissionType};
use datafusion::physical_plan::stream::RecordBatchStreamAdapter;
use datafusion::physical_plan::{
    DisplayAs, DisplayFormatType, ExecutionPlan, ExecutionPlanProperties,
    InputDistributionRequirements, PlanProperties,
};
use futures::StreamExt;

use super::named::table;
use crate::exec::{plan_methods, projected};

pub(super) fn function() -> Arc<dyn TableFunctionImpl> {
    Arc::new(Overlap)
}

#[derive(Debug)]
struct Overlap;

impl TableFunctionImpl for Overlap {
    fn call_with_args(&self, args: TableFunctionArgs) -> Result<Arc<dyn TableProvider>> {
        let names: Vec<String> = args.exprs().iter().map(name).collect::<Result<_>>()?;
        let [a, b, keys @ ..] = names.as_slice() else {
            return plan_err!("overlap takes two tables of intervals: overlap('a', 'b')");
        };
        let Some(state) = args.session().as_any().downcast_ref::<SessionState>() else {
            return internal_err!("overlap is asked outside of a session");
        };
        let sides = [table(state, a)?, table(state, b)?];
        let keys: Vec<String> = match keys {
            [] => {
                let both =
                    |name: &&str| sides.iter().all(|side| side.schema().index_of(name).is_ok());
                ["host", "pid", "tid"]
                    .iter()
                    .filter(|name| both(name))
                    .map(|text| (*text).to_owned())
                    .collect()
            }
            keys => keys.to_vec(),
        };
        for (side, name) in sides.iter().zip([a, b]) {
            let schema = side.schema();
            for column in ["ts", "dur"].into_iter().chain(keys.iter().map(String::as_str)) {
                if schema.index_of(column).is_err() {
                    return plan_err!("overlap: `{name}` has no column `{column}`");
                }
            }
        }
        Ok(Arc::new(Overlapping { schema: schema(&sides), sides, keys }))
    }
}

/// The name in an argument: a text, or an identifier.
fn name(expr: &Expr) -> Result<String> {
    match expr {
        Expr::Literal(ScalarValue::Utf8(Some(name)), _)
        | Expr::Literal(ScalarValue::Utf8View(Some(name)), _) => Ok(name.clone()),
        Expr::Column(column) => Ok(column.flat_name()),
        other => plan_err!("overlap takes names of tables and columns, not {other}"),
    }
}

fn timestamp() -> DataType {
    DataType::Timestamp(TimeUnit::Nanosecond, Some("UTC".into()))
}

fn schema(sides: &[Arc<dyn TableProvider>; 2]) -> SchemaRef {
    let mut fields = Vec::new();
    for (side, prefix) in sides.iter().zip(["a_", "b_"]) {
        for field in side.schema().fields() {
            let name = format!("{prefix}{}", field.name());
            fields.push(field.as_ref().clone().with_name(name).with_nullable(true));
        }
    }
    fields.push(Field::new("ts", timestamp(), true));
    fields.push(Field::new("dur", DataType::Int64, true));
    Arc::new(Schema::new(fields))
}

#[derive(Debug)]
struct Overlapping {
    sides: [Arc<dyn TableProvider>; 2],
    keys: Vec<String>,
    schema: SchemaRef,
}

#[async_trait]
impl TableProvider for Overlapping {
    fn schema(&self) -> SchemaRef {
        self.schema.clone()
    }

    fn table_type(&self) -> TableType {
        TableType::Base
    }

    async fn scan(
        &self,
        state: &dyn Session,
        projection: Option<&Vec<usize>>,
        _: &[Expr],
        _: Option<usize>,
    ) -> Result<Arc<dyn ExecutionPlan>> {
        let a = self.sides[0].scan(state, None, &[], None).await?;
        let b = self.sides[1].scan(state, None, &[], None).await?;
        let plan = OverlapExec::try_new([a, b], self.keys.clone(), self.schema.clone())?;
        projected(Arc::new(plan), projection)
    }
}

#[derive(Debug)]
struct OverlapExec {
    sides: [Arc<dyn ExecutionPlan>; 2],
    keys: Vec<String>,
    schema: SchemaRef,
    properties: Arc<PlanProperties>,
}

impl OverlapExec {
    fn try_new(
        sides: [Arc<dyn ExecutionPlan>; 2],
        keys: Vec<String>,
        schema: SchemaRef,
    ) -> Result<OverlapExec> {
        let parts = sides[0].output_partitioning().partition_count();
        let properties = PlanProperties::new(
            EquivalenceProperties::new(schema.clone()),
            Partitioning::UnknownPartitioning(if keys.is_empty() { 1 } else { parts }),
            EmissionType::Incremental,
            Boundedness::Bounded,
        );
        Ok(OverlapExec { sides, keys, schema, properties: Arc::new(properties) })
    }

    fn column(side: &Arc<dyn ExecutionPlan>, name: &str) -> Result<Arc<dyn PhysicalExpr>> {
        Ok(Arc::new(Column::new(name, side.schema().index_of(name)?)))
    }

    fn columns(&self, side: &Arc<dyn ExecutionPlan>) -> Vec<Arc<dyn PhysicalExpr>> {
        self.keys.iter().filter_map(|key| Self::column(side, key).ok()).collect()
    }

    fn with_inputs(&self, children: Vec<Arc<dyn ExecutionPlan>>) -> Result<Arc<Self>> {
        let Ok(sides) = <[_; 2]>::try_from(children) else {
            return internal_err!("overlap has two inputs");
        };
        Ok(Arc::new(OverlapExec::try_new(sides, self.keys.clone(), self.schema.clone())?))
    }
}

impl DisplayAs for OverlapExec {
    fn fmt_as(&self, _: DisplayFormatType, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Overlap: on=[{}]", self.keys.join(", "))
    }
}

impl ExecutionPlan for OverlapExec {
    plan_methods!();

    fn name(&self) -> &'static str {
        "Overlap"
    }

    fn children(&self) -> Vec<&Arc<dyn ExecutionPlan>> {
        self.sides.iter().collect()
    }

    fn input_distribution_requirements(&self) -> InputDistributionRequirements {
        if self.keys.is_empty() {
            InputDistributionRequirements::new(vec![Distribution::SinglePartition; 2])
        } else {
            InputDistributionRequirements::co_partitioned(
                self.sides
                    .iter()
                    .map(|side| Distribution::KeyPartitioned(self.columns(side)))
                    .collect(),
            )
        }
    }

    fn required_input_ordering(&self) -> Vec<Option<OrderingRequirements>> {
        let required = |side: &Arc<dyn ExecutionPlan>| {
            let ts = Self::column(side, "ts").ok();
            let by = self.columns(side).into_iter().chain(ts);
            let ascending = |expr| PhysicalSortExpr::new(expr, ASCENDING);
            LexOrdering::new(by.map(ascending)).map(OrderingRequirements::from)
        };
        self.sides.iter().map(required).collect()
    }

    fn execute(&self, part: usize, context: Arc<TaskContext>) -> Result<SendableRecordBatchStream> {
        let side = |side: &Arc<dyn ExecutionPlan>| {
            Side::new(side.execute(part, context.clone())?, &self.keys)
        };
        let sides = [side(&self.sides[0])?, side(&self.sides[1])?];
        let (schema, pairs) = (self.schema.clone(), Vec::new());
        let sweep = Sweep { sides, schema, pairs, key: None, done: false };
        let batches = futures::stream::try_unfold(sweep, |mut sweep| async move {
            Ok(sweep.next().await?.map(|batch| (batch, sweep)))
        });
        Ok(Box::pin(RecordBatchStreamAdapter::new(self.schema.clone(), batches)))
    }
}

const ASCENDING: SortOptions = SortOptions { descending: false, nulls_first: true };
/// The number of pairs in a batch.
const PAIRS_PER_BATCH: usize = 8192;

/// A row of a side: the number of its batch, and the row in that batch.
type BatchRow = (u64, usize);

/// Two rows that overlap, and the time in which they do.
#[derive(Debug, Clone, Copy)]
struct Pair {
    places: [BatchRow; 2],
    start: i64,
    end: i64,
}

/// An interval that may still overlap others.
#[derive(Debug, Clone, Copy)]
struct OpenInterval {
    place: BatchRow,
    start: i64,
    end: i64,
}

/// One of the two inputs.
struct Side {
    input: SendableRecordBatchStream,
    keys: Vec<usize>,
    convert: RowConverter,
    ts: usize,
    dur: usize,
    schema: SchemaRef,
    /// Batches that are still needed, by number.
    batches: BTreeMap<u64, RecordBatch>,
    next: u64,
    /// The next row in the latest batch.
    row: usize,
    current: Option<Current>,
    open: Vec<OpenInterval>,
}

/// The columns of the latest batch that are compared.
struct Current {
    number: u64,
    keys: Vec<OwnedRow>,
    starts: TimestampNanosecondArray,
    lengths: Int64Array,
}

impl Side {
    fn new(input: SendableRecordBatchStream, keys: &[String]) -> Result<Side> {
        let schema = input.schema();
        let index = |name: &str| schema.index_of(name);
        let keys: Vec<usize> = keys.iter().map(|key| index(key)).collect::<Result<_, _>>()?;
        let field = |&key: &usize| {
            SortField::new_with_options(plain(schema.field(key).data_type()), ASCENDING)
        };
        let convert = RowConverter::new(keys.iter().map(field).collect())?;
        let (ts, dur) = (index("ts")?, index("dur")?);
        Ok(Side {
            input,
            keys,
            convert,
            ts,
            dur,
            schema,
            batches: BTreeMap::new(),
            next: 0,
            row: 0,
            current: None,
            open: Vec::new(),
        })
    }

    /// The key and the interval of the next row; None if there are no more rows. Skips rows without a start
    /// or a length, which overlap nothing.
    async fn peek(&mut self) -> Result<Option<(OwnedRow, OpenInterval)>> {
        loop {
            if let Some(current) = &self.current {
                while self.row < current.starts.len() {
                    let row = self.row;
                    if current.starts.is_valid(row) && current.lengths.is_valid(row) {
                        let start = current.starts.value(row);
                        let end = start.saturating_add(current.lengths.value(row));
                        let interval = OpenInterval { place: (current.number, row), start, end };
                        return Ok(Some((current.keys[row].clone(), interval)));
                    }
                    self.row += 1;
                }
            }
            let Some(batch) = self.input.next().await.transpose()? else {
                self.current = None;
                return Ok(None);
            };
            let keys = self.keys.iter().map(|&key| {
                let column = batch.column(key);
                cast(column, &plain(column.data_type()))
            });
            let keys: Vec<ArrayRef> = keys.collect::<Result<_, _>>()?;
            let keys = if keys.is_empty() {
                let nothing = new_null_array(&DataType::Null, batch.num_rows());
                let one = RowConverter::new(vec![SortField::new(DataType::Null)])?;
                one.convert_columns(&[nothing])?
            } else {
                self.convert.convert_columns(&keys)?
            };
            let starts = cast(batch.column(self.ts), &timestamp())?;
            let lengths = cast(batch.column(self.dur), &DataType::Int64)?;
            self.current = Some(Current {
                number: self.next,
                keys: keys.iter().map(|row| row.owned()).collect(),
                starts: starts.as_primitive::<TimestampNanosecondType>().clone(),
                lengths: lengths.as_primitive::<Int64Type>().clone(),
            });
            self.batches.insert(self.next, batch);
            self.next += 1;
            self.row = 0;
        }
    }

    /// Drops the batches that neither an open interval nor the next row needs.
    fn drop_batches(&mut self) {
        let latest = self.current.as_ref().map(|current| current.number);
        let needed: std::collections::BTreeSet<u64> =
            self.open.iter().map(|interval| interval.place.0).chain(latest).collect();
        self.batches.retain(|number, _| needed.contains(number));
    }
}

/// The type to compare by: for a dictionary, that of its values, because its keys differ from batch to batch.
fn plain(ty: &DataType) -> DataType {
    match ty {
        DataType::Dictionary(_, value) => value.as_ref().clone(),
        ty => ty.clone(),
    }
}

/// Sweeps over both sides.
struct Sweep {
    sides: [Side; 2],
    schema: SchemaRef,
    pairs: Vec<Pair>,
    /// The key of all open intervals.
    key: Option<OwnedRow>,
    done: bool,
}

impl Sweep {
    async fn next(&mut self) -> Result<Option<RecordBatch>> {
        while !self.done && self.pairs.len() < PAIRS_PER_BATCH {
            let [a, b] = &mut self.sides;
            let side = match (a.peek().await?, b.peek().await?) {
                (None, None) => {
                    self.done = true;
                    break;
                }
                (Some(a), None) => (0, a),
                (None, Some(b)) => (1, b),
                (Some(a), Some(b)) => {
                    if (&a.0, a.1.start) <= (&b.0, b.1.start) {
                        (0, a)
                    } else {
                        (1, b)
                    }
                }
            };
            let (side, (key, interval)) = side;
            if self.key.as_ref() != Some(&key) {
                self.sides.iter_mut().for_each(|side| side.open.clear());
                self.key = Some(key);
            }
            self.open_interval(side, interval);
            self.sides[side].row += 1;
        }
        self.batch()
    }

    /// Pairs an interval with the open intervals of the other side, and opens it.
    fn open_interval(&mut self, side: usize, interval: OpenInterval) {
        let [a, b] = &mut self.sides;
        let (own, other) = if side == 0 { (a, b) } else { (b, a) };
        // Intervals come in the order of their starts, so one that ended before this start overlaps none
        // of the rest.
        let is_over =
            |open: &OpenInterval| open.end <= interval.start && open.start < interval.start;
        other.open.retain(|open| !is_over(open));
        own.open.retain(|open| !is_over(open));
        for open in &other.open {
            let (start, end) = (interval.start, interval.end.min(open.end).max(interval.start));
            let places =
                if side == 0 { [interval.place, open.place] } else { [open.place, interval.place] };
            self.pairs.push(Pair { places, start, end });
        }
        own.open.push(interval);
    }

    fn batch(&mut self) -> Result<Option<RecordBatch>> {
        if self.pairs.is_empty() {
            return Ok(None);
        }
        let pairs = std::mem::take(&mut self.pairs);
        let mut columns: Vec<ArrayRef> = Vec::new();
        for (index, side) in self.sides.iter().enumerate() {
            let numbers: Vec<u64> = side.batches.keys().copied().collect();
            let places: Vec<(usize, usize)> = pairs
                .iter()
                .map(|pair| {
                    let (number, row) = pair.places[index];
                    (numbers.binary_search(&number).unwrap_or_default(), row)
                })
                .collect();
            for column in 0..side.schema.fields().len() {
                let all: Vec<&dyn Array> =
                    side.batches.values().map(|batch| batch.column(column).as_ref()).collect();
                columns.push(interleave(&all, &places)?);
            }
        }
        let starts =
            TimestampNanosecondArray::from_iter_values(pairs.iter().map(|pair| pair.start));
        columns.push(Arc::new(starts.with_data_type(timestamp())));
        let lengths = pairs.iter().map(|pair| pair.end - pair.start);
        columns.push(Arc::new(Int64Array::from_iter_values(lengths)));
        self.sides.iter_mut().for_each(Side::drop_batches);
        Ok(Some(RecordBatch::try_new(self.schema.clone(), columns)?))
    }
}
