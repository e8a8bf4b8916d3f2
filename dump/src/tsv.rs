//! Tab-separated values: one line per row, cells escaped, no quotes.

use std::io::{self, BufWriter, Write};

use crate::escape::escape_into;
use crate::table::{TableWriter, Value, cell_text};

/// Writes TSV.
pub(crate) struct Tsv<W: Write> {
    out: BufWriter<W>,
    row: Vec<u8>,
    first: bool,
}

impl<W: Write> Tsv<W> {
    pub fn new(out: W) -> Self {
        Tsv { out: BufWriter::with_capacity(256 << 10, out), row: Vec::new(), first: true }
    }

    fn separate(&mut self) {
        if !std::mem::take(&mut self.first) {
            self.row.push(b'\t');
        }
    }
}

impl<W: Write> TableWriter for Tsv<W> {
    fn header(&mut self, columns: &[String]) -> io::Result<()> {
        for column in columns {
            self.separate();
            escape_into(column.as_bytes(), &mut self.row);
        }
        self.end_row()
    }

    fn cell(&mut self, value: Value<'_>) -> io::Result<()> {
        self.separate();
        cell_text(value, &mut self.row);
        Ok(())
    }

    fn end_row(&mut self) -> io::Result<()> {
        self.row.push(b'\n');
        self.first = true;
        self.out.write_all(&self.row)?;
        self.row.clear();
        Ok(())
    }

    fn flush(&mut self) -> io::Result<()> {
        self.out.flush()
    }
}
