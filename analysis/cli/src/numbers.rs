//! Answers of queries as numbers, for models and comparisons.

use std::collections::BTreeSet;

use futures::StreamExt;
use ppt_models::{Formula, RunTable, Runs};
use ppt_query::arrow::array::{Array, ArrayRef, AsArray};
use ppt_query::arrow::compute::cast;
use ppt_query::arrow::datatypes::{DataType, Float64Type, Int64Type};
use ppt_query::datafusion::execution::context::SQLOptions;
use ppt_query::datafusion::prelude::DataFrame;
use ppt_query::{Engine, QueryError, parsed, prepared};

use crate::error::AnswerError;
use crate::run;

/// Maximum number of rows; a larger model can use means.
const MAX_ROWS: usize = 10_000_000;

/// An answer, by columns.
pub(crate) struct NumberTable {
    /// Columns of numbers; NULL is NaN, times are ns.
    pub(crate) columns: Vec<(String, Vec<f64>)>,
    /// Row numbers of NULLs in each of these columns, ascending.
    nulls: Vec<Vec<usize>>,
    /// Other columns, as text.
    pub(crate) words: Vec<(String, Vec<String>)>,
}

/// The answer to `sql`, which is one SELECT.
pub(crate) async fn select(engine: &Engine, sql: &str) -> Result<NumberTable, AnswerError> {
    let refused = || {
        let why = "only a SELECT is answered here: use ppt sql for the rest".to_owned();
        Err(QueryError::NotHere(why).into())
    };
    let mut statements = parsed(&prepared(sql)?)?;
    let (Some(statement), None) = (statements.pop_front(), statements.pop_front()) else {
        return refused();
    };
    let planned = engine.logical_plan(statement).await?;
    let read_only =
        SQLOptions::new().with_allow_ddl(false).with_allow_dml(false).with_allow_statements(false);
    if read_only.verify_plan(&planned).is_err() {
        return refused();
    }
    let rows = engine.execute(planned).await?;
    numbers(rows).await
}

/// All rows of a query.
pub(crate) async fn numbers(rows: DataFrame) -> Result<NumberTable, AnswerError> {
    let schema = rows.schema().as_arrow().clone();
    let number = |ty: &DataType| {
        ty.is_numeric() || ty.is_temporal() || matches!(ty, DataType::Boolean | DataType::Null)
    };
    let mut all = NumberTable { columns: Vec::new(), nulls: Vec::new(), words: Vec::new() };
    for field in schema.fields() {
        if number(field.data_type()) {
            all.columns.push((field.name().clone(), Vec::new()));
        } else {
            all.words.push((field.name().clone(), Vec::new()));
        }
    }
    all.nulls.resize(all.columns.len(), Vec::new());
    let mut batches = rows.execute_stream().await.map_err(QueryError::from)?;
    let mut count = 0;
    while let Some(batch) = batches.next().await {
        let batch = batch.map_err(QueryError::from)?;
        count += batch.num_rows();
        if count > MAX_ROWS {
            let why =
                format!("the answer has more than {MAX_ROWS} rows: take means, or fewer of them");
            return Err(AnswerError::Usage(why));
        }
        let (mut columns, mut words) =
            (all.columns.iter_mut().zip(&mut all.nulls), all.words.iter_mut());
        for (field, column) in schema.fields().iter().zip(batch.columns()) {
            if number(field.data_type()) {
                let Some((values, nulls)) = columns.next() else { continue };
                let (first, is_null) = (values.1.len(), |row: &usize| column.is_null(*row));
                nulls.extend((0..column.len()).filter(is_null).map(|row| first + row));
                floats(column, &mut values.1)?;
            } else {
                words.next().map(|entry| texts(column, &mut entry.1)).transpose()?;
            }
        }
        run::pause().await;
    }
    Ok(all)
}

fn converted(column: &ArrayRef, ty: &DataType) -> Result<ArrayRef, AnswerError> {
    cast(column, ty).map_err(|error| QueryError::Query(error.into()).into())
}

fn floats(column: &ArrayRef, into: &mut Vec<f64>) -> Result<(), AnswerError> {
    if column.data_type().is_temporal() {
        let times = converted(column, &DataType::Int64)?;
        let times = times.as_primitive::<Int64Type>();
        into.extend(times.iter().map(|time| time.map_or(f64::NAN, |number| number as f64)));
        return Ok(());
    }
    let column = converted(column, &DataType::Float64)?;
    let column = column.as_primitive::<Float64Type>();
    into.extend(column.iter().map(|value| value.unwrap_or(f64::NAN)));
    Ok(())
}

fn texts(column: &ArrayRef, into: &mut Vec<String>) -> Result<(), AnswerError> {
    let column = converted(column, &DataType::Utf8)?;
    let column = column.as_string::<i32>();
    into.extend(column.iter().map(|text| text.unwrap_or("NULL").to_owned()));
    Ok(())
}

impl NumberTable {
    /// The values of a column as text, for the runs of rows.
    pub(crate) fn labels(&self, column: &str) -> Option<Vec<String>> {
        let words = self.words.iter().find(|entry| entry.0 == column).map(|entry| entry.1.clone());
        words.or_else(|| {
            let numbers = self.columns.iter().find(|entry| entry.0 == column)?;
            Some(numbers.1.iter().map(ToString::to_string).collect())
        })
    }

    /// A table for the formula, and the number of rows that are left out because a number that the
    /// formula needs is NULL. `run` is the column with the run of each row; the default is `capture`,
    /// if there is one.
    pub(crate) fn table(
        mut self,
        run: Option<&str>,
        formula: &Formula,
    ) -> Result<(RunTable, usize), AnswerError> {
        let labels = self.labels(run.unwrap_or("capture"));
        if let (Some(run), None) = (run, &labels) {
            return Err(AnswerError::Usage(format!("the query has no column `{run}`")));
        }
        let needed = formula.columns();
        let of_need =
            self.columns.iter().zip(&self.nulls).filter(|entry| needed.contains(&&entry.0.0[..]));
        let out: BTreeSet<usize> = of_need.flat_map(|entry| entry.1).copied().collect();
        // If no row is left, the fit reports it.
        let keep = |row: usize| !out.contains(&row);
        if !out.is_empty() {
            self.columns.iter_mut().for_each(|column| retain(&mut column.1, keep));
        }
        let table = RunTable::new(self.columns).map_err(AnswerError::table)?;
        let table = match labels {
            Some(mut labels) => {
                retain(&mut labels, keep);
                table.with_runs(Runs::new(labels)).map_err(AnswerError::table)?
            }
            None => table,
        };
        Ok((table, out.len()))
    }
}

/// Keeps the elements whose index satisfies `keep`.
fn retain<T>(values: &mut Vec<T>, keep: impl Fn(usize) -> bool) {
    let mut row = 0;
    values.retain(|_| {
        row += 1;
        keep(row - 1)
    });
}
