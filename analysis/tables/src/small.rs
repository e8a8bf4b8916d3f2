//! Tables of a few rows, which are made in memory for each query.

use std::fmt::Debug;
use std::sync::Arc;

use arrow_array::types::Int32Type;
use arrow_array::{
    ArrayRef, BooleanArray, DictionaryArray, Int32Array, Int64Array, RecordBatch,
    RecordBatchOptions, StringArray, TimestampNanosecondArray,
};
use arrow_schema::{ArrowError, DataType, Field, Schema, SchemaRef};

use crate::builder::{timestamp, word_type};
use crate::error::TableError;
use crate::set::CaptureSet;
use crate::table::{Batches, CaptureTable, Planned, Scan, TableRequest};

/// A value of a row.
#[derive(Debug, Clone, PartialEq)]
pub(crate) enum Cell {
    Null,
    /// A text that many rows share; the column is a dictionary.
    Word(String),
    Text(String),
    Int(i32),
    Long(i64),
    /// ns since the epoch.
    Time(i64),
    Bool(bool),
}

impl Cell {
    /// A count, at most `i64::MAX`.
    pub fn count(count: u64) -> Cell {
        Cell::Long(i64::try_from(count).unwrap_or(i64::MAX))
    }

    /// A number of 32 bits; NULL if it does not fit.
    pub fn int(number: u32) -> Cell {
        i32::try_from(number).map_or(Cell::Null, Cell::Int)
    }

    /// ns since the epoch.
    pub fn time(ns: Option<i64>) -> Cell {
        ns.map_or(Cell::Null, Cell::Time)
    }

    /// A word; NULL if it is empty.
    pub fn word(word: &str) -> Cell {
        if word.is_empty() { Cell::Null } else { Cell::Word(word.to_owned()) }
    }

    /// Text; NULL if it is empty.
    pub fn text(text: &str) -> Cell {
        if text.is_empty() { Cell::Null } else { Cell::Text(text.to_owned()) }
    }
}

/// The type of a column, named after the [`Cell`]s that it holds.
#[derive(Debug, Clone, Copy)]
pub(crate) enum CellType {
    Word,
    Text,
    Int,
    Long,
    Time,
    Bool,
}

/// Builds a schema from names and types of columns.
pub(crate) fn schema<'a>(columns: impl IntoIterator<Item = (&'a str, CellType)>) -> SchemaRef {
    let field = |(name, cell_type): (&str, CellType)| {
        let data_type = match cell_type {
            CellType::Word => word_type(),
            CellType::Text => DataType::Utf8,
            CellType::Int => DataType::Int32,
            CellType::Long => DataType::Int64,
            CellType::Time => timestamp(),
            CellType::Bool => DataType::Boolean,
        };
        Field::new(name, data_type, true)
    };
    Arc::new(Schema::new(columns.into_iter().map(field).collect::<Vec<_>>()))
}

/// Makes the rows of a table.
pub(crate) type RowMaker = fn(&CaptureSet) -> Result<Vec<Vec<Cell>>, TableError>;

/// A table of a few rows.
#[derive(Debug)]
pub(crate) struct SmallTable {
    pub set: Arc<CaptureSet>,
    pub schema: SchemaRef,
    pub rows: RowMaker,
}

impl CaptureTable for SmallTable {
    fn schema(&self) -> &SchemaRef {
        &self.schema
    }

    fn plan(&self, request: &TableRequest<'_>) -> Result<Planned, TableError> {
        let schema = Arc::new(self.schema.project(request.columns)?);
        let columns = request.columns.to_vec();
        let scan = SmallScan { set: self.set.clone(), schema, rows: self.rows, columns };
        Ok(Planned::from(Arc::new(scan) as Arc<dyn Scan>))
    }
}

#[derive(Debug)]
struct SmallScan {
    set: Arc<CaptureSet>,
    schema: SchemaRef,
    rows: RowMaker,
    columns: Vec<usize>,
}

/// Builds a batch of the columns with the indices `columns`.
pub(crate) fn batch(
    schema: &SchemaRef,
    columns: &[usize],
    rows: &[Vec<Cell>],
) -> Result<RecordBatch, TableError> {
    let column = |(&column, field): (&usize, &Arc<Field>)| {
        array(field.data_type(), rows.iter().map(|row| &row[column]))
    };
    let columns = columns.iter().zip(schema.fields()).map(column);
    let options = RecordBatchOptions::new().with_row_count(Some(rows.len()));
    let columns = columns.collect::<Result<Vec<_>, _>>()?;
    Ok(RecordBatch::try_new_with_options(schema.clone(), columns, &options)?)
}

impl Scan for SmallScan {
    fn schema(&self) -> &SchemaRef {
        &self.schema
    }

    fn parts(&self) -> usize {
        1
    }

    fn read(&self, _: usize) -> Batches {
        let rows = (self.rows)(&self.set);
        let batch = rows.and_then(|rows| batch(&self.schema, &self.columns, &rows));
        Box::new(std::iter::once(batch))
    }

    fn rows(&self, _: Option<usize>) -> Option<usize> {
        None
    }

    fn explain_text(&self) -> String {
        "in memory".to_owned()
    }
}

fn array<'a>(
    data_type: &DataType,
    cells: impl Iterator<Item = &'a Cell>,
) -> Result<ArrayRef, ArrowError> {
    Ok(match data_type {
        DataType::Dictionary(..) => {
            let words = values(data_type, cells, |cell| match cell {
                Cell::Word(word) => Some(word.as_str()),
                _ => None,
            })?;
            Arc::new(words.into_iter().collect::<DictionaryArray<Int32Type>>())
        }
        DataType::Utf8 => {
            Arc::new(StringArray::from(values(data_type, cells, |cell| match cell {
                Cell::Text(text) => Some(text.as_str()),
                _ => None,
            })?))
        }
        DataType::Int32 => {
            Arc::new(Int32Array::from(values(data_type, cells, |cell| match cell {
                Cell::Int(number) => Some(*number),
                _ => None,
            })?))
        }
        DataType::Int64 => {
            Arc::new(Int64Array::from(values(data_type, cells, |cell| match cell {
                Cell::Long(number) => Some(*number),
                _ => None,
            })?))
        }
        DataType::Boolean => {
            Arc::new(BooleanArray::from(values(data_type, cells, |cell| match cell {
                Cell::Bool(value) => Some(*value),
                _ => None,
            })?))
        }
        _ => {
            let times = values(data_type, cells, |cell| match cell {
                Cell::Time(time) => Some(*time),
                _ => None,
            })?;
            Arc::new(TimestampNanosecondArray::from(times).with_data_type(timestamp()))
        }
    })
}

/// The values of cells, as `value` takes them out of cells of the type of the column; NULL for NULL.
fn values<'a, T>(
    data_type: &DataType,
    cells: impl Iterator<Item = &'a Cell>,
    value: impl Fn(&'a Cell) -> Option<T>,
) -> Result<Vec<Option<T>>, ArrowError> {
    let checked = |cell: &'a Cell| match (cell, value(cell)) {
        (Cell::Null, _) => Ok(None),
        (_, Some(value)) => Ok(Some(value)),
        (cell, None) => {
            Err(ArrowError::SchemaError(format!("{cell:?} in a column of type {data_type}")))
        }
    };
    cells.map(checked).collect()
}
