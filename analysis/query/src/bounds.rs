//! Derives bounds from filters, by which heads of chunks rule out rows.

use std::collections::BTreeSet;

use datafusion::common::ScalarValue;
use datafusion::logical_expr::{Between, BinaryExpr, Case, Cast, Expr, Operator, TryCast};
use ppt_tables::{Bounded, BoundedNumber, Bounds, CaptureTable};

/// Bounds of the rows that pass all filters.
pub(crate) fn from_filters(filters: &[Expr], table: &dyn CaptureTable) -> Bounds {
    let bounds = filters.iter().filter_map(|filter| from_filter(filter, table));
    bounds.fold(Bounds::default(), Bounds::and)
}

/// Bounds of the rows that pass a filter; None if unknown.
fn from_filter(filter: &Expr, table: &dyn CaptureTable) -> Option<Bounds> {
    match filter {
        Expr::Alias(alias) => from_filter(&alias.expr, table),
        Expr::BinaryExpr(BinaryExpr { left, op: Operator::And, right }) => {
            match (from_filter(left, table), from_filter(right, table)) {
                (Some(left), Some(right)) => Some(left.and(right)),
                (one, None) | (None, one) => one,
            }
        }
        Expr::BinaryExpr(BinaryExpr { left, op: Operator::Or, right }) => {
            Some(from_filter(left, table)?.or(&from_filter(right, table)?))
        }
        Expr::BinaryExpr(BinaryExpr { left, op, right }) => {
            match (bounded(left, table), literal(right)) {
                (Some(bounded_by), Some(value)) => comparison(bounded_by, *op, value),
                _ => comparison(bounded(right, table)?, op.swap()?, literal(left)?),
            }
        }
        Expr::Between(Between { expr, negated: false, low, high }) => {
            let bounded_by = bounded(expr, table)?;
            let from = comparison(bounded_by, Operator::GtEq, literal(low)?);
            let to = comparison(bounded_by, Operator::LtEq, literal(high)?);
            match (from, to) {
                (Some(from), Some(to)) => Some(from.and(to)),
                (one, None) | (None, one) => one,
            }
        }
        Expr::InList(list) if !list.negated => {
            let bounded_by = bounded(&list.expr, table)?;
            let options =
                list.list.iter().map(|expr| comparison(bounded_by, Operator::Eq, literal(expr)?));
            let options: Option<Vec<Bounds>> = options.collect();
            options?.into_iter().reduce(|all, one| all.or(&one))
        }
        _ => None,
    }
}

/// The kind of bounds that apply to an expression, if any do.
fn bounded(expr: &Expr, table: &dyn CaptureTable) -> Option<Bounded> {
    match expr {
        Expr::Column(column) => table.bounded(table.schema().index_of(&column.name).ok()?),
        // Words are compared as text of any type.
        Expr::Cast(Cast { expr, .. }) | Expr::TryCast(TryCast { expr, .. }) => {
            bounded(expr, table).filter(|bounded| matches!(bounded, Bounded::Word(_)))
        }
        Expr::ScalarFunction(call) if call.name() == "coalesce" => {
            first_of(call.args.first()?, call.args.get(1)?, table)
        }
        // DataFusion turns `coalesce` into CASE.
        Expr::Case(Case { expr: None, when_then_expr, else_expr: Some(other) }) => {
            let [(when, then)] = when_then_expr.as_slice() else { return None };
            let Expr::IsNotNull(tested) = &**when else { return None };
            (tested == then).then(|| first_of(then, other, table)).flatten()
        }
        _ => None,
    }
}

/// The bounds of `coalesce(ts, drained)`.
fn first_of(first: &Expr, second: &Expr, table: &dyn CaptureTable) -> Option<Bounded> {
    let is_number = |expr, number| bounded(expr, table) == Some(Bounded::Number(number));
    (is_number(first, BoundedNumber::Ts) && is_number(second, BoundedNumber::Drained))
        .then_some(Bounded::Number(BoundedNumber::Time))
}

fn literal(expr: &Expr) -> Option<&ScalarValue> {
    match expr {
        Expr::Literal(value, _) if !value.is_null() => Some(value),
        _ => None,
    }
}

fn comparison(bounded_by: Bounded, op: Operator, value: &ScalarValue) -> Option<Bounds> {
    let mut bounds = Bounds::default();
    match bounded_by {
        Bounded::Number(number) => {
            let value = integer(value)?;
            let range = match op {
                Operator::Eq => (value, value),
                Operator::Lt => (i64::MIN, value.checked_sub(1)?),
                Operator::LtEq => (i64::MIN, value),
                Operator::Gt => (value.checked_add(1)?, i64::MAX),
                Operator::GtEq => (value, i64::MAX),
                _ => return None,
            };
            bounds.within(number, range);
        }
        Bounded::Word(word) => {
            let text = text(value).filter(|_| op == Operator::Eq)?;
            bounds.one_of(word, BTreeSet::from([text.to_owned()]));
        }
    }
    Some(bounds)
}

fn integer(value: &ScalarValue) -> Option<i64> {
    match value {
        ScalarValue::TimestampNanosecond(Some(ns), _) => Some(*ns),
        ScalarValue::Int64(Some(value)) => Some(*value),
        ScalarValue::Int32(Some(value)) => Some((*value).into()),
        _ => None,
    }
}

fn text(value: &ScalarValue) -> Option<&str> {
    match value {
        ScalarValue::Utf8(Some(text))
        | ScalarValue::Utf8View(Some(text))
        | ScalarValue::LargeUtf8(Some(text)) => Some(text),
        ScalarValue::Dictionary(_, value) => self::text(value),
        _ => None,
    }
}
