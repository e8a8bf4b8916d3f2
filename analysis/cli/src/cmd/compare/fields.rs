//! Every number of every kind of frames, by run.

use std::collections::BTreeMap;

use ppt_models::{CompareError, Entry, Measured, Statistic};
use ppt_query::datafusion::functions::core::expr_fn::coalesce;
use ppt_query::datafusion::logical_expr::Expr;
use ppt_query::datafusion::prelude::ident;
use ppt_query::{Bounded, Engine, FrameTable, Number, QueryError, Word};

use crate::failure::Failure;
use crate::numbers;

/// Fields that are read together: one pass over a capture, and memory for so many numbers a row.
const TOGETHER: usize = 16;

/// Each number of `frame`, or of all kinds; `by` is a column that groups.
pub(super) async fn measured(
    engine: &Engine,
    frame: Option<&str>,
    by: Option<&str>,
    statistics: &[Statistic],
) -> Result<Vec<Entry>, Failure> {
    let mut entries = Vec::new();
    for table in engine.frames(frame)? {
        for some in fields(&table, by).chunks(TOGETHER) {
            entries.extend(of_fields(engine, &table, some, by, statistics).await?);
        }
    }
    Ok(entries)
}

/// Columns of numbers that are no times, and no ends of intervals: those of CPU time are numbers, too.
fn fields(table: &FrameTable, by: Option<&str>) -> Vec<String> {
    let schema = table.table.schema();
    if by.is_some_and(|by| schema.index_of(by).is_err()) {
        return Vec::new();
    }
    let is_number = |(index, field): &(usize, &std::sync::Arc<_>)| {
        let field: &ppt_query::arrow::datatypes::Field = field;
        let role = field.metadata().get("role").map_or("", String::as_str);
        table.table.bounded(*index).is_none()
            && field.data_type().is_numeric()
            && !["at", "start", "end"].contains(&role)
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

async fn of_fields(
    engine: &Engine,
    table: &FrameTable,
    fields: &[String],
    by: Option<&str>,
    statistics: &[Statistic],
) -> Result<Vec<Entry>, Failure> {
    let word = |word| standard(table, Bounded::Word(word));
    let number = |number| standard(table, Bounded::Number(number));
    let run = word(Word::Capture).unwrap_or_else(|| ident("capture"));
    let mut columns = vec![run.alias("run")];
    columns.extend(by.map(|by| ident(by).alias("group")));
    let times: Vec<Expr> = [Number::Ts, Number::Drained].into_iter().filter_map(number).collect();
    let timed = !times.is_empty();
    columns.extend(timed.then(|| coalesce(times).alias("time")));
    let value = |(at, field): (usize, &String)| ident(field).alias(format!("value {at}"));
    columns.extend(fields.iter().enumerate().map(value));
    let rows = engine.context().table(table.name.clone()).await.map_err(QueryError::from)?;
    let rows = rows.select(columns).map_err(QueryError::from)?;
    let read = numbers::numbers(rows).await?;
    let column =
        |name: &str| read.columns.iter().find(|it| it.0 == name).map_or(&[][..], |it| &it.1[..]);
    let runs = read.labels("run").unwrap_or_default();
    let groups = by.map(|_| read.labels("group").unwrap_or_default());
    let mut rows: BTreeMap<Option<&str>, BTreeMap<&str, Vec<usize>>> = BTreeMap::new();
    for (row, run) in runs.iter().enumerate() {
        let group = groups.as_ref().map(|it| &it[row][..]);
        rows.entry(group).or_default().entry(run).or_default().push(row);
    }
    // The only run is cut in the order of time.
    let time = column("time");
    for only in rows.values_mut().filter(|it| timed && it.len() == 1) {
        let sort =
            |it: &mut Vec<usize>| it.sort_by(|&one, &other| time[one].total_cmp(&time[other]));
        only.values_mut().for_each(sort);
    }
    let mut entries = Vec::new();
    for (at, field) in fields.iter().enumerate() {
        let values = column(&format!("value {at}"));
        let name = format!("{}.{}.{field}", table.buffer, table.frame);
        for (group, runs) in &rows {
            let of_run = |rows: &Vec<usize>| rows.iter().map(|&row| values[row]).collect();
            let runs: Vec<Vec<f64>> = runs.values().map(of_run).collect();
            let measured = match Measured::of(&runs, statistics) {
                Ok(measured) => measured,
                // Nothing can be said of so few.
                Err(CompareError::TooFew { .. } | CompareError::NoValues) => continue,
                Err(error) => return Err(Failure::compare(&name, &error)),
            };
            let by = by.zip(*group).map(|(by, group)| (by.to_owned(), group.to_owned()));
            entries.push(Entry { field: name.clone(), by: by.into_iter().collect(), measured });
        }
    }
    Ok(entries)
}
