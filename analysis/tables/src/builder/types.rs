//! The Arrow types of columns.

use arrow_schema::{DataType, TimeUnit};
use ppt_capture::frame_dsl::schema::{Clock, Int};
use ppt_capture::frame_dsl::{ColumnType, Measure, TimeType};

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

/// The narrowest type that holds all values of two types; None if no type does. Captures of several
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
