//! Tables of a few rows, made in memory when they are asked for.

use std::fmt::Debug;
use std::sync::Arc;

use arrow_array::builder::{
    Int32Builder, Int64Builder, StringBuilder, StringDictionaryBuilder, TimestampNanosecondBuilder,
};
use arrow_array::types::Int32Type;
use arrow_array::{ArrayRef, BooleanArray, RecordBatch};
use arrow_schema::{DataType, Field, Schema, SchemaRef};

use crate::builder::{timestamp, word_type};
use crate::error::TableError;
use crate::set::CaptureSet;
use crate::table::{Batches, CaptureTable, Planned, Scan, TableRequest};

/// A value of a row.
#[derive(Debug, Clone, PartialEq)]
pub(crate) enum Cell {
    Null,
    Word(String),
    Text(String),
    Int(Option<i32>),
    Long(i64),
    Time(Option<i64>),
    Bool(bool),
}

impl Cell {
    /// A count; what does not fit is the greatest that does.
    pub fn count(count: u64) -> Cell {
        Cell::Long(i64::try_from(count).unwrap_or(i64::MAX))
    }

    /// A number of 32 bits, NULL where it does not fit.
    pub fn int(number: u32) -> Cell {
        Cell::Int(i32::try_from(number).ok())
    }

    /// A word, NULL where it is empty.
    pub fn word(word: &str) -> Cell {
        if word.is_empty() { Cell::Null } else { Cell::Word(word.to_owned()) }
    }

    /// Text, NULL where it is empty.
    pub fn text(text: &str) -> Cell {
        if text.is_empty() { Cell::Null } else { Cell::Text(text.to_owned()) }
    }
}

/// What a column of few rows holds.
#[derive(Debug, Clone, Copy)]
pub(crate) enum CellType {
    Word,
    Text,
    Int,
    Long,
    Time,
    Bool,
}

/// Names and kinds of columns to a schema.
pub(crate) fn schema<'a>(columns: impl IntoIterator<Item = (&'a str, CellType)>) -> SchemaRef {
    let field = |(name, kind): (&str, CellType)| {
        let ty = match kind {
            CellType::Word => word_type(),
            CellType::Text => DataType::Utf8,
            CellType::Int => DataType::Int32,
            CellType::Long => DataType::Int64,
            CellType::Time => timestamp(),
            CellType::Bool => DataType::Boolean,
        };
        Field::new(name, ty, true)
    };
    Arc::new(Schema::new(columns.into_iter().map(field).collect::<Vec<_>>()))
}

/// Makes the rows of a table.
pub(crate) type RowMaker = fn(&CaptureSet) -> Result<Vec<Vec<Cell>>, TableError>;

/// A table of a few rows.
#[derive(Debug)]
pub(crate) struct Small {
    pub set: Arc<CaptureSet>,
    pub schema: SchemaRef,
    pub rows: RowMaker,
}

impl CaptureTable for Small {
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

/// These columns of rows.
pub(crate) fn batch(
    schema: &SchemaRef,
    columns: &[usize],
    rows: &[Vec<Cell>],
) -> Result<RecordBatch, TableError> {
    let column = |(&column, field): (&usize, &Arc<Field>)| {
        array(field.data_type(), rows.iter().map(|row| &row[column]))
    };
    let columns = columns.iter().zip(schema.fields()).map(column);
    let options = arrow_array::RecordBatchOptions::new().with_row_count(Some(rows.len()));
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

fn array<'a>(ty: &DataType, cells: impl Iterator<Item = &'a Cell>) -> Result<ArrayRef, TableError> {
    Ok(match ty {
        DataType::Dictionary(..) => {
            let mut builder = StringDictionaryBuilder::<Int32Type>::new();
            for cell in cells {
                match cell {
                    Cell::Word(word) => _ = builder.append(word)?,
                    _ => builder.append_null(),
                }
            }
            Arc::new(builder.finish())
        }
        DataType::Utf8 => {
            let mut builder = StringBuilder::new();
            cells.for_each(|cell| match cell {
                Cell::Text(text) => builder.append_value(text),
                _ => builder.append_null(),
            });
            Arc::new(builder.finish())
        }
        DataType::Int32 => {
            let mut builder = Int32Builder::new();
            cells.for_each(|cell| match cell {
                Cell::Int(number) => builder.append_option(*number),
                _ => builder.append_null(),
            });
            Arc::new(builder.finish())
        }
        DataType::Int64 => {
            let mut builder = Int64Builder::new();
            cells.for_each(|cell| match cell {
                Cell::Long(number) => builder.append_value(*number),
                _ => builder.append_null(),
            });
            Arc::new(builder.finish())
        }
        DataType::Boolean => {
            let truth = |cell: &Cell| match cell {
                Cell::Bool(truth) => Some(*truth),
                _ => None,
            };
            Arc::new(cells.map(truth).collect::<BooleanArray>())
        }
        _ => {
            let mut builder = TimestampNanosecondBuilder::new().with_data_type(timestamp());
            cells.for_each(|cell| match cell {
                Cell::Time(time) => builder.append_option(*time),
                _ => builder.append_null(),
            });
            Arc::new(builder.finish())
        }
    })
}
