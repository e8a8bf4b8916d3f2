//! Columns of text, of any type.

use datafusion::arrow::array::{Array, AsArray, RecordBatch, StringArray};
use datafusion::arrow::compute::cast;
use datafusion::arrow::datatypes::{DataType, Int32Type};
use datafusion::error::Result;

/// A column of text. Each text has a number within the batch.
pub(crate) struct Texts {
    keys: Vec<u32>,
    words: StringArray,
}

impl Texts {
    pub fn new(batch: &RecordBatch, column: usize) -> Result<Texts> {
        let column = batch.column(column);
        if let Some(dictionary) = column.as_dictionary_opt::<Int32Type>() {
            let words = cast(dictionary.values(), &DataType::Utf8)?.as_string::<i32>().clone();
            let keys = dictionary.keys();
            let key =
                |row: usize| if keys.is_valid(row) { keys.value(row) as u32 } else { u32::MAX };
            return Ok(Texts { keys: (0..keys.len()).map(key).collect(), words });
        }
        let words = cast(column, &DataType::Utf8)?.as_string::<i32>().clone();
        Ok(Texts { keys: (0..words.len() as u32).collect(), words })
    }

    /// The number of the text of a row.
    pub fn key(&self, row: usize) -> usize {
        self.keys[row] as usize
    }

    /// The text of a row; NULL is empty.
    pub fn get(&self, row: usize) -> &str {
        self.text_of(self.key(row))
    }

    /// The text with this number.
    pub fn text_of(&self, key: usize) -> &str {
        if key < self.words.len() && self.words.is_valid(key) { self.words.value(key) } else { "" }
    }
}
