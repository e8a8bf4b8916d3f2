//! Comma-separated values with RFC 4180 quoting, the cell texts of TSV, and line feeds between
//! rows.
//!
//! A spreadsheet may read text that starts with `=`, `+`, `-` or `@` as a formula. Cells are
//! protected from that only if the format is for spreadsheets.

use ppt_text::{begins_formula, csv_cell, escape_cell};

use crate::table::{CellValue, TableWriter, cell_text};

/// Writes CSV. If it `GUARDS`, text that may be a formula or begins with `'` gets a leading `'`.
#[derive(Debug, Default)]
pub(crate) struct Csv<const GUARDS: bool> {
    cell: Vec<u8>,
}

impl<const GUARDS: bool> Csv<GUARDS> {
    /// Writes the escaped text in `cell`, quoted if necessary.
    fn write_cell(&mut self, is_text: bool, out: &mut Vec<u8>) {
        if is_text && GUARDS && begins_formula(&self.cell) {
            self.cell.insert(0, b'\'');
        }
        csv_cell(&self.cell, out);
        self.cell.clear();
    }
}

impl<const GUARDS: bool> TableWriter for Csv<GUARDS> {
    fn header(&mut self, columns: &[String], out: &mut Vec<u8>) {
        for (column, name) in columns.iter().enumerate() {
            self.begin_cell(column, out);
            escape_cell(name.as_bytes(), &mut self.cell);
            self.write_cell(true, out);
        }
        self.end_row(out);
    }

    #[inline]
    fn begin_cell(&self, column: usize, out: &mut Vec<u8>) {
        if column > 0 {
            out.push(b',');
        }
    }

    fn value(&mut self, value: CellValue<'_>, out: &mut Vec<u8>) {
        cell_text(value, &mut self.cell);
        self.write_cell(matches!(value, CellValue::Text(_)), out);
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
        let (mut csv, mut out) = (Csv::<false>::default(), Vec::new());
        for (column, text) in ["plain", "a,b", "\"q\" \"", "", "\r\n"].into_iter().enumerate() {
            csv.cell(column, CellValue::Text(text.as_bytes()), &mut out);
        }
        csv.end_row(&mut out);
        let expected = r#"plain,"a,b","""q"" """,,\x0d\n"#;
        assert_eq!(String::from_utf8(out).unwrap(), format!("{expected}\n"));
    }

    #[test]
    fn only_spreadsheets_get_guards_and_only_before_text() {
        let cells = [
            CellValue::Text(b"=1+1"),
            CellValue::Text(b"'=1+1"),
            CellValue::Text(b"@a,b"),
            CellValue::Text(b"a=b"),
            CellValue::Signed(-7),
            CellValue::Double(f64::NEG_INFINITY),
        ];
        fn written(mut csv: impl TableWriter, cells: &[CellValue<'_>]) -> String {
            let mut out = Vec::new();
            csv.header(&["-h".to_owned()], &mut out);
            cells.iter().enumerate().for_each(|(column, cell)| csv.cell(column, *cell, &mut out));
            String::from_utf8(out).unwrap()
        }
        assert_eq!(written(Csv::<false>::default(), &cells), "-h\n=1+1,'=1+1,\"@a,b\",a=b,-7,-inf");
        let guarded = "'-h\n'=1+1,''=1+1,\"'@a,b\",a=b,-7,-inf";
        assert_eq!(written(Csv::<true>::default(), &cells), guarded);
    }
}
