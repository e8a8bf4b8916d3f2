//! Every number of every kind of frames, by run.

use std::collections::BTreeMap;

use ppt_models::{CompareError, Entry, Measured, Statistic};
use ppt_query::datafusion::functions::core::expr_fn::coalesce;
use ppt_query::datafusion::logical_expr::Expr;
use ppt_query::datafusion::prelude::ident;
use ppt_query::{Bounded, Engine, FrameTable, Number, QueryError, Word};

use crate::failure::Failure;
use crate::numbers;

/// Each number of `frame`, or of all kinds; `by` is a column that groups.
pub(super) async fn measured(
    engine: &Engine,
    frame: Option<&str>,
    by: Option<&str>,
    statistics: &[Statistic],
) -> Result<Vec<Entry>, Failure> {
    let mut entries = Vec::new();
    for table in engine.frames(frame)? {
        for field in fields(&table, by) {
            entries.extend(of_field(engine, &table, &field, by, statistics).await?);
        }
    }
    Ok(entries)
}

/// Columns of numbers that are no times.
fn fields(table: &FrameTable, by: Option<&str>) -> Vec<String> {
    let schema = table.table.schema();
    if by.is_some_and(|by| schema.index_of(by).is_err()) {
        return Vec::new();
    }
    let is_number = |(index, field): &(usize, &std::sync::Arc<_>)| {
        let field: &ppt_query::arrow::datatypes::Field = field;
        table.table.bounded(*index).is_none()
            && field.data_type().is_numeric()
            && by != Some(field.name())
    };
    let all = schema.fields().iter().enumerate().filter(is_number);
    all.map(|(_, field)| field.name().clone()).collect()
}

/// The column that is bounded so.
fn standard(table: &FrameTable, what: Bounded) -> Option<Expr> {
    let schema = table.table.schema();
    let found = (0..schema.fields().len()).find(|&it| table.table.bounded(it) == Some(what))?;
    Some(ident(schema.field(found).name().as_str()))
}

async fn of_field(
    engine: &Engine,
    table: &FrameTable,
    field: &str,
    by: Option<&str>,
    statistics: &[Statistic],
) -> Result<Vec<Entry>, Failure> {
    let word = |word| standard(table, Bounded::Word(word));
    let number = |number| standard(table, Bounded::Number(number));
    let run = word(Word::Capture).unwrap_or_else(|| ident("capture"));
    let mut columns = vec![run.alias("run"), ident(field).alias("value")];
    columns.extend(by.map(|by| ident(by).alias("group")));
    // The only run is cut in the order of time.
    let times: Vec<Expr> = [Number::Ts, Number::Drained].into_iter().filter_map(number).collect();
    let rows = engine.context().table(table.name.clone()).await.map_err(QueryError::from)?;
    let rows = rows.filter(ident(field).is_not_null()).map_err(QueryError::from)?;
    let rows = match times.is_empty() {
        true => rows,
        false => rows.sort(vec![coalesce(times).sort(true, false)]).map_err(QueryError::from)?,
    };
    let rows = rows.select(columns).map_err(QueryError::from)?;
    let read = numbers::numbers(rows).await?;
    let values = read.columns.iter().find(|it| it.0 == "value").map_or(&[][..], |it| &it.1[..]);
    let runs = read.labels("run").unwrap_or_default();
    let groups = by.map(|_| read.labels("group").unwrap_or_default());
    let mut all: BTreeMap<Option<&str>, BTreeMap<&str, Vec<f64>>> = BTreeMap::new();
    for (row, &value) in values.iter().enumerate() {
        let group = groups.as_ref().map(|it| &it[row][..]);
        all.entry(group).or_default().entry(&runs[row]).or_default().push(value);
    }
    let name = format!("{}.{}.{field}", table.buffer, table.frame);
    let mut entries = Vec::new();
    for (group, runs) in all {
        let runs: Vec<Vec<f64>> = runs.into_values().collect();
        let measured = match Measured::of(&runs, statistics) {
            Ok(measured) => measured,
            // Nothing can be said of so few.
            Err(CompareError::TooFew { .. } | CompareError::NoValues) => continue,
            Err(error) => return Err(Failure::compare(&name, &error)),
        };
        let by = by.zip(group).map(|(by, group)| (by.to_owned(), group.to_owned()));
        entries.push(Entry { field: name.clone(), by: by.into_iter().collect(), measured });
    }
    Ok(entries)
}
