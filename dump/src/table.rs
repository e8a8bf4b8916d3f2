//! The common interface of all table formats.

use std::io::Write as _;

use ppt_text::escape_cell;

/// One cell.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum CellValue<'a> {
    /// No such field, or a time that was not recorded.
    Empty,
    /// A number.
    Signed(i64),
    /// A number.
    Unsigned(u64),
    /// A number that may need more than 64 bits.
    Wide(i128),
    /// A code address.
    Address(u64),
    /// A number.
    Single(f32),
    /// A number.
    Double(f64),
    /// Text, UTF-8 or not.
    Text(&'a [u8]),
    /// Opaque bytes.
    Bytes(&'a [u8]),
}

/// A table format: appends text to `out`. The calls are `header`, then for each row the cells of
/// all columns, counted from 0, and `end_row`.
pub trait TableWriter {
    /// Sets the columns. Called again with more columns at the end, if [`Self::grows`] allows it.
    fn header(&mut self, columns: &[String], out: &mut Vec<u8>);

    /// Writes the text before the value of a column.
    fn begin_cell(&self, column: usize, out: &mut Vec<u8>);

    /// Writes a value. Integers are digits in every format, and are not written by this method.
    fn value(&mut self, value: CellValue<'_>, out: &mut Vec<u8>);

    /// Ends the row.
    fn end_row(&mut self, out: &mut Vec<u8>);

    /// Writes the cell of a column.
    #[inline]
    fn cell(&mut self, column: usize, value: CellValue<'_>, out: &mut Vec<u8>) {
        self.begin_cell(column, out);
        match value {
            CellValue::Signed(value) => digits(value, out),
            CellValue::Unsigned(value) => digits(value, out),
            other => self.value(other, out),
        }
    }

    /// Whether columns may be added after the first row.
    fn grows(&self) -> bool {
        false
    }
}

/// Appends the text of a cell for TSV and CSV.
pub(crate) fn cell_text(value: CellValue<'_>, out: &mut Vec<u8>) {
    let mut float = zmij::Buffer::new();
    let text = match value {
        CellValue::Empty => return,
        CellValue::Signed(value) => return digits(value, out),
        CellValue::Unsigned(value) => return digits(value, out),
        CellValue::Wide(value) => return digits(value, out),
        CellValue::Address(value) => return address(value, out),
        CellValue::Single(value) => float.format(value),
        CellValue::Double(value) => float.format(value),
        CellValue::Text(text) => return escape_cell(text, out),
        CellValue::Bytes(bytes) => return hex(bytes, out),
    };
    out.extend_from_slice(text.as_bytes());
}

/// Appends the digits of an integer.
#[inline]
pub(crate) fn digits(value: impl itoa::Integer, out: &mut Vec<u8>) {
    out.extend_from_slice(itoa::Buffer::new().format(value).as_bytes());
}

/// Appends an address in hex, like debuggers.
fn address(value: u64, out: &mut Vec<u8>) {
    // Writing to a Vec does not fail.
    _ = write!(out, "{value:#x}");
}

/// Appends two hex digits for each byte.
pub(crate) fn hex(bytes: &[u8], out: &mut Vec<u8>) {
    let at = out.len();
    out.resize(at + 2 * bytes.len(), 0);
    // There is room for all digits.
    _ = hex::encode_to_slice(bytes, &mut out[at..]);
}

#[cfg(test)]
mod tests {
    use super::*;

    fn text(value: CellValue<'_>) -> String {
        let mut out = Vec::new();
        cell_text(value, &mut out);
        String::from_utf8(out).unwrap()
    }

    #[test]
    fn numbers_read_back_the_same() {
        assert_eq!(text(CellValue::Signed(i64::MIN)), i64::MIN.to_string());
        assert_eq!(text(CellValue::Unsigned(u64::MAX)), u64::MAX.to_string());
        assert_eq!(text(CellValue::Wide(i128::MIN)), i128::MIN.to_string());
        assert_eq!(text(CellValue::Wide(-7)), "-7");
        assert_eq!(text(CellValue::Single(0.1)), "0.1");
        assert_eq!(text(CellValue::Double(f64::NAN)), "NaN");
        assert_eq!(text(CellValue::Double(f64::NEG_INFINITY)), "-inf");
        assert_eq!(text(CellValue::Double(f64::MIN_POSITIVE)).parse(), Ok(f64::MIN_POSITIVE));
        assert_eq!(text(CellValue::Bytes(&[0, 255])), "00ff");
        assert_eq!(text(CellValue::Address(0)), "0x0");
        assert_eq!(text(CellValue::Address(u64::MAX)), "0xffffffffffffffff");
        assert_eq!(text(CellValue::Empty), "");
    }
}
