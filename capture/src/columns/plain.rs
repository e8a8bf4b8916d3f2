//! A fast path to the values of the most common column types.

use ppt_clock::Stamps;
use ppt_frame_dsl::schema::Int;
use ppt_frame_dsl::{ColumnType, TimeType};

use super::access::PlainNumber;

/// An integer of any size.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[expect(missing_docs, reason = "the names say it")]
pub enum PlainInteger {
    Signed(i64),
    Unsigned(u64),
}

/// A way to read a value in one step instead of several through the types.
#[derive(Debug, Clone, Copy)]
pub(super) enum Shortcut {
    I8,
    I16,
    I32,
    I64,
    U8,
    U16,
    U32,
    U64,
    Ticks,
    /// No fast path.
    Other,
}

impl Shortcut {
    pub fn for_type(ty: ColumnType) -> Shortcut {
        match ty {
            ColumnType::Int(Int::I8) => Shortcut::I8,
            ColumnType::Int(Int::I16) => Shortcut::I16,
            ColumnType::Int(Int::I32) => Shortcut::I32,
            ColumnType::Int(Int::I64) | ColumnType::Duration => Shortcut::I64,
            ColumnType::Int(Int::U8) | ColumnType::Bool => Shortcut::U8,
            ColumnType::Int(Int::U16) => Shortcut::U16,
            ColumnType::Int(Int::U32) => Shortcut::U32,
            ColumnType::Int(Int::U64) => Shortcut::U64,
            ColumnType::Time(TimeType::Ticks) => Shortcut::Ticks,
            _ => Shortcut::Other,
        }
    }

    #[inline(always)]
    pub fn read(self, at: usize, frame: &[u8], stamps: &Stamps<'_>) -> Option<PlainInteger> {
        Some(match self {
            Shortcut::I8 => PlainInteger::Signed(i8::read(frame, at)?.into()),
            Shortcut::I16 => PlainInteger::Signed(i16::read(frame, at)?.into()),
            Shortcut::I32 => PlainInteger::Signed(i32::read(frame, at)?.into()),
            Shortcut::I64 => PlainInteger::Signed(i64::read(frame, at)?),
            Shortcut::U8 => PlainInteger::Unsigned(u8::read(frame, at)?.into()),
            Shortcut::U16 => PlainInteger::Unsigned(u16::read(frame, at)?.into()),
            Shortcut::U32 => PlainInteger::Unsigned(u32::read(frame, at)?.into()),
            Shortcut::U64 => PlainInteger::Unsigned(u64::read(frame, at)?),
            Shortcut::Ticks => PlainInteger::Signed(stamps.epoch(u64::read(frame, at)?)?),
            Shortcut::Other => return None,
        })
    }
}
