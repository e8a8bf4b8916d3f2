//! Comma-separated values as RFC 4180 quotes them, with the cell texts of TSV and line feeds
//! between rows.
//!
//! A spreadsheet may take text that starts with `=`, `+`, `-` or `@` for a formula: cells are not
//! changed for its sake; import text columns of programs that you do not trust as text.

use csv_core::{WriteResult, Writer};

use crate::escape::escape_into;
use crate::table::{TableWriter, Value, cell_text};

/// Writes CSV.
#[derive(Debug)]
pub(crate) struct Csv {
    quoting: Writer,
    inside: bool,
    cell: Vec<u8>,
}

impl Csv {
    pub fn new() -> Self {
        Csv { quoting: Writer::new(), inside: false, cell: Vec::new() }
    }

    fn write_cell(&mut self, out: &mut Vec<u8>) {
        if std::mem::replace(&mut self.inside, true) {
            append(out, 2, |room| self.quoting.delimiter(room));
        }
        let mut rest = &self.cell[..];
        // A quote takes two bytes, and two more stand around the cell.
        append(out, 2 * rest.len() + 2, |room| {
            let (result, read, written) = self.quoting.field(rest, room);
            rest = &rest[read..];
            (result, written)
        });
        self.cell.clear();
    }
}

impl TableWriter for Csv {
    fn header(&mut self, columns: &[String], out: &mut Vec<u8>) {
        for column in columns {
            escape_into(column.as_bytes(), &mut self.cell);
            self.write_cell(out);
        }
        self.end_row(out);
    }

    fn cell(&mut self, value: Value<'_>, out: &mut Vec<u8>) {
        cell_text(value, &mut self.cell);
        self.write_cell(out);
    }

    fn end_row(&mut self, out: &mut Vec<u8>) {
        append(out, 4, |room| self.quoting.terminator(room));
        self.inside = false;
    }
}

/// Appends what `write` writes; it is called again, with more room, for as long as it wants.
fn append(
    out: &mut Vec<u8>,
    room: usize,
    mut write: impl FnMut(&mut [u8]) -> (WriteResult, usize),
) {
    loop {
        let end = out.len();
        out.resize(end + room, 0);
        let (result, written) = write(&mut out[end..]);
        out.truncate(end + written);
        if result == WriteResult::InputEmpty {
            return;
        }
    }
}
