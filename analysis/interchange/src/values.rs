//! Values of columns of any type.

use std::io;

use arrow_array::cast::AsArray;
use arrow_array::types::{
    Float32Type, Float64Type, Int8Type, Int16Type, Int32Type, Int64Type, TimestampNanosecondType,
    UInt8Type, UInt16Type, UInt32Type, UInt64Type,
};
use arrow_array::{
    Array, ArrayRef, BooleanArray, DictionaryArray, FixedSizeBinaryArray, PrimitiveArray,
    StringArray,
};
use arrow_schema::{DataType, TimeUnit};

/// A value.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) enum FieldValue<'a> {
    Int(i64),
    Uint(u64),
    Float(f64),
    Bool(bool),
    /// Text of a dictionary.
    Word(&'a str),
    Text(&'a str),
    Bytes(&'a [u8]),
}

/// A dictionary column of text.
#[derive(Debug, Clone)]
pub(crate) struct WordColumn {
    pub keys: PrimitiveArray<Int32Type>,
    words: StringArray,
}

impl WordColumn {
    pub fn from_column(column: &ArrayRef) -> io::Result<WordColumn> {
        let words: &DictionaryArray<Int32Type> = column
            .as_any_dictionary_opt()
            .and_then(|_| column.as_any().downcast_ref())
            .ok_or_else(|| unexpected(column.data_type()))?;
        let list = words.values().as_string_opt().ok_or_else(|| unexpected(column.data_type()))?;
        Ok(WordColumn { keys: words.keys().clone(), words: list.clone() })
    }

    pub fn get(&self, row: usize) -> Option<&str> {
        let key = self.key(row)? as usize;
        self.words.is_valid(key).then(|| self.words.value(key))
    }

    /// Whether both columns share one dictionary, so that equal keys are equal words.
    pub fn is_of_list(&self, other: &WordColumn) -> bool {
        let place = |words: &StringArray| (words.len(), words.value_offsets().as_ptr());
        place(&self.words) == place(&other.words)
            && self.words.values().as_ptr() == other.words.values().as_ptr()
    }

    /// The key of a row, equal for equal words of one batch.
    pub fn key(&self, row: usize) -> Option<i32> {
        self.keys.is_valid(row).then(|| self.keys.value(row))
    }
}

macro_rules! columns {
    ($($case:ident $arrow:ty => $value:ident as $as:ty),*) => {
        /// A column.
        #[derive(Debug, Clone)]
        pub(crate) enum Column {
            $($case(PrimitiveArray<$arrow>),)*
            Bool(BooleanArray),
            Words(WordColumn),
            Text(StringArray),
            Bytes(FixedSizeBinaryArray),
        }

        impl Column {
            /// The value in a row; None if NULL.
            #[inline(always)]
            pub fn get(&self, row: usize) -> Option<FieldValue<'_>> {
                Some(match self {
                    $(Column::$case(all) => {
                        all.is_valid(row).then(|| FieldValue::$value(all.value(row) as $as))?
                    })*
                    Column::Bool(all) => all.is_valid(row).then(|| FieldValue::Bool(all.value(row)))?,
                    Column::Words(all) => FieldValue::Word(all.get(row)?),
                    Column::Text(all) => all.is_valid(row).then(|| FieldValue::Text(all.value(row)))?,
                    Column::Bytes(all) => all.is_valid(row).then(|| FieldValue::Bytes(all.value(row)))?,
                })
            }
        }
    };
}

columns! {
    I8 Int8Type => Int as i64,
    I16 Int16Type => Int as i64,
    I32 Int32Type => Int as i64,
    I64 Int64Type => Int as i64,
    Time TimestampNanosecondType => Int as i64,
    U8 UInt8Type => Uint as u64,
    U16 UInt16Type => Uint as u64,
    U32 UInt32Type => Uint as u64,
    U64 UInt64Type => Uint as u64,
    F32 Float32Type => Float as f64,
    F64 Float64Type => Float as f64
}

impl Column {
    pub fn from_column(column: &ArrayRef) -> io::Result<Column> {
        Ok(match column.data_type() {
            DataType::Int8 => Column::I8(column.as_primitive().clone()),
            DataType::Int16 => Column::I16(column.as_primitive().clone()),
            DataType::Int32 => Column::I32(column.as_primitive().clone()),
            DataType::Int64 => Column::I64(column.as_primitive().clone()),
            DataType::Timestamp(TimeUnit::Nanosecond, _) => {
                Column::Time(column.as_primitive().clone())
            }
            DataType::UInt8 => Column::U8(column.as_primitive().clone()),
            DataType::UInt16 => Column::U16(column.as_primitive().clone()),
            DataType::UInt32 => Column::U32(column.as_primitive().clone()),
            DataType::UInt64 => Column::U64(column.as_primitive().clone()),
            DataType::Float32 => Column::F32(column.as_primitive().clone()),
            DataType::Float64 => Column::F64(column.as_primitive().clone()),
            DataType::Boolean => Column::Bool(column.as_boolean().clone()),
            DataType::Dictionary(..) => Column::Words(WordColumn::from_column(column)?),
            DataType::Utf8 => Column::Text(column.as_string().clone()),
            DataType::FixedSizeBinary(_) => Column::Bytes(column.as_fixed_size_binary().clone()),
            other => return Err(unexpected(other)),
        })
    }
}

pub(crate) fn unexpected(ty: &DataType) -> io::Error {
    io::Error::new(io::ErrorKind::InvalidData, format!("no trace has columns of type {ty}"))
}
