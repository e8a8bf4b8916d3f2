//! One column of one kind of frame as text has it.

use ppt_capture::Stamps;
use ppt_capture::columns::{
    Access, Fixed, Half, Integer, Names, Plain, Reader, Scale, Text, Time, Visitor,
};

use crate::table::{TableWriter, Value, digits};

/// Writes the value that `reader` finds in `frame`.
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
        Some(Plain::Signed(value)) => digits(value, out),
        Some(Plain::Unsigned(value)) => digits(value, out),
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
    match reader.visit(stamps, Cell { frame, stamps, reader }) {
        Some(Value::Signed(value)) => digits(value, out),
        Some(Value::Unsigned(value)) => digits(value, out),
        value => writer.value(value.unwrap_or(Value::Empty), out),
    }
}

/// Reads one value.
struct Cell<'a> {
    frame: &'a [u8],
    stamps: &'a Stamps<'a>,
    reader: &'a Reader,
}

impl<'a> Visitor for Cell<'a> {
    type Output = Option<Value<'a>>;

    fn integer<T: Integer>(self, value: impl Access<Value = T>) -> Self::Output {
        let bits = value.get(self.frame)?.bits();
        Some(if T::SIGNED { Value::Signed(bits as i64) } else { Value::Unsigned(bits) })
    }

    fn single(self, value: impl Access<Value = f32>) -> Self::Output {
        value.get(self.frame).map(Value::Single)
    }

    fn double(self, value: impl Access<Value = f64>) -> Self::Output {
        value.get(self.frame).map(Value::Double)
    }

    fn boolean(self, value: impl Access<Value = u8>) -> Self::Output {
        self.integer(value)
    }

    fn duration(self, value: impl Access<Value = i64>) -> Self::Output {
        self.integer(value)
    }

    fn address(self, value: impl Access<Value = u64>) -> Self::Output {
        value.get(self.frame).map(Value::Address)
    }

    fn time(self, time: Time) -> Self::Output {
        match time.scale() {
            Scale::Ticks => self.stamps.epoch(time.word(self.frame)).map(Value::Signed),
            Scale::Ns(_) => time.number(self.frame).map(Value::Wide),
        }
    }

    fn half(self, half: Half) -> Self::Output {
        half.get(self.frame).map(Value::Signed)
    }

    fn name<T: Integer>(self, value: impl Access<Value = T>, _: &Names) -> Self::Output {
        let value = value.get(self.frame)?.into();
        let name = self.reader.names().get(value);
        Some(name.map_or(Value::Wide(value), |name| Value::Text(name.as_bytes())))
    }

    fn text(self, text: Text) -> Self::Output {
        text.get(self.frame).map(Value::Text)
    }

    fn bytes(self, bytes: Fixed) -> Self::Output {
        bytes.get(self.frame).map(Value::Bytes)
    }
}
