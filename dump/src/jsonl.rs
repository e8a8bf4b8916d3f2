//! JSON lines: an object per row, with the column names of the other formats, all columns in each.
//!
//! Numbers are numbers (64 bits: some readers round beyond 2^53), text and bytes (hex) strings,
//! empty cells null, floats that JSON has no number for the strings "NaN", "inf" and "-inf". Text
//! that is not UTF-8 has U+FFFD in place of what is not.

use std::io::{self, BufWriter, Write};

use crate::escape::json_string;
use crate::table::{TableWriter, Value, cell_text, hex};

/// Writes JSON lines.
pub(crate) struct JsonLines<W: Write> {
    out: BufWriter<W>,
    /// `"name":` of each column.
    keys: Vec<Vec<u8>>,
    column: usize,
    row: Vec<u8>,
}

impl<W: Write> JsonLines<W> {
    pub fn new(out: W) -> Self {
        let out = BufWriter::with_capacity(256 << 10, out);
        JsonLines { out, keys: Vec::new(), column: 0, row: Vec::new() }
    }
}

impl<W: Write> TableWriter for JsonLines<W> {
    fn header(&mut self, columns: &[String]) -> io::Result<()> {
        let key = |column: &String| {
            let mut key = Vec::new();
            json_string(column.as_bytes(), &mut key);
            key.push(b':');
            key
        };
        self.keys = columns.iter().map(key).collect();
        Ok(())
    }

    fn cell(&mut self, value: Value<'_>) -> io::Result<()> {
        self.row.push(if self.column == 0 { b'{' } else { b',' });
        if let Some(key) = self.keys.get(self.column) {
            self.row.extend_from_slice(key);
        }
        self.column += 1;
        let quoted = match value {
            Value::Empty => {
                self.row.extend_from_slice(b"null");
                return Ok(());
            }
            Value::Text(text) => {
                json_string(text, &mut self.row);
                return Ok(());
            }
            Value::Bytes(bytes) => {
                self.row.push(b'"');
                hex(bytes, &mut self.row);
                self.row.push(b'"');
                return Ok(());
            }
            Value::Single(value) => !value.is_finite(),
            Value::Double(value) => !value.is_finite(),
            Value::Signed(_) | Value::Unsigned(_) | Value::Wide(_) => false,
        };
        let quote: &[u8] = if quoted { b"\"" } else { b"" };
        self.row.extend_from_slice(quote);
        cell_text(value, &mut self.row);
        self.row.extend_from_slice(quote);
        Ok(())
    }

    fn end_row(&mut self) -> io::Result<()> {
        self.row.extend_from_slice(b"}\n");
        self.column = 0;
        self.out.write_all(&self.row)?;
        self.row.clear();
        Ok(())
    }

    fn flush(&mut self) -> io::Result<()> {
        self.out.flush()
    }

    fn grows(&self) -> bool {
        true
    }
}
