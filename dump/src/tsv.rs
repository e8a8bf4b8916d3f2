//! Tab-separated values: one line per row, cells escaped, no quotes.

use crate::escape::escape_into;
use crate::table::{TableWriter, Value, cell_text};

/// Writes TSV.
#[derive(Debug, Default)]
pub(crate) struct Tsv {
    inside: bool,
}

impl Tsv {
    fn separate(&mut self, out: &mut Vec<u8>) {
        if std::mem::replace(&mut self.inside, true) {
            out.push(b'\t');
        }
    }
}

impl TableWriter for Tsv {
    fn header(&mut self, columns: &[String], out: &mut Vec<u8>) {
        for column in columns {
            self.separate(out);
            escape_into(column.as_bytes(), out);
        }
        self.end_row(out);
    }

    fn cell(&mut self, value: Value<'_>, out: &mut Vec<u8>) {
        self.separate(out);
        cell_text(value, out);
    }

    fn end_row(&mut self, out: &mut Vec<u8>) {
        out.push(b'\n');
        self.inside = false;
    }
}
