//! How a kind of frames is read for its summary.

use std::collections::HashSet;
use std::sync::Arc;

use datafusion::arrow::datatypes::{DataType, Field};
use datafusion::common::{DFSchema, ScalarValue, TableReference};
use datafusion::functions::core::expr_fn::coalesce;
use datafusion::logical_expr::Expr;
use datafusion::prelude::ident;
use ppt_predicate::to_sql;
use ppt_tables::{Bounded, Number, Table, Word};

use super::answer::Ask;
use crate::engine::{Engine, FrameTable, Unit};
use crate::error::QueryError;
use crate::limits::within_limits;
use crate::nearest::nearest;

/// What is done with a field.
#[derive(Debug, Clone)]
pub(super) struct Role {
    pub(super) field: Arc<Field>,
    pub(super) kind: Kind,
    /// Columns of what is read: the values, and of an interval of time its ends.
    pub(super) column: usize,
    pub(super) ends: Option<(usize, usize)>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Kind {
    Signed,
    Unsigned,
    Real,
    Words,
}

fn kind(ty: &DataType) -> Option<Kind> {
    match ty {
        DataType::UInt64 => Some(Kind::Unsigned),
        ty if ty.is_integer() => Some(Kind::Signed),
        ty if ty.is_floating() => Some(Kind::Real),
        DataType::Boolean | DataType::Dictionary(..) => Some(Kind::Words),
        _ => None,
    }
}

/// How a kind of frames is read.
pub(super) struct Plan {
    pub(super) buffer: String,
    pub(super) frame: String,
    pub(super) unit: Unit,
    pub(super) table: TableReference,
    pub(super) filter: Option<Expr>,
    pub(super) select: Vec<Expr>,
    pub(super) roles: Vec<Role>,
    /// All fields of which something can be told.
    pub(super) fields: Vec<String>,
    /// Columns of what is read.
    pub(super) by: Vec<usize>,
    pub(super) time: usize,
    pub(super) thread: [usize; 3],
}

impl Plan {
    pub(super) fn new(
        engine: &Engine,
        ask: &Ask,
        (table, unit): (&FrameTable, Unit),
    ) -> Result<Plan, QueryError> {
        let schema = table.table.schema();
        let mut select = Vec::new();
        let mut read = |expr: Expr| {
            select.push(expr.alias(format!("c{}", select.len())));
            select.len() - 1
        };
        let column = |index: usize| ident(schema.field(index).name().as_str());
        let standard = |what| find(table.table.as_ref(), what).map(column);
        let number = |number| standard(Bounded::Number(number)).unwrap_or_else(null);
        let time = read(coalesce(vec![number(Number::Ts), number(Number::Drained)]));
        let host = standard(Bounded::Word(Word::Host)).unwrap_or_else(null);
        let thread = [read(host), read(number(Number::Pid)), read(number(Number::Tid))];

        let by_name = |name: &str| schema.index_of(name).ok();
        let by = ask.by.iter().map(|name| match by_name(name) {
            Some(index) => Ok(read(column(index))),
            None => Err(no_column(name, schema.fields().iter().map(|it| it.name().clone()))),
        });
        let by = by.collect::<Result<Vec<_>, _>>()?;
        let role = |field: &Field| field.metadata().get("role").cloned().unwrap_or_default();
        let told = schema.fields().iter().enumerate().filter_map(|(index, field)| {
            let is_end = ["at", "start", "end", "where"].contains(&role(field).as_str());
            let is_other = table.table.bounded(index).is_some() || ask.by.contains(field.name());
            Some((index, field, kind(field.data_type()).filter(|_| !is_end && !is_other)?))
        });
        // Words have no distribution.
        let told: Vec<_> = told.filter(|it| ask.spread.is_none() || it.2 != Kind::Words).collect();
        let fields: Vec<String> = told.iter().map(|it| it.1.name().clone()).collect();
        let wanted = told.into_iter().filter(|(_, field, _)| match &ask.spread {
            Some(name) => field.name() == name,
            None => ask.fields.is_empty() || ask.fields.contains(field.name()),
        });
        let wanted: Vec<_> = wanted.collect();
        let asked = ask.spread.as_ref().or(ask.fields.first());
        if let Some(name) = asked.filter(|_| wanted.is_empty()) {
            return Err(no_column(name, fields));
        }
        let roles = wanted.into_iter().map(|(index, field, kind)| {
            let ends = (role(field) == "length").then(|| ends(schema, field)).flatten();
            let mut read = |index: usize| read(column(index));
            let (column, ends) = (read(index), ends.map(|(start, end)| (read(start), read(end))));
            Role { field: field.clone(), kind, column, ends }
        });
        let roles = roles.collect();
        let filter = match &ask.filter {
            None => None,
            Some(text) => {
                let known = DFSchema::try_from_qualified_schema(table.name.clone(), schema)?;
                within_limits(text)?;
                Some(engine.context().parse_sql_expr(&to_sql(text), &known)?)
            }
        };
        Ok(Plan {
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
        })
    }
}

fn null() -> Expr {
    Expr::Literal(ScalarValue::Null, None)
}

fn find(table: &dyn Table, what: Bounded) -> Option<usize> {
    (0..table.schema().fields().len()).find(|&it| table.bounded(it) == Some(what))
}

/// Names that several kinds have are said once.
pub(super) fn no_column(name: &str, there: impl IntoIterator<Item = String>) -> QueryError {
    let mut said = HashSet::new();
    let there: Vec<String> = there.into_iter().filter(|it| said.insert(it.clone())).collect();
    QueryError::NoColumn { name: name.to_owned(), nearest: nearest(name, &there), there }
}

/// The columns that hold the ends of an interval of time, if its clock has a place in time.
pub fn ends(
    schema: &datafusion::arrow::datatypes::Schema,
    length: &Field,
) -> Option<(usize, usize)> {
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
