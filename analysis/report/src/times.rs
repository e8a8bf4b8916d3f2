//! Names of the columns for times and threads of frames.

use ppt_query::CaptureTable;
use ppt_query::datafusion::functions::core::expr_fn::coalesce;
use ppt_query::datafusion::logical_expr::Expr;
use ppt_query::datafusion::prelude::ident;

/// The columns for the time of a frame: when it was written, and when the listener drained it.
pub fn time_columns(table: &dyn CaptureTable) -> impl Iterator<Item = String> {
    use ppt_query::{Bounded, BoundedNumber};
    let schema = table.schema().clone();
    let find = move |number| {
        (0..schema.fields().len())
            .find(|&index| table.bounded(index) == Some(Bounded::Number(number)))
    };
    let found: Vec<usize> =
        [BoundedNumber::Ts, BoundedNumber::Drained].into_iter().filter_map(find).collect();
    let schema = table.schema().clone();
    found.into_iter().map(move |index| schema.field(index).name().clone())
}

/// The time of a frame.
pub fn time_of(table: &dyn CaptureTable) -> Expr {
    coalesce(time_columns(table).map(ident).collect())
}

/// Sorts by time, then by the identities of frames, so that the order is reproducible.
pub fn order(table: &dyn CaptureTable) -> Vec<ppt_query::datafusion::logical_expr::SortExpr> {
    use ppt_query::{Bounded, BoundedNumber};
    let schema = table.schema();
    let standard = [BoundedNumber::Ring, BoundedNumber::Seqno].into_iter().filter_map(|number| {
        let is_it = |index: &usize| table.bounded(*index) == Some(Bounded::Number(number));
        (0..schema.fields().len()).find(is_it)
    });
    let named = standard.map(|index| ident(schema.field(index).name().as_str()).sort(true, false));
    std::iter::once(time_of(table).sort(true, false)).chain(named).collect()
}

/// A time as a literal of SQL.
pub fn at(ns: i64) -> Expr {
    let value = ppt_query::datafusion::common::ScalarValue::TimestampNanosecond(
        Some(ns),
        Some("UTC".into()),
    );
    Expr::Literal(value, None)
}

/// The names of the columns for host, process and thread.
pub fn standard(table: &dyn CaptureTable) -> [String; 3] {
    use ppt_query::{Bounded, BoundedNumber, BoundedText};
    let schema = table.schema();
    let what = [
        Bounded::Word(BoundedText::Host),
        Bounded::Number(BoundedNumber::Pid),
        Bounded::Number(BoundedNumber::Tid),
    ];
    let names = ["host", "pid", "tid"];
    std::array::from_fn(|which| {
        let found =
            (0..schema.fields().len()).find(|&index| table.bounded(index) == Some(what[which]));
        found.map_or(names[which].to_owned(), |found| schema.field(found).name().clone())
    })
}
