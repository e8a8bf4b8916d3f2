//! The cells of a batch, by the numbers of their columns.

use datafusion::arrow::array::{Array, AsArray, RecordBatch, StringArray};
use datafusion::arrow::compute::cast;
use datafusion::arrow::datatypes::{DataType, Int64Type};

/// A cell of any text type.
pub(super) fn text(batch: &RecordBatch, at: usize, row: usize) -> Option<&str> {
    let column = batch.column(at);
    if column.is_null(row) {
        return None;
    }
    match column.data_type() {
        DataType::Utf8View => Some(column.as_string_view().value(row)),
        DataType::Utf8 => {
            column.as_any().downcast_ref::<StringArray>().map(|texts| texts.value(row))
        }
        _ => None,
    }
}

/// A cell of any type of numbers.
pub(super) fn long(batch: &RecordBatch, at: usize, row: usize) -> Option<i64> {
    let column = batch.column(at);
    let column = match column.data_type() {
        DataType::Int64 => column.clone(),
        _ => cast(column, &DataType::Int64).ok()?,
    };
    column.is_valid(row).then(|| column.as_primitive::<Int64Type>().value(row))
}
