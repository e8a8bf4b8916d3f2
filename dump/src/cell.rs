//! Reads the value of one column out of the bytes of a frame. Any bytes are a value.

use ppt_capture::Stamps;
use ppt_capture::frame_dsl::schema::{Int, Schema};
use ppt_capture::frame_dsl::{Column, ColumnType};

use crate::table::{TableWriter, Value, digits};

/// An integer of any size.
enum Plain {
    Signed(i64),
    Unsigned(u64),
}

/// One column of one kind of frame, ready to be read.
#[derive(Debug)]
pub(crate) struct Cell {
    at: usize,
    ty: ColumnType,
    /// Names of an enum's values, by value.
    names: Vec<(i128, String)>,
}

impl Cell {
    /// The reader of `column`, of a schema that has been checked.
    pub fn new(schema: &Schema, column: &Column) -> Cell {
        let mut names: Vec<(i128, String)> = Vec::new();
        if let ColumnType::Enum { index, .. } = column.ty
            && let Some(found) = schema.enums.get(index)
        {
            names = found.values.iter().map(|(name, value)| (*value, name.clone())).collect();
            // Where two names share a value the first one declared is shown.
            names.sort_by_key(|(value, _)| *value);
            names.dedup_by_key(|(value, _)| *value);
        }
        Cell { at: column.offset as usize, ty: column.ty, names }
    }

    /// Writes the value in `frame`. A field that reaches beyond the frame (which no checked schema
    /// has) is empty.
    #[inline(always)]
    pub fn write<W: TableWriter>(
        &self,
        column: usize,
        frame: &[u8],
        stamps: &Stamps<'_>,
        writer: &mut W,
        out: &mut Vec<u8>,
    ) {
        writer.begin_cell(column, out);
        match self.plain(frame, stamps) {
            Some(Plain::Signed(value)) => digits(value, out),
            Some(Plain::Unsigned(value)) => digits(value, out),
            None => {
                let bytes = frame.get(self.at..).unwrap_or_default();
                writer.value(self.rare(bytes).unwrap_or(Value::Empty), out);
            }
        }
    }

    /// Most cells: the integers that need nothing but their bytes, and ticks.
    #[inline(always)]
    fn plain(&self, frame: &[u8], stamps: &Stamps<'_>) -> Option<Plain> {
        let at = self.at;
        Some(match self.ty {
            ColumnType::I8 => Plain::Signed(i8::from_le_bytes(word(frame, at)?).into()),
            ColumnType::I16 => Plain::Signed(i16::from_le_bytes(word(frame, at)?).into()),
            ColumnType::I32 => Plain::Signed(i32::from_le_bytes(word(frame, at)?).into()),
            ColumnType::I64 | ColumnType::Duration => {
                Plain::Signed(i64::from_le_bytes(word(frame, at)?))
            }
            ColumnType::U8 | ColumnType::Bool => {
                Plain::Unsigned(u8::from_le_bytes(word(frame, at)?).into())
            }
            ColumnType::U16 => Plain::Unsigned(u16::from_le_bytes(word(frame, at)?).into()),
            ColumnType::U32 => Plain::Unsigned(u32::from_le_bytes(word(frame, at)?).into()),
            ColumnType::U64 => Plain::Unsigned(u64::from_le_bytes(word(frame, at)?)),
            ColumnType::Tick => Plain::Signed(stamps.epoch(u64::from_le_bytes(word(frame, at)?))?),
            _ => return None,
        })
    }

    /// What is no plain integer; None: nothing.
    #[inline(never)]
    fn rare<'a>(&'a self, bytes: &'a [u8]) -> Option<Value<'a>> {
        Some(match self.ty {
            ColumnType::F32 => Value::Single(f32::from_le_bytes(first(bytes)?)),
            ColumnType::F64 => Value::Double(f64::from_le_bytes(first(bytes)?)),
            ColumnType::Ns { .. } => taken(i64_at(bytes, 0)?),
            ColumnType::Timespec { .. } => pair(bytes, 1_000_000_000)?,
            ColumnType::Timeval => pair(bytes, 1_000_000)?,
            ColumnType::TimevalSeconds => half(bytes, 0)?,
            ColumnType::TimevalMicroseconds => half(bytes, 8)?,
            ColumnType::Enum { repr, .. } => self.name(integer(bytes, repr)?),
            ColumnType::Text { len } => {
                let text = bytes.get(..len as usize)?;
                let end = text.iter().position(|&byte| byte == 0).unwrap_or(text.len());
                Value::Text(&text[..end])
            }
            ColumnType::Bytes { len } => Value::Bytes(bytes.get(..len as usize)?),
            _ => return None, // a plain integer
        })
    }

    fn name(&self, value: i128) -> Value<'_> {
        match self.names.binary_search_by_key(&value, |(value, _)| *value) {
            Ok(found) => Value::Text(self.names[found].1.as_bytes()),
            Err(_) => Value::Wide(value),
        }
    }
}

#[inline(always)]
fn word<const N: usize>(frame: &[u8], at: usize) -> Option<[u8; N]> {
    frame.get(at..at.checked_add(N)?)?.first_chunk().copied()
}

fn first<const N: usize>(bytes: &[u8]) -> Option<[u8; N]> {
    bytes.first_chunk().copied()
}

fn i64_at(bytes: &[u8], at: usize) -> Option<i64> {
    Some(i64::from_le_bytes(first(bytes.get(at..)?)?))
}

fn taken(value: i64) -> Value<'static> {
    if value == 0 { Value::Empty } else { Value::Signed(value) }
}

/// Seconds and parts of a second as one number of parts.
fn pair(bytes: &[u8], parts: i128) -> Option<Value<'static>> {
    let (seconds, rest) = (i64_at(bytes, 0)?, i64_at(bytes, 8)?);
    if (seconds, rest) == (0, 0) {
        return Some(Value::Empty);
    }
    Some(Value::Wide(i128::from(seconds) * parts + i128::from(rest)))
}

/// One half of a timeval; both are empty where both are 0.
fn half(bytes: &[u8], at: usize) -> Option<Value<'static>> {
    let whole = (i64_at(bytes, 0)?, i64_at(bytes, 8)?);
    Some(if whole == (0, 0) { Value::Empty } else { Value::Signed(i64_at(bytes, at)?) })
}

fn integer(bytes: &[u8], repr: Int) -> Option<i128> {
    Some(match repr {
        Int::I8 => i8::from_le_bytes(first(bytes)?).into(),
        Int::I16 => i16::from_le_bytes(first(bytes)?).into(),
        Int::I32 => i32::from_le_bytes(first(bytes)?).into(),
        Int::I64 => i64::from_le_bytes(first(bytes)?).into(),
        Int::U8 => u8::from_le_bytes(first(bytes)?).into(),
        Int::U16 => u16::from_le_bytes(first(bytes)?).into(),
        Int::U32 => u32::from_le_bytes(first(bytes)?).into(),
        Int::U64 => u64::from_le_bytes(first(bytes)?).into(),
    })
}
