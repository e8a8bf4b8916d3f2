//! JSON lines: an object per row with all columns, with the names of the other formats.
//!
//! Numbers have up to 64 bits; some readers round beyond 2^53. Text, bytes and addresses (in hex)
//! are strings. Empty cells are null. Floats without a JSON number are the strings "NaN", "inf" and
//! "-inf". U+FFFD replaces bytes that are not UTF-8.

use ppt_text::json_string;

use crate::table::{CellValue, TableWriter, cell_text, hex};

/// Writes JSON lines.
#[derive(Debug, Default)]
pub(crate) struct JsonLines {
    /// The text before the value of each column: `{"name":`, and then `,"name":`.
    keys: Vec<Vec<u8>>,
}

impl TableWriter for JsonLines {
    fn header(&mut self, columns: &[String], _out: &mut Vec<u8>) {
        let key = |(column, name): (usize, &String)| {
            let mut key = vec![if column == 0 { b'{' } else { b',' }];
            json_string(name.as_bytes(), &mut key);
            key.push(b':');
            key
        };
        self.keys = columns.iter().enumerate().map(key).collect();
    }

    #[inline]
    fn begin_cell(&self, column: usize, out: &mut Vec<u8>) {
        if let Some(key) = self.keys.get(column) {
            out.extend_from_slice(key);
        }
    }

    fn value(&mut self, value: CellValue<'_>, out: &mut Vec<u8>) {
        let quoted = match value {
            CellValue::Empty => {
                out.extend_from_slice(b"null");
                return;
            }
            CellValue::Text(text) => {
                json_string(text, out);
                return;
            }
            CellValue::Bytes(bytes) => {
                out.push(b'"');
                hex(bytes, out);
                out.push(b'"');
                return;
            }
            // JSON has no hex numbers.
            CellValue::Address(_) => true,
            CellValue::Single(value) => !value.is_finite(),
            CellValue::Double(value) => !value.is_finite(),
            CellValue::Signed(_) | CellValue::Unsigned(_) | CellValue::Wide(_) => false,
        };
        let quote: &[u8] = if quoted { b"\"" } else { b"" };
        out.extend_from_slice(quote);
        cell_text(value, out);
        out.extend_from_slice(quote);
    }

    #[inline]
    fn end_row(&mut self, out: &mut Vec<u8>) {
        out.extend_from_slice(b"}\n");
    }

    fn grows(&self) -> bool {
        true
    }
}
