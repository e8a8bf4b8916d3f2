//! Plans how to read a kind of frames for its summary.

use std::collections::HashSet;
use std::sync::Arc;

use datafusion::arrow::datatypes::{DataType, Field, Schema};
use datafusion::common::{DFSchema, ScalarValue, TableReference};
use datafusion::functions::core::expr_fn::coalesce;
use datafusion::logical_expr::Expr;
use datafusion::prelude::ident;
use ppt_predicate::to_sql;
use ppt_tables::{Bounded, BoundedNumber, BoundedText, CaptureTable, SYMBOL};

use super::answer::SummaryRequest;
use ppt_text::nearest;

use crate::engine::{Engine, FrameTable, RowUnit};
use crate::error::QueryError;
use crate::functions::function_of;
use crate::limits::within_limits;

/// A field, and how it is summarised.
#[derive(Debug, Clone)]
pub(super) struct SummarisedField {
    pub(super) field: Arc<Field>,
    pub(super) kind: ValueType,
    /// Index of the read column with the values.
    pub(super) column: usize,
    /// Indices of the read columns with the begin and end of an interval of time.
    pub(super) ends: Option<(usize, usize)>,
    /// The frames that are summarised together.
    pub(super) steps: Steps,
}

/// The frames of a span or a chain for which a field is summarised.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Steps {
    /// All rows together.
    All,
    /// Each step separately. A step whose frames all have 0 is omitted if another step has other values.
    Each,
    /// This step: according to the frame file, no other step sets the field.
    Only(String),
    /// A column of one half in a table of spans; omitted like a step of `Each` if the other half sets the
    /// field.
    Half(String),
}

/// The type of a field's values.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum ValueType {
    Signed,
    Unsigned,
    Real,
    Words,
    /// Identities: the number of distinct ones is summarised, but no percentiles.
    Keys,
}

fn kind(field: &Field) -> Option<ValueType> {
    match field.data_type() {
        DataType::Boolean | DataType::Dictionary(..) => Some(ValueType::Words),
        ty if is_identity(field) => {
            let is_bytes = matches!(ty, DataType::Utf8 | DataType::FixedSizeBinary(_));
            (ty.is_integer() || is_bytes).then_some(ValueType::Keys)
        }
        DataType::UInt64 => Some(ValueType::Unsigned),
        ty if ty.is_integer() => Some(ValueType::Signed),
        ty if ty.is_floating() => Some(ValueType::Real),
        _ => None,
    }
}

/// Whether the values of a column are identities, as keys and hashes are, instead of quantities.
pub fn is_identity(field: &Field) -> bool {
    let has = |key: &str| field.metadata().contains_key(key);
    let is_key = field.metadata().get("role").is_some_and(|role| role == "key");
    is_key || ["in", "out", "hash", SYMBOL].into_iter().any(has)
}

/// The column with the step of a span or a chain. Its words are the names of the steps.
pub fn step_column(schema: &Schema) -> Option<usize> {
    let role = |field: &Field| field.metadata().get("role").cloned().unwrap_or_default();
    let is_step = |field: &Arc<Field>| {
        let is_word = matches!(field.data_type(), DataType::Dictionary(..));
        is_word && ["edge", "step"].contains(&role(field).as_str())
    };
    schema.fields().iter().position(is_step)
}

/// The plan of reading a kind of frames.
pub(super) struct ReadPlan {
    pub(super) buffer: String,
    pub(super) frame: String,
    pub(super) unit: RowUnit,
    pub(super) table: TableReference,
    pub(super) filter: Option<Expr>,
    pub(super) select: Vec<Expr>,
    pub(super) summarised: Vec<SummarisedField>,
    /// Names of all fields that can be summarised.
    pub(super) fields: Vec<String>,
    /// Indices of read columns, here and below.
    pub(super) by: Vec<usize>,
    pub(super) time: usize,
    pub(super) thread: [usize; 3],
    /// The step of a span or a chain.
    pub(super) step: Option<usize>,
}

impl ReadPlan {
    pub(super) fn new(
        engine: &Engine,
        request: &SummaryRequest,
        (table, unit): (&FrameTable, RowUnit),
    ) -> Result<ReadPlan, QueryError> {
        let schema = table.table.schema();
        let mut select = Vec::new();
        let mut read = |expr: Expr| {
            select.push(expr.alias(format!("c{}", select.len())));
            select.len() - 1
        };
        let column = |index: usize| ident(schema.field(index).name().as_str());
        let standard = |bounded| find(table.table.as_ref(), bounded).map(column);
        let number = |number| standard(Bounded::Number(number)).unwrap_or_else(null);
        let time = read(coalesce(vec![number(BoundedNumber::Ts), number(BoundedNumber::Drained)]));
        let host = standard(Bounded::Word(BoundedText::Host)).unwrap_or_else(null);
        let thread =
            [read(host), read(number(BoundedNumber::Pid)), read(number(BoundedNumber::Tid))];

        let by_name = |name: &str| schema.index_of(name).ok();
        let by = request.by.iter().map(|name| match by_name(name) {
            // Addresses are grouped by function.
            Some(index) => Ok(read(match schema.field(index).metadata().get(SYMBOL) {
                Some(symbol) => function_of(ident(symbol.as_str())),
                None => column(index),
            })),
            None => Err(no_column(name, schema.fields().iter().map(|field| field.name().clone()))),
        });
        let by = by.collect::<Result<Vec<_>, _>>()?;
        let (wanted, fields) = wanted_fields(table, request)?;
        let step = step_column(schema).filter(|_| unit == RowUnit::Frame);
        let steps = |index: usize, field: &Field| {
            let half = field.metadata().get("half").cloned();
            match (step, unit, half) {
                (Some(step), ..) if step == index || role_of(field) == "key" => Steps::All,
                (Some(_), _, Some(half)) => Steps::Only(half),
                (Some(_), _, None) => Steps::Each,
                (None, RowUnit::Span, Some(half)) => Steps::Half(half),
                (None, ..) => Steps::All,
            }
        };
        let summarised = wanted.into_iter().map(|(index, field, kind)| {
            let ends = (role_of(field) == "length").then(|| ends(schema, field)).flatten();
            let mut read = |index: usize| read(column(index));
            let (column, ends) = (read(index), ends.map(|(start, end)| (read(start), read(end))));
            SummarisedField { field: field.clone(), kind, column, ends, steps: steps(index, field) }
        });
        let summarised: Vec<SummarisedField> = summarised.collect();
        let step = step.filter(|_| summarised.iter().any(|one| one.steps != Steps::All));
        let step = step.map(|index| read(column(index)));
        let filter = match &request.filter {
            None => None,
            Some(text) => {
                let known = DFSchema::try_from_qualified_schema(table.name.clone(), schema)?;
                within_limits(text)?;
                Some(engine.context().parse_sql_expr(&to_sql(text), &known)?)
            }
        };
        Ok(ReadPlan {
            buffer: table.buffer.clone(),
            frame: table.frame.clone(),
            unit,
            table: table.name.clone(),
            filter,
            select,
            summarised,
            fields,
            by,
            time,
            thread,
            step,
        })
    }
}

fn role_of(field: &Field) -> &str {
    field.metadata().get("role").map_or("", String::as_str)
}

/// The index of a column, its field and its type.
type FieldColumn<'a> = (usize, &'a Arc<Field>, ValueType);

/// The fields that are wanted, and the names of all that could be.
fn wanted_fields<'a>(
    table: &'a FrameTable,
    request: &SummaryRequest,
) -> Result<(Vec<FieldColumn<'a>>, Vec<String>), QueryError> {
    let schema = table.table.schema();
    let candidates = schema.fields().iter().enumerate().filter_map(|(index, field)| {
        let is_end = ["at", "start", "end", "where"].contains(&role_of(field));
        let is_other = table.table.bounded(index).is_some() || request.by.contains(field.name());
        Some((index, field, kind(field).filter(|_| !is_end && !is_other)?))
    });
    // Words and keys have no distribution.
    let is_number = |kind| !matches!(kind, ValueType::Words | ValueType::Keys);
    let candidates: Vec<_> =
        candidates.filter(|(.., kind)| request.spread.is_none() || is_number(*kind)).collect();
    let fields: Vec<String> =
        candidates.iter().map(|candidate| candidate.1.name().clone()).collect();
    let wanted = candidates.into_iter().filter(|(_, field, _)| match &request.spread {
        Some(name) => field.name() == name,
        None => request.fields.is_empty() || request.fields.contains(field.name()),
    });
    let wanted: Vec<_> = wanted.collect();
    let requested = request.spread.as_ref().or(request.fields.first());
    if let Some(name) = requested.filter(|_| wanted.is_empty()) {
        return Err(no_column(name, fields));
    }
    Ok((wanted, fields))
}

impl ReadPlan {
    /// Restricts the plan to these fields; there may be none.
    pub(super) fn only(&mut self, fields: &[String]) {
        self.summarised.retain(|one| fields.contains(one.field.name()));
        if self.summarised.iter().all(|one| one.steps == Steps::All) {
            self.step = None;
        }
        let mut kept: Vec<usize> = Vec::new();
        let keep = |column: &mut usize| {
            let index = kept.iter().position(|other| other == column);
            *column = index.unwrap_or_else(|| {
                kept.push(*column);
                kept.len() - 1
            });
        };
        let ends = self.summarised.iter_mut().flat_map(|one| {
            let ends = one.ends.iter_mut().flat_map(|(start, end)| [start, end]);
            std::iter::once(&mut one.column).chain(ends)
        });
        let standard = std::iter::once(&mut self.time).chain(&mut self.thread);
        standard.chain(&mut self.by).chain(&mut self.step).chain(ends).for_each(keep);
        self.select = kept.iter().map(|&column| self.select[column].clone()).collect();
    }
}

fn null() -> Expr {
    Expr::Literal(ScalarValue::Null, None)
}

fn find(table: &dyn CaptureTable, wanted: Bounded) -> Option<usize> {
    (0..table.schema().fields().len()).find(|&index| table.bounded(index) == Some(wanted))
}

/// The error for an unknown column; `available` may have duplicates.
pub(super) fn no_column(name: &str, available: impl IntoIterator<Item = String>) -> QueryError {
    let mut names = HashSet::new();
    let available: Vec<String> =
        available.into_iter().filter(|text| names.insert(text.clone())).collect();
    QueryError::NoColumn {
        name: name.to_owned(),
        nearest: nearest(name, &available).cloned(),
        available,
    }
}

/// The columns with the begin and end of an interval of time; None if its clock has no position in time.
pub fn ends(schema: &Schema, length: &Field) -> Option<(usize, usize)> {
    let interval = length.metadata().get("interval")?;
    let place = |role: &str| {
        schema.fields().iter().position(|field| {
            let value = |key: &str| field.metadata().get(key).map(String::as_str);
            value("role") == Some(role)
                && value("interval") == Some(interval)
                && matches!(field.data_type(), DataType::Timestamp(..))
        })
    };
    // One of them, mostly the end, may be the time of the frame.
    let end = |role| place(role).or_else(|| place("at"));
    Some((end("start")?, end("end")?)).filter(|(start, end)| start != end)
}
