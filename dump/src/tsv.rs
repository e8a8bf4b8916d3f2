//! Tab-separated values: one line per row, cells escaped, no quotes.

use ppt_text::escape_cell;

use crate::table::{CellValue, TableWriter, cell_text};

/// Writes TSV.
#[derive(Debug, Default)]
pub(crate) struct Tsv;

impl TableWriter for Tsv {
    fn header(&mut self, columns: &[String], out: &mut Vec<u8>) {
        for (column, name) in columns.iter().enumerate() {
            self.begin_cell(column, out);
            escape_cell(name.as_bytes(), out);
        }
        self.end_row(out);
    }

    #[inline]
    fn begin_cell(&self, column: usize, out: &mut Vec<u8>) {
        if column > 0 {
            out.push(b'\t');
        }
    }

    fn value(&mut self, value: CellValue<'_>, out: &mut Vec<u8>) {
        cell_text(value, out);
    }

    #[inline]
    fn end_row(&mut self, out: &mut Vec<u8>) {
        out.push(b'\n');
    }
}
