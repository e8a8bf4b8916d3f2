//! Builds Arrow columns.

mod dictionary;
mod frame_values;
mod types;

use std::any::Any;
use std::collections::HashMap;
use std::sync::Arc;

use arrow_array::types::{
    Float32Type, Float64Type, Int8Type, Int16Type, Int32Type, Int64Type, TimestampNanosecondType,
    UInt8Type, UInt16Type, UInt32Type, UInt64Type,
};
use arrow_array::{
    Array, ArrayRef, ArrowPrimitiveType, BooleanArray, DictionaryArray, FixedSizeBinaryArray,
    PrimitiveArray, StringArray,
};
use arrow_buffer::{
    BooleanBuffer, Buffer, NullBuffer, NullBufferBuilder, OffsetBuffer, ScalarBuffer,
};
use arrow_schema::{ArrowError, DataType};
use ppt_capture::columns::Reader;
use ppt_symbols::Namer;

pub(crate) use self::dictionary::{Dictionary, EnumKeys};
pub(crate) use self::frame_values::FrameValues;
pub(crate) use self::types::{data_type, timestamp, wider, word_type};
use crate::rows::RowsInChunk;

/// Builds a column.
#[derive(Debug)]
pub(crate) struct Builder {
    ty: DataType,
    values: BuilderValues,
    nulls: NullBufferBuilder,
}

#[derive(Debug)]
enum BuilderValues {
    I8(Vec<i8>),
    I16(Vec<i16>),
    I32(Vec<i32>),
    I64(Vec<i64>),
    U8(Vec<u8>),
    U16(Vec<u16>),
    U32(Vec<u32>),
    U64(Vec<u64>),
    F32(Vec<f32>),
    F64(Vec<f64>),
    Bool(Vec<bool>),
    Text(Vec<i32>, Vec<u8>),
    Fixed(usize, Vec<u8>),
    Words(DictionaryWords),
}

#[derive(Debug)]
struct DictionaryWords {
    keys: Vec<i32>,
    /// The words that all batches share.
    words: Arc<StringArray>,
    /// Values of an enum without a name; their keys follow those of `words`.
    numbers: Vec<i128>,
    number_keys: HashMap<i128, i32>,
    /// Names of addresses; their keys follow those of `words`. A column has `numbers` or `names`, not both.
    names: Vec<Arc<str>>,
    name_keys: HashMap<Arc<str>, i32>,
}

impl DictionaryWords {
    fn number(&mut self, value: i128) -> i32 {
        let next = (self.words.len() + self.numbers.len()) as i32;
        *self.number_keys.entry(value).or_insert_with(|| {
            self.numbers.push(value);
            next
        })
    }

    fn name(&mut self, name: &Arc<str>) -> i32 {
        if let Some(&key) = self.name_keys.get(name) {
            return key;
        }
        let key = (self.words.len() + self.names.len()) as i32;
        self.names.push(name.clone());
        self.name_keys.insert(name.clone(), key);
        key
    }
}

impl Builder {
    /// A builder of a column of this type; `words` is the dictionary of a column of words.
    pub fn new(ty: &DataType, words: Option<&Arc<StringArray>>) -> Builder {
        let values = match ty {
            DataType::Int8 => BuilderValues::I8(Vec::new()),
            DataType::Int16 => BuilderValues::I16(Vec::new()),
            DataType::Int32 => BuilderValues::I32(Vec::new()),
            DataType::UInt8 => BuilderValues::U8(Vec::new()),
            DataType::UInt16 => BuilderValues::U16(Vec::new()),
            DataType::UInt32 => BuilderValues::U32(Vec::new()),
            DataType::UInt64 => BuilderValues::U64(Vec::new()),
            DataType::Float32 => BuilderValues::F32(Vec::new()),
            DataType::Float64 => BuilderValues::F64(Vec::new()),
            DataType::Boolean => BuilderValues::Bool(Vec::new()),
            DataType::Utf8 => BuilderValues::Text(vec![0], Vec::new()),
            DataType::FixedSizeBinary(width) => BuilderValues::Fixed(*width as usize, Vec::new()),
            DataType::Dictionary(..) => BuilderValues::Words(DictionaryWords {
                keys: Vec::new(),
                words: words.cloned().unwrap_or_else(|| Dictionary::default().array()),
                numbers: Vec::new(),
                number_keys: HashMap::new(),
                names: Vec::new(),
                name_keys: HashMap::new(),
            }),
            _ => BuilderValues::I64(Vec::new()), // and timestamps
        };
        Builder { ty: ty.clone(), values, nulls: NullBufferBuilder::new(0) }
    }

    /// Appends the value of `read` for each row.
    #[inline(always)]
    pub fn each<T: Copy + Default + Any>(
        &mut self,
        rows: RowsInChunk<'_>,
        mut read: impl FnMut(&[u8]) -> Option<T>,
    ) {
        let Builder { values, nulls, .. } = self;
        let Some(values) = values.of_type::<T>() else { return self.nulls(rows.len()) };
        values.reserve(rows.len());
        let mut known = 0;
        rows.each(|frame| {
            let value = read(frame);
            match value {
                Some(_) => known += 1,
                None => {
                    nulls.append_n_non_nulls(std::mem::take(&mut known));
                    nulls.append_null();
                }
            }
            values.push(value.unwrap_or_default());
        });
        nulls.append_n_non_nulls(known);
    }

    /// Appends the names of the addresses that `reader` reads; NULL for no address.
    pub fn names(&mut self, reader: &Reader, rows: RowsInChunk<'_>, namer: &mut Namer) {
        let Builder { values: BuilderValues::Words(words), nulls, .. } = self else {
            return self.nulls(rows.len());
        };
        // Few addresses occur, each many times.
        let mut known: HashMap<u64, i32> = HashMap::new();
        rows.each(|frame| {
            let address = reader.address(frame).filter(|&address| address != 0);
            let Some(address) = address else {
                words.keys.push(0);
                nulls.append_null();
                return;
            };
            let key = *known.entry(address).or_insert_with(|| {
                let name = namer.name(address).expect("the address is not 0");
                words.name(name)
            });
            words.keys.push(key);
            nulls.append_non_null();
        });
    }

    /// Whether its values have the type `T`.
    pub fn has<T: Any>(&mut self) -> bool {
        self.values.of_type::<T>().is_some()
    }

    /// Appends the same value `count` times. The value of a column of words is a key.
    pub fn repeat<T: Copy + Default + Any>(&mut self, value: Option<T>, count: usize) {
        let (Some(value), Some(values)) = (value, self.values.of_type::<T>()) else {
            return self.nulls(count);
        };
        values.resize(values.len() + count, value);
        self.nulls.append_n_non_nulls(count);
    }

    /// Appends these values.
    pub fn extend<T: Copy + Default + Any>(&mut self, all: impl ExactSizeIterator<Item = T>) {
        let count = all.len();
        let Some(values) = self.values.of_type::<T>() else { return self.nulls(count) };
        values.extend(all);
        self.nulls.append_n_non_nulls(count);
    }

    /// Appends the bytes that `write` writes for each row.
    pub fn fixed(&mut self, rows: RowsInChunk<'_>, mut write: impl FnMut(&[u8], &mut [u8])) {
        let BuilderValues::Fixed(width, bytes) = &mut self.values else {
            return self.nulls(rows.len());
        };
        rows.each(|frame| {
            let at = bytes.len();
            bytes.resize(at + *width, 0);
            write(frame, &mut bytes[at..]);
        });
        self.nulls.append_n_non_nulls(rows.len());
    }

    /// Appends `count` NULLs.
    pub fn nulls(&mut self, count: usize) {
        self.nulls.append_n_nulls(count);
        match &mut self.values {
            BuilderValues::I8(values) => values.resize(values.len() + count, 0),
            BuilderValues::I16(values) => values.resize(values.len() + count, 0),
            BuilderValues::I32(values) => values.resize(values.len() + count, 0),
            BuilderValues::I64(values) => values.resize(values.len() + count, 0),
            BuilderValues::U8(values) => values.resize(values.len() + count, 0),
            BuilderValues::U16(values) => values.resize(values.len() + count, 0),
            BuilderValues::U32(values) => values.resize(values.len() + count, 0),
            BuilderValues::U64(values) => values.resize(values.len() + count, 0),
            BuilderValues::F32(values) => values.resize(values.len() + count, 0.0),
            BuilderValues::F64(values) => values.resize(values.len() + count, 0.0),
            BuilderValues::Bool(values) => values.resize(values.len() + count, false),
            BuilderValues::Text(ends, text) => ends.resize(ends.len() + count, text.len() as i32),
            BuilderValues::Fixed(width, bytes) => bytes.resize(bytes.len() + *width * count, 0),
            BuilderValues::Words(words) => words.keys.resize(words.keys.len() + count, 0),
        }
    }

    /// Appends the text that `read` returns for each row.
    pub fn texts<'a>(
        &mut self,
        rows: RowsInChunk<'a>,
        read: impl Fn(&'a [u8]) -> Option<&'a [u8]>,
    ) {
        rows.each(|frame| self.text(read(frame)));
    }

    /// Appends a text.
    pub fn text(&mut self, text: Option<&[u8]>) {
        let BuilderValues::Text(ends, bytes) = &mut self.values else { return };
        match text {
            None => self.nulls.append_null(),
            Some(text) => {
                self.nulls.append_non_null();
                match std::str::from_utf8(text) {
                    Ok(text) => bytes.extend_from_slice(text.as_bytes()),
                    Err(_) => bytes.extend_from_slice(String::from_utf8_lossy(text).as_bytes()),
                }
            }
        }
        ends.push(bytes.len() as i32);
    }

    /// Approximate size of the column's text so far, in bytes. Text of a batch must stay below 2 GiB.
    pub fn bytes(&self) -> usize {
        match &self.values {
            BuilderValues::Text(_, bytes) | BuilderValues::Fixed(_, bytes) => bytes.len(),
            _ => 0,
        }
    }

    /// Returns the column and empties the builder.
    pub fn finish(&mut self) -> Result<ArrayRef, ArrowError> {
        fn plain<T: ArrowPrimitiveType>(
            values: &mut Vec<T::Native>,
            nulls: Option<NullBuffer>,
        ) -> Result<PrimitiveArray<T>, ArrowError> {
            PrimitiveArray::try_new(ScalarBuffer::from(std::mem::take(values)), nulls)
        }
        let nulls = self.nulls.finish();
        let is_time = matches!(self.ty, DataType::Timestamp(..));
        Ok(match &mut self.values {
            BuilderValues::I8(values) => Arc::new(plain::<Int8Type>(values, nulls)?),
            BuilderValues::I16(values) => Arc::new(plain::<Int16Type>(values, nulls)?),
            BuilderValues::I32(values) => Arc::new(plain::<Int32Type>(values, nulls)?),
            BuilderValues::I64(values) if is_time => {
                let times = plain::<TimestampNanosecondType>(values, nulls)?;
                Arc::new(times.with_data_type(self.ty.clone()))
            }
            BuilderValues::I64(values) => Arc::new(plain::<Int64Type>(values, nulls)?),
            BuilderValues::U8(values) => Arc::new(plain::<UInt8Type>(values, nulls)?),
            BuilderValues::U16(values) => Arc::new(plain::<UInt16Type>(values, nulls)?),
            BuilderValues::U32(values) => Arc::new(plain::<UInt32Type>(values, nulls)?),
            BuilderValues::U64(values) => Arc::new(plain::<UInt64Type>(values, nulls)?),
            BuilderValues::F32(values) => Arc::new(plain::<Float32Type>(values, nulls)?),
            BuilderValues::F64(values) => Arc::new(plain::<Float64Type>(values, nulls)?),
            BuilderValues::Bool(values) => {
                Arc::new(BooleanArray::new(BooleanBuffer::from(std::mem::take(values)), nulls))
            }
            BuilderValues::Text(ends, bytes) => {
                let ends = OffsetBuffer::new(std::mem::replace(ends, vec![0]).into());
                let bytes = Buffer::from_vec(std::mem::take(bytes));
                Arc::new(StringArray::try_new(ends, bytes, nulls)?)
            }
            BuilderValues::Fixed(width, bytes) => {
                let bytes = Buffer::from_vec(std::mem::take(bytes));
                Arc::new(FixedSizeBinaryArray::try_new(*width as i32, bytes, nulls)?)
            }
            BuilderValues::Words(words) => {
                let keys = plain::<Int32Type>(&mut words.keys, nulls)?;
                let all = if words.numbers.is_empty() && words.names.is_empty() {
                    words.words.clone()
                } else {
                    let known = words.words.iter().flatten().map(str::to_owned);
                    let numbers = words.numbers.iter().map(i128::to_string);
                    let names = words.names.iter().map(|name| name.to_string());
                    Arc::new(StringArray::from_iter_values(known.chain(numbers).chain(names)))
                };
                words.numbers.clear();
                words.number_keys.clear();
                words.names.clear();
                words.name_keys.clear();
                Arc::new(DictionaryArray::try_new(keys, all)?)
            }
        })
    }
}

impl BuilderValues {
    /// The values, if they have the type `T`. Keys of words are `i32`.
    fn of_type<T: Any>(&mut self) -> Option<&mut Vec<T>> {
        let any: &mut dyn Any = match self {
            BuilderValues::I8(values) => values,
            BuilderValues::I16(values) => values,
            BuilderValues::I32(values) => values,
            BuilderValues::I64(values) => values,
            BuilderValues::U8(values) => values,
            BuilderValues::U16(values) => values,
            BuilderValues::U32(values) => values,
            BuilderValues::U64(values) => values,
            BuilderValues::F32(values) => values,
            BuilderValues::F64(values) => values,
            BuilderValues::Bool(values) => values,
            BuilderValues::Words(words) => &mut words.keys,
            BuilderValues::Text(..) | BuilderValues::Fixed(..) => return None,
        };
        any.downcast_mut()
    }
}
