//! Builds Arrow columns from the fields of frames.

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
use arrow_schema::{ArrowError, DataType, TimeUnit};
use ppt_capture::Stamps;
use ppt_capture::columns::{
    Access, EnumNames, Fixed, FixedText, Integer, Reader, Time, TimeScale, TimevalHalf, Visitor,
};
use ppt_capture::frame_dsl::schema::{Clock, Int};
use ppt_capture::frame_dsl::{ColumnType, Measure, TimeType};
use ppt_symbols::Namer;

use crate::rows::RowsInChunk;

/// The type of times: TIMESTAMP in ns, UTC.
pub(crate) fn timestamp() -> DataType {
    DataType::Timestamp(TimeUnit::Nanosecond, Some("UTC".into()))
}

/// The type of words: texts that many rows share.
pub(crate) fn word_type() -> DataType {
    DataType::Dictionary(Box::new(DataType::Int32), Box::new(DataType::Utf8))
}

/// The Arrow type of a column.
pub(crate) fn data_type(ty: ColumnType) -> DataType {
    match ty {
        ColumnType::Int(int) | ColumnType::Length { of: Measure::Int(int), .. } => integer(int),
        ColumnType::Addr => DataType::UInt64,
        ColumnType::F32 | ColumnType::Length { of: Measure::F32, .. } => DataType::Float32,
        ColumnType::F64 | ColumnType::Length { of: Measure::F64, .. } => DataType::Float64,
        ColumnType::Bool => DataType::Boolean,
        ColumnType::Duration
        | ColumnType::Length { of: Measure::Duration | Measure::Time(_), .. }
        | ColumnType::TimevalSeconds
        | ColumnType::TimevalMicroseconds => DataType::Int64,
        ColumnType::Time(time) => time_type(time),
        ColumnType::Enum { .. } => word_type(),
        ColumnType::Text { .. } => DataType::Utf8,
        ColumnType::Bytes { len } => DataType::FixedSizeBinary(len as i32), // at most a frame
    }
}

/// The narrowest type that holds all values of two types; None: no type does. Captures of several
/// versions may have different types in one column.
pub(crate) fn wider(one: &DataType, other: &DataType) -> Option<DataType> {
    use DataType::{Float32, Float64, Int8, Int16, Int32, Int64, UInt8, UInt16, UInt32, UInt64};
    let signed = [Int8, Int16, Int32, Int64];
    let unsigned = [UInt8, UInt16, UInt32, UInt64];
    let place = |all: &[DataType; 4], ty: &DataType| all.iter().position(|known| known == ty);
    match (one, other) {
        _ if one == other => Some(one.clone()),
        (Float32, Float64) | (Float64, Float32) => Some(Float64),
        _ => {
            let both = |all: &[DataType; 4]| Some(place(all, one)?.max(place(all, other)?));
            if let Some(place) = both(&signed) {
                return Some(signed[place].clone());
            }
            if let Some(place) = both(&unsigned) {
                return Some(unsigned[place].clone());
            }
            let (with_sign, without) = match place(&signed, one) {
                Some(with_sign) => (with_sign, place(&unsigned, other)?),
                None => (place(&signed, other)?, place(&unsigned, one)?),
            };
            signed.get(with_sign.max(without + 1)).cloned()
        }
    }
}

fn integer(int: Int) -> DataType {
    match int {
        Int::I8 => DataType::Int8,
        Int::I16 => DataType::Int16,
        Int::I32 => DataType::Int32,
        Int::I64 => DataType::Int64,
        Int::U8 => DataType::UInt8,
        Int::U16 => DataType::UInt16,
        Int::U32 => DataType::UInt32,
        Int::U64 => DataType::UInt64,
    }
}

fn time_type(time: TimeType) -> DataType {
    match time.clock() {
        Some(Clock::ThreadCpu | Clock::ProcessCpu) => DataType::Int64,
        None | Some(Clock::Realtime | Clock::Monotonic | Clock::Boottime) => timestamp(),
    }
}

/// A dictionary of words; all batches of a table share it.
#[derive(Debug, Default)]
pub(crate) struct Dictionary {
    words: Vec<String>,
    keys: HashMap<String, i32>,
}

impl Dictionary {
    /// The key of `word`, which is added if it is absent.
    pub fn key(&mut self, word: &str) -> i32 {
        if let Some(&key) = self.keys.get(word) {
            return key;
        }
        let key = self.words.len() as i32;
        self.words.push(word.to_owned());
        self.keys.insert(word.to_owned(), key);
        key
    }

    /// The key of `word`, if the dictionary has it.
    pub fn get(&self, word: &str) -> Option<i32> {
        self.keys.get(word).copied()
    }

    /// The words, in the order of their keys.
    pub fn array(&self) -> Arc<StringArray> {
        Arc::new(StringArray::from_iter_values(&self.words))
    }
}

/// The dictionary keys of the values of an enum.
#[derive(Debug, Default)]
pub(crate) struct EnumKeys {
    /// The smallest value, to which `dense[0]` belongs.
    least: i128,
    /// Keys of successive values; a negative key means that the value has no name. Empty: the range is
    /// too wide.
    dense: Vec<i32>,
    /// Values and keys, sorted by value.
    sparse: Vec<(i128, i32)>,
}

/// Largest range of enum values that is looked up by index.
const MAX_DENSE_RANGE: i128 = 4096;

impl EnumKeys {
    /// The keys of `names` in `dictionary`, to which the names are added.
    pub fn new(names: &EnumNames, dictionary: &mut Dictionary) -> EnumKeys {
        let sparse: Vec<_> =
            names.iter().map(|(value, name)| (value, dictionary.key(name))).collect();
        let mut keys = EnumKeys { least: 0, dense: Vec::new(), sparse };
        if let (Some(&(least, _)), Some(&(most, _))) = (keys.sparse.first(), keys.sparse.last())
            && most - least < MAX_DENSE_RANGE
        {
            keys.least = least;
            keys.dense.resize((most - least) as usize + 1, -1);
            for &(value, key) in &keys.sparse {
                keys.dense[(value - least) as usize] = key;
            }
        }
        keys
    }

    /// The key of a value, if it has a name.
    #[inline]
    pub fn get(&self, value: i128) -> Option<i32> {
        if self.dense.is_empty() {
            let found = self.sparse.binary_search_by_key(&value, |entry| entry.0).ok()?;
            return Some(self.sparse[found].1);
        }
        let at = usize::try_from(value.checked_sub(self.least)?).ok()?;
        self.dense.get(at).copied().filter(|&key| key >= 0)
    }
}

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

    /// Appends the values that `reader` reads from frames.
    pub fn gather(&mut self, reader: &Reader, from: &FrameValues<'_>) {
        reader.visit(from.stamps, Append { builder: self, from });
    }

    /// Appends times, in ns since the epoch.
    pub fn time(&mut self, time: Time, from: &FrameValues<'_>) {
        match time.scale() {
            TimeScale::Ticks => self.each(from.rows, |frame| from.stamps.epoch(time.word(frame))),
            TimeScale::Ns(_) => self.each(from.rows, |frame| from.epoch(time, frame)),
        }
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

    /// Appends integers of a narrower type: see [`wider`].
    fn widened(&mut self, rows: RowsInChunk<'_>, read: impl Fn(&[u8]) -> Option<i128>) {
        // Each value fits: its type is narrower.
        match self.ty {
            DataType::Int16 => self.each(rows, |frame| read(frame).map(|number| number as i16)),
            DataType::Int32 => self.each(rows, |frame| read(frame).map(|number| number as i32)),
            DataType::Int64 => self.each(rows, |frame| read(frame).map(|number| number as i64)),
            DataType::UInt16 => self.each(rows, |frame| read(frame).map(|number| number as u16)),
            DataType::UInt32 => self.each(rows, |frame| read(frame).map(|number| number as u32)),
            DataType::UInt64 => self.each(rows, |frame| read(frame).map(|number| number as u64)),
            _ => self.nulls(rows.len()),
        }
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

/// Frames from which values are read, and the conversion of their times.
#[derive(Debug, Clone, Copy)]
pub(crate) struct FrameValues<'a> {
    pub rows: RowsInChunk<'a>,
    pub stamps: &'a Stamps<'a>,
    /// Realtime − monotonic, ns.
    pub offset: Option<i128>,
    /// The keys of an enum's values.
    pub keys: Option<&'a EnumKeys>,
}

impl FrameValues<'_> {
    /// The time in a frame, ns since the epoch.
    #[inline(always)]
    pub fn epoch(&self, time: Time, frame: &[u8]) -> Option<i64> {
        let ns = time.epoch(time.word(frame), self.stamps, self.offset)?;
        i64::try_from(ns).ok()
    }
}

struct Append<'a> {
    builder: &'a mut Builder,
    from: &'a FrameValues<'a>,
}

impl Visitor for Append<'_> {
    type Output = ();

    fn integer<T: Integer>(self, value: impl Access<Value = T>) {
        let rows = self.from.rows;
        if self.builder.has::<T>() {
            self.builder.each(rows, |frame| value.get(frame));
        } else {
            self.builder.widened(rows, |frame| value.get(frame).map(T::into));
        }
    }

    fn single(self, value: impl Access<Value = f32>) {
        let rows = self.from.rows;
        if self.builder.has::<f32>() {
            self.builder.each(rows, |frame| value.get(frame));
        } else {
            self.builder.each(rows, |frame| value.get(frame).map(f64::from));
        }
    }

    fn double(self, value: impl Access<Value = f64>) {
        self.builder.each(self.from.rows, |frame| value.get(frame));
    }

    fn boolean(self, value: impl Access<Value = u8>) {
        self.builder.each(self.from.rows, |frame| value.get(frame).map(|byte| byte != 0));
    }

    fn duration(self, value: impl Access<Value = i64>) {
        self.builder.each(self.from.rows, |frame| value.get(frame));
    }

    fn time(self, time: Time) {
        let Append { builder, from } = self;
        match time.scale() {
            TimeScale::Ns(clock) if clock.is_cpu() => builder.each(from.rows, |frame| {
                i64::try_from(time.word(frame)).ok().filter(|&ns| ns != 0)
            }),
            TimeScale::Ticks | TimeScale::Ns(_) => builder.time(time, from),
        }
    }

    fn half(self, half: TimevalHalf) {
        self.builder.each(self.from.rows, |frame| half.get(frame));
    }

    fn name<T: Integer>(self, value: impl Access<Value = T>, _: &EnumNames) {
        let Builder { values: BuilderValues::Words(words), nulls, .. } = self.builder else {
            return;
        };
        let Some(known) = self.from.keys else { return };
        self.from.rows.each(|frame| match value.get(frame) {
            Some(value) => {
                let value = value.into();
                let key = known.get(value).unwrap_or_else(|| words.number(value));
                words.keys.push(key);
                nulls.append_non_null();
            }
            None => {
                words.keys.push(0);
                nulls.append_null();
            }
        });
    }

    fn text(self, text: FixedText) {
        self.from.rows.each(|frame| self.builder.text(text.get(frame)));
    }

    fn bytes(self, value: Fixed) {
        let Builder { values: BuilderValues::Fixed(width, bytes), nulls, .. } = self.builder else {
            return;
        };
        self.from.rows.each(|frame| match value.get(frame) {
            Some(found) if found.len() == *width => {
                bytes.extend_from_slice(found);
                nulls.append_non_null();
            }
            _ => {
                bytes.resize(bytes.len() + *width, 0);
                nulls.append_null();
            }
        });
    }
}
