//! When frames were, and whose: what the columns are called.

use ppt_query::Table;
use ppt_query::datafusion::functions::core::expr_fn::coalesce;
use ppt_query::datafusion::logical_expr::Expr;
use ppt_query::datafusion::prelude::ident;

/// The columns that say when a frame was: when it was taken, and when the listener had it.
pub fn time_columns(table: &dyn Table) -> impl Iterator<Item = String> {
    use ppt_query::{Bounded, Number};
    let schema = table.schema().clone();
    let find = move |number| {
        (0..schema.fields().len()).find(|&it| table.bounded(it) == Some(Bounded::Number(number)))
    };
    let found: Vec<usize> = [Number::Ts, Number::Drained].into_iter().filter_map(find).collect();
    let schema = table.schema().clone();
    found.into_iter().map(move |it| schema.field(it).name().clone())
}

/// When a frame was.
pub fn time_of(table: &dyn Table) -> Expr {
    coalesce(time_columns(table).map(ident).collect())
}

/// By time, and then by the numbers of the frames: the same order each time.
pub fn order(table: &dyn Table) -> Vec<ppt_query::datafusion::logical_expr::SortExpr> {
    use ppt_query::{Bounded, Number};
    let schema = table.schema();
    let standard = [Number::Ring, Number::Seqno].into_iter().filter_map(|number| {
        let is_it = |it: &usize| table.bounded(*it) == Some(Bounded::Number(number));
        (0..schema.fields().len()).find(is_it)
    });
    let named = standard.map(|it| ident(schema.field(it).name().as_str()).sort(true, false));
    std::iter::once(time_of(table).sort(true, false)).chain(named).collect()
}

/// A time as SQL has it.
pub fn at(ns: i64) -> Expr {
    let value = ppt_query::datafusion::common::ScalarValue::TimestampNanosecond(
        Some(ns),
        Some("UTC".into()),
    );
    Expr::Literal(value, None)
}

/// What the columns of the host, the process and the thread are called.
pub fn standard(table: &dyn Table) -> [String; 3] {
    use ppt_query::{Bounded, Number, Word};
    let schema = table.schema();
    let what =
        [Bounded::Word(Word::Host), Bounded::Number(Number::Pid), Bounded::Number(Number::Tid)];
    let names = ["host", "pid", "tid"];
    std::array::from_fn(|which| {
        let found = (0..schema.fields().len()).find(|&it| table.bounded(it) == Some(what[which]));
        found.map_or(names[which].to_owned(), |it| schema.field(it).name().clone())
    })
}
