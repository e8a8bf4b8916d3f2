//! The results of SQL as rows of text.

use futures::TryStreamExt;
use ppt_query::arrow::array::{Array, ArrayRef, AsArray, RecordBatch};
use ppt_query::arrow::datatypes::{DataType, Int64Type};
use ppt_query::arrow::error::ArrowError;
use ppt_query::arrow::util::display::{ArrayFormatter, FormatOptions};
use ppt_query::{Engine, QueryError};
use ppt_text::{escaped, shortened};
use serde::Serialize;

use crate::error::HttpRefusal;

/// The most rows of a result.
pub(crate) const MAX_ROWS: usize = 500;
/// The most characters of a cell.
const MAX_CHARACTERS: usize = 2000;

/// The result of a query.
#[derive(Debug, Serialize)]
pub(crate) struct QueryTable {
    pub columns: Vec<QueryColumn>,
    /// The text of each cell. None for NULL.
    pub rows: Vec<Vec<Option<String>>>,
    /// Whether the query has more rows.
    pub truncated: bool,
}

/// A column of a result.
#[derive(Debug, Serialize)]
pub(crate) struct QueryColumn {
    pub name: String,
    /// `number`, `text`, or `time` in nanoseconds since the epoch.
    #[serde(rename = "type")]
    pub content: &'static str,
}

/// Runs a statement, and reads at most `rows` rows.
pub(crate) async fn ask(
    engine: &Engine,
    statement: &str,
    rows: usize,
) -> Result<QueryTable, HttpRefusal> {
    let frame = engine.sql(statement).await?;
    let limited = frame.limit(0, Some(rows + 1)).map_err(QueryError::from)?;
    let columns: Vec<QueryColumn> =
        limited.schema().fields().iter().map(|field| column(field)).collect();
    let mut batches = limited.execute_stream().await.map_err(QueryError::from)?;
    let mut table = QueryTable { columns, rows: Vec::new(), truncated: false };
    while let Some(batch) = batches.try_next().await.map_err(QueryError::from)? {
        table.rows.extend(texts(&batch).map_err(|error| HttpRefusal::bad(error.to_string()))?);
    }
    table.truncated = table.rows.len() > rows;
    table.rows.truncate(rows);
    Ok(table)
}

fn column(field: &ppt_query::arrow::datatypes::Field) -> QueryColumn {
    let content = match field.data_type() {
        DataType::Timestamp(..) => "time",
        other if other.is_numeric() => "number",
        _ => "text",
    };
    QueryColumn { name: escaped(field.name()), content }
}

fn texts(batch: &RecordBatch) -> Result<Vec<Vec<Option<String>>>, ArrowError> {
    let columns: Vec<Vec<Option<String>>> =
        batch.columns().iter().map(column_texts).collect::<Result<_, _>>()?;
    let row = |number: usize| columns.iter().map(|column| column[number].clone()).collect();
    Ok((0..batch.num_rows()).map(row).collect())
}

fn column_texts(column: &ArrayRef) -> Result<Vec<Option<String>>, ArrowError> {
    // Timestamps of the tables are whole nanoseconds.
    let numbers = match column.data_type() {
        DataType::Timestamp(..) => Some(ppt_query::arrow::compute::cast(column, &DataType::Int64)?),
        _ => None,
    };
    if let Some(numbers) = numbers {
        let numbers = numbers.as_primitive::<Int64Type>();
        return Ok(numbers.iter().map(|ns| ns.map(|ns| ns.to_string())).collect());
    }
    let options = FormatOptions::default();
    let formatter = ArrayFormatter::try_new(column, &options)?;
    let text = |number: usize| {
        let text = || shortened(&formatter.value(number).to_string(), MAX_CHARACTERS);
        column.is_valid(number).then(text)
    };
    Ok((0..column.len()).map(text).collect())
}
