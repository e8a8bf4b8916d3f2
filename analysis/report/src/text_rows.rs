//! The rows of queries as text.

use ppt_query::arrow::array::{Array, RecordBatch};
use ppt_query::arrow::util::display::{ArrayFormatter, FormatOptions};
use ppt_query::{Engine, QueryError};

use crate::error::ReportError;

/// Rows of texts. NULL is an empty text.
pub type TextRows = Vec<Vec<String>>;

/// All rows of a query with a short answer.
pub async fn query(engine: &Engine, sql: &str) -> Result<TextRows, ReportError> {
    let batches = engine.sql(sql).await?.collect().await?;
    let mut rows = Vec::new();
    for batch in &batches {
        rows.extend(from_batch(batch)?);
    }
    Ok(rows)
}

/// The rows of a batch.
pub fn from_batch(batch: &RecordBatch) -> Result<TextRows, ReportError> {
    let options = FormatOptions::new().with_display_error(true);
    let columns = batch.columns().iter();
    let columns: Vec<_> = columns
        .map(|column| ArrayFormatter::try_new(column.as_ref(), &options))
        .collect::<Result<_, _>>()
        .map_err(|error| QueryError::Failed(error.to_string()))?;
    let cell = |row: usize, column: usize| {
        if batch.column(column).is_null(row) {
            String::new()
        } else {
            columns[column].value(row).to_string()
        }
    };
    Ok((0..batch.num_rows())
        .map(|row| (0..columns.len()).map(|column| cell(row, column)).collect())
        .collect())
}
