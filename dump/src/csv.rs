//! Comma-separated values as RFC 4180 quotes them, with the cell texts of TSV and line feeds
//! between rows.
//!
//! A spreadsheet may take text that starts with `=`, `+`, `-` or `@` for a formula: cells are not
//! changed for its sake; import text columns of programs that you do not trust as text.

use crate::escape::escape_into;
use crate::table::{TableWriter, Value, cell_text};

/// Writes CSV.
#[derive(Debug, Default)]
pub(crate) struct Csv {
    cell: Vec<u8>,
}

impl Csv {
    /// What was escaped into `cell`, quoted if it must be. Escaped text has no line ends.
    fn write_cell(&mut self, out: &mut Vec<u8>) {
        if self.cell.iter().any(|byte| b",\"".contains(byte)) {
            out.push(b'"');
            for part in self.cell.split_inclusive(|&byte| byte == b'"') {
                out.extend_from_slice(part);
                if part.ends_with(b"\"") {
                    out.push(b'"');
                }
            }
            out.push(b'"');
        } else {
            out.extend_from_slice(&self.cell);
        }
        self.cell.clear();
    }
}

impl TableWriter for Csv {
    fn header(&mut self, columns: &[String], out: &mut Vec<u8>) {
        for (column, name) in columns.iter().enumerate() {
            self.begin_cell(column, out);
            escape_into(name.as_bytes(), &mut self.cell);
            self.write_cell(out);
        }
        self.end_row(out);
    }

    #[inline]
    fn begin_cell(&self, column: usize, out: &mut Vec<u8>) {
        if column > 0 {
            out.push(b',');
        }
    }

    fn value(&mut self, value: Value<'_>, out: &mut Vec<u8>) {
        cell_text(value, &mut self.cell);
        self.write_cell(out);
    }

    #[inline]
    fn end_row(&mut self, out: &mut Vec<u8>) {
        out.push(b'\n');
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_must_be_quoted_is() {
        let (mut csv, mut out) = (Csv::default(), Vec::new());
        for (column, text) in ["plain", "a,b", "\"q\" \"", "", "\r\n"].into_iter().enumerate() {
            csv.cell(column, Value::Text(text.as_bytes()), &mut out);
        }
        csv.end_row(&mut out);
        let expected = r#"plain,"a,b","""q"" """,,\x0d\n"#;
        assert_eq!(String::from_utf8(out).unwrap(), format!("{expected}\n"));
    }
}
