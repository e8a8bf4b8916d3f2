//! Rows of several batches as one column.

use arrow_array::{Array, ArrayRef, RecordBatch, UInt32Array, new_empty_array};
use arrow_schema::ArrowError;
use arrow_select::interleave::interleave;
use arrow_select::take::take;

/// A row: the number of its batch, and where it is there.
pub(crate) type BatchRow = (usize, usize);

/// `column` of `rows` of `batches`, in the order of `rows`; None is NULL.
pub(crate) fn gather(
    batches: &[RecordBatch],
    column: usize,
    rows: impl ExactSizeIterator<Item = Option<BatchRow>>,
) -> Result<ArrayRef, ArrowError> {
    let mut arrays: Vec<ArrayRef> =
        batches.iter().map(|batch| batch.column(column).clone()).collect();
    let null = (arrays.len(), 0);
    let rows: Vec<BatchRow> = rows.map(|row| row.unwrap_or(null)).collect();
    let Some(first) = arrays.first() else {
        return Err(ArrowError::InvalidArgumentError("no batch to gather from".to_owned()));
    };
    if rows.is_empty() {
        return Ok(new_empty_array(first.data_type()));
    }
    if rows.contains(&null) {
        // With the words of the others, if it is a dictionary.
        arrays.push(take(first, &UInt32Array::from(vec![None]), None)?);
    }
    let arrays: Vec<&dyn Array> = arrays.iter().map(AsRef::as_ref).collect();
    interleave(&arrays, &rows)
}
