//! Filters, as far as the heads of chunks show that nothing passes them.

use std::collections::BTreeSet;

use datafusion::common::ScalarValue;
use datafusion::logical_expr::{Between, BinaryExpr, Case, Cast, Expr, Operator, TryCast};
use ppt_tables::{Bounded, BoundedNumber, Bounds, CaptureTable};

/// Bounds of all rows that pass every one of `filters`.
pub(crate) fn of_filters(filters: &[Expr], table: &dyn CaptureTable) -> Bounds {
    let bounds = filters.iter().filter_map(|filter| of_one(filter, table));
    bounds.fold(Bounds::default(), Bounds::and)
}

fn of_one(filter: &Expr, table: &dyn CaptureTable) -> Option<Bounds> {
    match filter {
        Expr::Alias(alias) => of_one(&alias.expr, table),
        Expr::BinaryExpr(BinaryExpr { left, op: Operator::And, right }) => {
            match (of_one(left, table), of_one(right, table)) {
                (Some(left), Some(right)) => Some(left.and(right)),
                (one, None) | (None, one) => one,
            }
        }
        Expr::BinaryExpr(BinaryExpr { left, op: Operator::Or, right }) => {
            Some(of_one(left, table)?.or(&of_one(right, table)?))
        }
        Expr::BinaryExpr(BinaryExpr { left, op, right }) => {
            match (bounded(left, table), literal(right)) {
                (Some(what), Some(value)) => comparison(what, *op, value),
                _ => comparison(bounded(right, table)?, op.swap()?, literal(left)?),
            }
        }
        Expr::Between(Between { expr, negated: false, low, high }) => {
            let what = bounded(expr, table)?;
            let from = comparison(what, Operator::GtEq, literal(low)?);
            let to = comparison(what, Operator::LtEq, literal(high)?);
            match (from, to) {
                (Some(from), Some(to)) => Some(from.and(to)),
                (one, None) | (None, one) => one,
            }
        }
        Expr::InList(list) if !list.negated => {
            let what = bounded(&list.expr, table)?;
            let each = list.list.iter().map(|expr| comparison(what, Operator::Eq, literal(expr)?));
            let each: Option<Vec<Bounds>> = each.collect();
            each?.into_iter().reduce(|all, one| all.or(&one))
        }
        _ => None,
    }
}

/// What an expression is to the heads of chunks.
fn bounded(expr: &Expr, table: &dyn CaptureTable) -> Option<Bounded> {
    match expr {
        Expr::Column(column) => table.bounded(table.schema().index_of(&column.name).ok()?),
        // Words are compared as text, whatever text it is.
        Expr::Cast(Cast { expr, .. }) | Expr::TryCast(TryCast { expr, .. }) => {
            bounded(expr, table).filter(|bounded| matches!(bounded, Bounded::Word(_)))
        }
        Expr::ScalarFunction(call) if call.name() == "coalesce" => {
            first_of(call.args.first()?, call.args.get(1)?, table)
        }
        // What coalesce becomes.
        Expr::Case(Case { expr: None, when_then_expr, else_expr: Some(other) }) => {
            let [(when, then)] = when_then_expr.as_slice() else { return None };
            let Expr::IsNotNull(tested) = &**when else { return None };
            (tested == then).then(|| first_of(then, other, table)).flatten()
        }
        _ => None,
    }
}

/// `coalesce(ts, drained)`.
fn first_of(first: &Expr, second: &Expr, table: &dyn CaptureTable) -> Option<Bounded> {
    let is = |expr, number| bounded(expr, table) == Some(Bounded::Number(number));
    (is(first, BoundedNumber::Ts) && is(second, BoundedNumber::Drained))
        .then_some(Bounded::Number(BoundedNumber::Time))
}

fn literal(expr: &Expr) -> Option<&ScalarValue> {
    match expr {
        Expr::Literal(value, _) if !value.is_null() => Some(value),
        _ => None,
    }
}

fn comparison(what: Bounded, op: Operator, value: &ScalarValue) -> Option<Bounds> {
    let mut bounds = Bounds::default();
    match what {
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
