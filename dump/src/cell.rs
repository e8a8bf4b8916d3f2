//! One column of one kind of frame as text.

use ppt_capture::Stamps;
use ppt_capture::columns::{
    Access, EnumNames, Fixed, FixedText, Integer, PlainInteger, Reader, Time, TimeScale,
    TimevalHalf, Visitor,
};

use crate::table::{CellValue, TableWriter, digits};

/// Writes the value of `reader`'s column in `frame`.
#[inline(always)]
pub(crate) fn write<W: TableWriter>(
    reader: &Reader,
    column: usize,
    frame: &[u8],
    stamps: &Stamps<'_>,
    writer: &mut W,
    out: &mut Vec<u8>,
) {
    writer.begin_cell(column, out);
    match reader.plain(frame, stamps) {
        Some(PlainInteger::Signed(value)) => digits(value, out),
        Some(PlainInteger::Unsigned(value)) => digits(value, out),
        None => other(reader, frame, stamps, writer, out),
    }
}

#[inline(never)]
fn other<W: TableWriter>(
    reader: &Reader,
    frame: &[u8],
    stamps: &Stamps<'_>,
    writer: &mut W,
    out: &mut Vec<u8>,
) {
    match reader.visit(stamps, ValueReader { frame, stamps, reader }) {
        Some(CellValue::Signed(value)) => digits(value, out),
        Some(CellValue::Unsigned(value)) => digits(value, out),
        value => writer.value(value.unwrap_or(CellValue::Empty), out),
    }
}

/// Reads one value.
struct ValueReader<'a> {
    frame: &'a [u8],
    stamps: &'a Stamps<'a>,
    reader: &'a Reader,
}

impl<'a> Visitor for ValueReader<'a> {
    type Output = Option<CellValue<'a>>;

    fn integer<T: Integer>(self, value: impl Access<Value = T>) -> Self::Output {
        let bits = value.get(self.frame)?.bits();
        Some(if T::SIGNED { CellValue::Signed(bits as i64) } else { CellValue::Unsigned(bits) })
    }

    fn single(self, value: impl Access<Value = f32>) -> Self::Output {
        value.get(self.frame).map(CellValue::Single)
    }

    fn double(self, value: impl Access<Value = f64>) -> Self::Output {
        value.get(self.frame).map(CellValue::Double)
    }

    fn boolean(self, value: impl Access<Value = u8>) -> Self::Output {
        self.integer(value)
    }

    fn duration(self, value: impl Access<Value = i64>) -> Self::Output {
        self.integer(value)
    }

    fn address(self, value: impl Access<Value = u64>) -> Self::Output {
        value.get(self.frame).map(CellValue::Address)
    }

    fn time(self, time: Time) -> Self::Output {
        match time.scale() {
            TimeScale::Ticks => self.stamps.epoch(time.word(self.frame)).map(CellValue::Signed),
            TimeScale::Ns(_) => time.number(self.frame).map(CellValue::Wide),
        }
    }

    fn half(self, half: TimevalHalf) -> Self::Output {
        half.get(self.frame).map(CellValue::Signed)
    }

    fn name<T: Integer>(self, value: impl Access<Value = T>, _: &EnumNames) -> Self::Output {
        let value = value.get(self.frame)?.into();
        let name = self.reader.names().get(value);
        Some(name.map_or(CellValue::Wide(value), |name| CellValue::Text(name.as_bytes())))
    }

    fn text(self, text: FixedText) -> Self::Output {
        text.get(self.frame).map(CellValue::Text)
    }

    fn bytes(self, bytes: Fixed) -> Self::Output {
        bytes.get(self.frame).map(CellValue::Bytes)
    }
}
