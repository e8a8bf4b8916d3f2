//! JSON lines: an object per row, with the column names of the other formats, all columns in each.
//!
//! Numbers are numbers (64 bits: some readers round beyond 2^53), text and bytes (hex) strings,
//! empty cells null, floats that JSON has no number for the strings "NaN", "inf" and "-inf". Text
//! that is not UTF-8 has U+FFFD in place of what is not.

use crate::escape::json_string;
use crate::table::{TableWriter, Value, cell_text, hex};

/// Writes JSON lines.
#[derive(Debug, Default)]
pub(crate) struct JsonLines {
    /// What stands before the value of each column: `{"name":`, and then `,"name":`.
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

    fn value(&mut self, value: Value<'_>, out: &mut Vec<u8>) {
        let quoted = match value {
            Value::Empty => {
                out.extend_from_slice(b"null");
                return;
            }
            Value::Text(text) => {
                json_string(text, out);
                return;
            }
            Value::Bytes(bytes) => {
                out.push(b'"');
                hex(bytes, out);
                out.push(b'"');
                return;
            }
            Value::Single(value) => !value.is_finite(),
            Value::Double(value) => !value.is_finite(),
            Value::Signed(_) | Value::Unsigned(_) | Value::Wide(_) => false,
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
