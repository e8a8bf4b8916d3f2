//! How a kind of frames is read for its summary.

use std::collections::HashSet;
use std::sync::Arc;

use datafusion::arrow::datatypes::{DataType, Field, Schema};
use datafusion::common::{DFSchema, ScalarValue, TableReference};
use datafusion::functions::core::expr_fn::coalesce;
use datafusion::logical_expr::Expr;
use datafusion::prelude::ident;
use ppt_predicate::to_sql;
use ppt_tables::{Bounded, BoundedNumber, BoundedText, CaptureTable, SYMBOL};

use super::answer::Ask;
use ppt_text::nearest;

use crate::engine::{Engine, FrameTable, RowUnit};
use crate::error::QueryError;
use crate::functions::function_of;
use crate::limits::within_limits;

/// What is done with a field.
#[derive(Debug, Clone)]
pub(super) struct Role {
    pub(super) field: Arc<Field>,
    pub(super) kind: ValueType,
    /// Columns of what is read: the values, and of an interval of time its ends.
    pub(super) column: usize,
    pub(super) ends: Option<(usize, usize)>,
    /// Frames of each step are summarised apart.
    pub(super) steps: Steps,
}

/// Of which frames of a span or a chain a field is summarised.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Steps {
    /// Of all rows together.
    All,
    /// Of each step by itself. One whose frames all have 0 does not set the field, if another does.
    Each,
    /// Of this one: the frame file says that no other sets the field.
    Only(String),
    /// In a table of spans, it is of one half. Like `Each`, if the other half has a column of that name.
    Half(String),
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum ValueType {
    Signed,
    Unsigned,
    Real,
    Words,
    /// They identify things: how many different ones there are says something, and no percentile does.
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

/// Whether the values of a column name things, as keys and hashes do, and measure nothing.
pub fn is_identity(field: &Field) -> bool {
    let says = |key: &str| field.metadata().contains_key(key);
    let is_key = field.metadata().get("role").is_some_and(|role| role == "key");
    is_key || ["in", "out", "hash", SYMBOL].into_iter().any(says)
}

/// The column that says which step of a span or a chain a frame is: its words are those of the steps.
pub fn step_column(schema: &Schema) -> Option<usize> {
    let says = |field: &Field| field.metadata().get("role").cloned().unwrap_or_default();
    let is_step = |field: &Arc<Field>| {
        let is_word = matches!(field.data_type(), DataType::Dictionary(..));
        is_word && ["edge", "step"].contains(&says(field).as_str())
    };
    schema.fields().iter().position(is_step)
}

/// How a kind of frames is read.
pub(super) struct ReadPlan {
    pub(super) buffer: String,
    pub(super) frame: String,
    pub(super) unit: RowUnit,
    pub(super) table: TableReference,
    pub(super) filter: Option<Expr>,
    pub(super) select: Vec<Expr>,
    pub(super) roles: Vec<Role>,
    /// All fields that can be summarised.
    pub(super) fields: Vec<String>,
    /// Columns of what is read.
    pub(super) by: Vec<usize>,
    pub(super) time: usize,
    pub(super) thread: [usize; 3],
    /// Which step of a span or a chain a frame is.
    pub(super) step: Option<usize>,
}

impl ReadPlan {
    pub(super) fn new(
        engine: &Engine,
        ask: &Ask,
        (table, unit): (&FrameTable, RowUnit),
    ) -> Result<ReadPlan, QueryError> {
        let schema = table.table.schema();
        let mut select = Vec::new();
        let mut read = |expr: Expr| {
            select.push(expr.alias(format!("c{}", select.len())));
            select.len() - 1
        };
        let column = |index: usize| ident(schema.field(index).name().as_str());
        let standard = |what| find(table.table.as_ref(), what).map(column);
        let number = |number| standard(Bounded::Number(number)).unwrap_or_else(null);
        let time = read(coalesce(vec![number(BoundedNumber::Ts), number(BoundedNumber::Drained)]));
        let host = standard(Bounded::Word(BoundedText::Host)).unwrap_or_else(null);
        let thread =
            [read(host), read(number(BoundedNumber::Pid)), read(number(BoundedNumber::Tid))];

        let by_name = |name: &str| schema.index_of(name).ok();
        let by = ask.by.iter().map(|name| match by_name(name) {
            // Addresses are put together by their functions.
            Some(index) => Ok(read(match schema.field(index).metadata().get(SYMBOL) {
                Some(symbol) => function_of(ident(symbol.as_str())),
                None => column(index),
            })),
            None => Err(no_column(name, schema.fields().iter().map(|field| field.name().clone()))),
        });
        let by = by.collect::<Result<Vec<_>, _>>()?;
        let role = |field: &Field| field.metadata().get("role").cloned().unwrap_or_default();
        let told = schema.fields().iter().enumerate().filter_map(|(index, field)| {
            let is_end = ["at", "start", "end", "where"].contains(&role(field).as_str());
            let is_other = table.table.bounded(index).is_some() || ask.by.contains(field.name());
            Some((index, field, kind(field).filter(|_| !is_end && !is_other)?))
        });
        // Words and keys have no distribution.
        let is_number = |kind| !matches!(kind, ValueType::Words | ValueType::Keys);
        let told: Vec<_> =
            told.filter(|(.., kind)| ask.spread.is_none() || is_number(*kind)).collect();
        let fields: Vec<String> = told.iter().map(|entry| entry.1.name().clone()).collect();
        let wanted = told.into_iter().filter(|(_, field, _)| match &ask.spread {
            Some(name) => field.name() == name,
            None => ask.fields.is_empty() || ask.fields.contains(field.name()),
        });
        let wanted: Vec<_> = wanted.collect();
        let asked = ask.spread.as_ref().or(ask.fields.first());
        if let Some(name) = asked.filter(|_| wanted.is_empty()) {
            return Err(no_column(name, fields));
        }
        let step = step_column(schema).filter(|_| unit == RowUnit::Frame);
        let steps = |index: usize, field: &Field| {
            let half = field.metadata().get("half").cloned();
            match (step, unit, half) {
                (Some(step), ..) if step == index || role(field) == "key" => Steps::All,
                (Some(_), _, Some(half)) => Steps::Only(half),
                (Some(_), _, None) => Steps::Each,
                (None, RowUnit::Span, Some(half)) => Steps::Half(half),
                (None, ..) => Steps::All,
            }
        };
        let roles = wanted.into_iter().map(|(index, field, kind)| {
            let ends = (role(field) == "length").then(|| ends(schema, field)).flatten();
            let mut read = |index: usize| read(column(index));
            let (column, ends) = (read(index), ends.map(|(start, end)| (read(start), read(end))));
            Role { field: field.clone(), kind, column, ends, steps: steps(index, field) }
        });
        let roles: Vec<Role> = roles.collect();
        let step = step.filter(|_| roles.iter().any(|role| role.steps != Steps::All));
        let step = step.map(|index| read(column(index)));
        let filter = match &ask.filter {
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
            roles,
            fields,
            by,
            time,
            thread,
            step,
        })
    }
}

impl ReadPlan {
    /// Reads these fields alone; they may be none.
    pub(super) fn only(&mut self, fields: &[String]) {
        self.roles.retain(|role| fields.contains(role.field.name()));
        if self.roles.iter().all(|role| role.steps == Steps::All) {
            self.step = None;
        }
        let mut kept: Vec<usize> = Vec::new();
        let keep = |column: &mut usize| {
            let known = kept.iter().position(|known| known == column);
            *column = known.unwrap_or_else(|| {
                kept.push(*column);
                kept.len() - 1
            });
        };
        let ends = self.roles.iter_mut().flat_map(|role| {
            let ends = role.ends.iter_mut().flat_map(|(start, end)| [start, end]);
            std::iter::once(&mut role.column).chain(ends)
        });
        let standard = std::iter::once(&mut self.time).chain(&mut self.thread);
        standard.chain(&mut self.by).chain(&mut self.step).chain(ends).for_each(keep);
        self.select = kept.iter().map(|&column| self.select[column].clone()).collect();
    }
}

fn null() -> Expr {
    Expr::Literal(ScalarValue::Null, None)
}

fn find(table: &dyn CaptureTable, what: Bounded) -> Option<usize> {
    (0..table.schema().fields().len()).find(|&index| table.bounded(index) == Some(what))
}

/// Names that several kinds have are said once.
pub(super) fn no_column(name: &str, there: impl IntoIterator<Item = String>) -> QueryError {
    let mut said = HashSet::new();
    let there: Vec<String> = there.into_iter().filter(|text| said.insert(text.clone())).collect();
    QueryError::NoColumn { name: name.to_owned(), nearest: nearest(name, &there).cloned(), there }
}

/// The columns that hold the ends of an interval of time, if its clock has a place in time.
pub fn ends(schema: &Schema, length: &Field) -> Option<(usize, usize)> {
    let interval = length.metadata().get("interval")?;
    let place = |role: &str| {
        schema.fields().iter().position(|field| {
            let said = |key: &str| field.metadata().get(key).map(String::as_str);
            said("role") == Some(role)
                && said("interval") == Some(interval)
                && matches!(field.data_type(), DataType::Timestamp(..))
        })
    };
    // One of them, mostly the end, may be when the frame was.
    let end = |role| place(role).or_else(|| place("at"));
    Some((end("start")?, end("end")?)).filter(|(start, end)| start != end)
}
