//! Gathers rows of several batches into one column.

use arrow_array::{Array, ArrayRef, RecordBatch, UInt32Array, new_empty_array};
use arrow_schema::ArrowError;
use arrow_select::interleave::interleave;
use arrow_select::take::take;

/// Index of the batch, and index of the row in the batch: the form that `interleave` takes.
pub(crate) type BatchRow = (usize, usize);

/// The values of `column` in `rows`, in their order; NULL for None.
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
        // A NULL that has the dictionary of the first batch, if there is one.
        arrays.push(take(first, &UInt32Array::from(vec![None]), None)?);
    }
    let arrays: Vec<&dyn Array> = arrays.iter().map(AsRef::as_ref).collect();
    interleave(&arrays, &rows)
}
