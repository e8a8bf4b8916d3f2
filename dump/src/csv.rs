//! Comma-separated values as RFC 4180 quotes them, with the cell texts of TSV and line feeds
//! between rows.
//!
//! A spreadsheet may take text that starts with `=`, `+`, `-` or `@` for a formula: cells are not
//! changed for its sake; import text columns of programs that you do not trust as text.

use std::io::{self, Write};

use crate::escape::escape_into;
use crate::table::{TableWriter, Value, cell_text};

/// Writes CSV.
pub(crate) struct Csv<W: Write> {
    out: csv::Writer<W>,
    cell: Vec<u8>,
}

impl<W: Write> Csv<W> {
    pub fn new(out: W) -> Self {
        let out = csv::WriterBuilder::new().buffer_capacity(256 << 10).from_writer(out);
        Csv { out, cell: Vec::new() }
    }

    fn write_cell(&mut self) -> io::Result<()> {
        let result = self.out.write_field(&self.cell);
        self.cell.clear();
        result.map_err(io_error)
    }
}

impl<W: Write> TableWriter for Csv<W> {
    fn header(&mut self, columns: &[String]) -> io::Result<()> {
        for column in columns {
            escape_into(column.as_bytes(), &mut self.cell);
            self.write_cell()?;
        }
        self.end_row()
    }

    fn cell(&mut self, value: Value<'_>) -> io::Result<()> {
        cell_text(value, &mut self.cell);
        self.write_cell()
    }

    fn end_row(&mut self) -> io::Result<()> {
        self.out.write_record(None::<&[u8]>).map_err(io_error)
    }

    fn flush(&mut self) -> io::Result<()> {
        self.out.flush()
    }
}

/// The error of the output as it was: a closed pipe stays a closed pipe.
fn io_error(error: csv::Error) -> io::Error {
    match error.into_kind() {
        csv::ErrorKind::Io(error) => error,
        other => io::Error::other(format!("{other:?}")),
    }
}
