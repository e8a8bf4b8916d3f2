//! Rows of a query, as text and numbers.

use datafusion::arrow::array::{Array, AsArray, Int64Array, RecordBatch, StringArray};
use datafusion::arrow::compute::cast;
use datafusion::arrow::datatypes::{DataType, Int64Type};

use crate::error::QueryError;

/// The columns of a batch, each as text or as numbers.
pub(super) struct Columns {
    count: usize,
    columns: Vec<WhatifColumn>,
}

enum WhatifColumn {
    Text(StringArray),
    Long(Int64Array),
}

impl Columns {
    pub fn new(batch: &RecordBatch) -> Result<Columns, QueryError> {
        let columns = batch.columns().iter().map(|column| {
            let is_text = matches!(
                column.data_type(),
                DataType::Utf8 | DataType::Utf8View | DataType::Dictionary(..)
            );
            let to = if is_text { DataType::Utf8 } else { DataType::Int64 };
            let column = cast(column, &to).map_err(crate::error::external)?;
            Ok(if is_text {
                WhatifColumn::Text(column.as_string::<i32>().clone())
            } else {
                WhatifColumn::Long(column.as_primitive::<Int64Type>().clone())
            })
        });
        let columns = columns.collect::<Result<_, QueryError>>()?;
        Ok(Columns { count: batch.num_rows(), columns })
    }

    pub fn rows(&self) -> impl Iterator<Item = RowView<'_>> {
        (0..self.count).map(|row| RowView { columns: self, row })
    }
}

/// A row. Columns are numbered in the order of the query.
#[derive(Clone, Copy)]
pub(super) struct RowView<'a> {
    columns: &'a Columns,
    row: usize,
}

impl<'a> RowView<'a> {
    pub fn text(&self, at: usize) -> Option<&'a str> {
        match &self.columns.columns[at] {
            WhatifColumn::Text(array) if array.is_valid(self.row) => Some(array.value(self.row)),
            _ => None,
        }
    }

    pub fn long(&self, at: usize) -> Option<i64> {
        match &self.columns.columns[at] {
            WhatifColumn::Long(array) if array.is_valid(self.row) => Some(array.value(self.row)),
            _ => None,
        }
    }
}
