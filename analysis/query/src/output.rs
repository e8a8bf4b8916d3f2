//! Writes answers as text: tables for people and for programs.
//!
//! Text from a target is escaped (`ppt_text`), so that a terminal does not interpret it. Numbers are
//! digits in every format. NULL is an empty cell; in JSON, it is null.

use std::io::{self, Write};
use std::str::FromStr;

use datafusion::arrow::array::{Array, RecordBatch};
use datafusion::arrow::datatypes::{DataType, Field, SchemaRef};
use datafusion::arrow::error::ArrowError;
use datafusion::arrow::util::display::{ArrayFormatter, FormatOptions};
use ppt_text::{begins_formula, csv_cell, escape_cell, escaped as plain, json_string};

/// The format of an answer.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ResultFormat {
    /// Columns side by side, for people.
    Aligned,
    /// Tab-separated values, as `ppt dump` writes them.
    Tsv,
    /// Comma-separated values, RFC 4180, with the escapes of TSV.
    Csv,
    /// CSV with `'` before text that a spreadsheet might take for a formula.
    CsvForSpreadsheet,
    /// An object per line.
    JsonLines,
    /// An array of objects.
    Json,
    /// A Markdown table.
    Markdown,
    /// An Arrow IPC stream.
    Arrow,
    /// Parquet, compressed with zstd.
    Parquet,
}

impl ResultFormat {
    /// All formats that can be chosen, with the words for them.
    pub const ALL: [(&'static str, ResultFormat); 8] = [
        ("table", ResultFormat::Aligned),
        ("tsv", ResultFormat::Tsv),
        ("csv", ResultFormat::Csv),
        ("jsonl", ResultFormat::JsonLines),
        ("json", ResultFormat::Json),
        ("md", ResultFormat::Markdown),
        ("arrow", ResultFormat::Arrow),
        ("parquet", ResultFormat::Parquet),
    ];

    /// The variant of this format for spreadsheets, if there is one.
    pub fn for_spreadsheet(self) -> Option<ResultFormat> {
        (self == ResultFormat::Csv).then_some(ResultFormat::CsvForSpreadsheet)
    }

    /// Whether it is binary, and so not for a terminal.
    pub fn is_binary(self) -> bool {
        matches!(self, ResultFormat::Arrow | ResultFormat::Parquet)
    }
}

impl FromStr for ResultFormat {
    type Err = String;

    fn from_str(word: &str) -> Result<ResultFormat, String> {
        let found = ResultFormat::ALL.into_iter().find(|(name, _)| *name == word);
        let words = || ResultFormat::ALL.map(|(name, _)| name).join(", ");
        found.map(|(_, format)| format).ok_or_else(|| format!("expected one of {}", words()))
    }
}

/// The number of rows of an aligned table that are measured before the first one is written.
const MEASURED_ROWS: usize = 1000;

/// Writes an answer, batch by batch.
#[derive(Debug)]
pub(crate) struct TextWriter<W> {
    out: W,
    format: ResultFormat,
    schema: SchemaRef,
    begun: bool,
    /// The rows of an aligned table before its first line is written.
    held: Vec<Vec<String>>,
    widths: Vec<usize>,
}

impl<W: Write> TextWriter<W> {
    /// A writer for rows of these columns.
    pub fn new(out: W, format: ResultFormat, schema: SchemaRef) -> TextWriter<W> {
        let widths = schema.fields().iter().map(|field| width(&plain(field.name()))).collect();
        TextWriter { out, format, schema, begun: false, held: Vec::new(), widths }
    }

    /// Writes rows.
    ///
    /// # Errors
    /// The output fails.
    pub fn write(&mut self, batch: &RecordBatch) -> io::Result<()> {
        let options = FormatOptions::new().with_display_error(true);
        let columns = batch.columns().iter();
        let columns = columns.map(|column| ArrayFormatter::try_new(column.as_ref(), &options));
        let columns: Vec<_> =
            columns.collect::<Result<_, ArrowError>>().map_err(io::Error::other)?;
        for row in 0..batch.num_rows() {
            let cells: Vec<Option<String>> = columns
                .iter()
                .zip(batch.columns())
                .map(|(text, column)| (!column.is_null(row)).then(|| text.value(row).to_string()))
                .collect();
            self.row(cells)?;
        }
        Ok(())
    }

    /// Writes the remaining rows.
    ///
    /// # Errors
    /// The output fails.
    pub fn finish(mut self) -> io::Result<W> {
        self.begin()?;
        if self.format == ResultFormat::Json {
            self.out.write_all(b"\n]\n")?;
        }
        Ok(self.out)
    }

    fn row(&mut self, cells: Vec<Option<String>>) -> io::Result<()> {
        if self.format == ResultFormat::Aligned && !self.begun {
            let cells: Vec<String> =
                cells.iter().map(|cell| plain(cell.as_deref().unwrap_or_default())).collect();
            for (widest, cell) in self.widths.iter_mut().zip(&cells) {
                *widest = width(cell).max(*widest);
            }
            self.held.push(cells);
            return if self.held.len() == MEASURED_ROWS { self.begin() } else { Ok(()) };
        }
        let first = !self.begun;
        self.begin()?;
        let text = |cell: &Option<String>| cell.clone().unwrap_or_default();
        match self.format {
            ResultFormat::Aligned => {
                let cells: Vec<String> = cells.iter().map(|cell| plain(&text(cell))).collect();
                self.aligned(&cells)
            }
            ResultFormat::Tsv => self.line(cells.iter().map(|cell| escaped(&text(cell))), "\t", ""),
            ResultFormat::Csv => {
                self.line(cells.iter().map(|cell| quoted(&text(cell), false)), ",", "")
            }
            ResultFormat::CsvForSpreadsheet => {
                let fields = self.schema.fields().clone();
                let cells = fields
                    .iter()
                    .zip(&cells)
                    .map(|(field, cell)| quoted(&text(cell), !is_numeric(field)));
                self.line(cells, ",", "")
            }
            ResultFormat::Markdown => {
                self.line(cells.iter().map(|cell| markdown(&text(cell))), " | ", "| ")
            }
            ResultFormat::Json | ResultFormat::JsonLines => {
                let json = self.format == ResultFormat::Json;
                if json && !first {
                    self.out.write_all(b",\n")?;
                }
                let object = self.object(&cells);
                self.out.write_all(object.as_bytes())?;
                if json { Ok(()) } else { self.out.write_all(b"\n") }
            }
            ResultFormat::Arrow | ResultFormat::Parquet => Err(io::ErrorKind::Unsupported.into()),
        }
    }

    /// Writes everything before the first row, once.
    fn begin(&mut self) -> io::Result<()> {
        if std::mem::replace(&mut self.begun, true) {
            return Ok(());
        }
        let names: Vec<String> =
            self.schema.fields().iter().map(|field| field.name().clone()).collect();
        match self.format {
            ResultFormat::Aligned => {
                let names: Vec<String> = names.iter().map(|name| plain(name)).collect();
                self.aligned(&names)?;
                let held = std::mem::take(&mut self.held);
                held.iter().try_for_each(|cells| self.aligned(cells))
            }
            ResultFormat::Tsv => self.line(names.iter().map(|name| escaped(name)), "\t", ""),
            ResultFormat::Csv => self.line(names.iter().map(|name| quoted(name, false)), ",", ""),
            ResultFormat::CsvForSpreadsheet => {
                self.line(names.iter().map(|name| quoted(name, true)), ",", "")
            }
            ResultFormat::Markdown => {
                self.line(names.iter().map(|name| markdown(name)), " | ", "| ")?;
                self.line(names.iter().map(|_| "---".to_owned()), " | ", "| ")
            }
            ResultFormat::Json => self.out.write_all(b"[\n"),
            ResultFormat::JsonLines => Ok(()),
            ResultFormat::Arrow | ResultFormat::Parquet => Err(io::ErrorKind::Unsupported.into()),
        }
    }

    /// Writes a line. `around` begins the line and, reversed, ends it.
    fn line(
        &mut self,
        cells: impl Iterator<Item = String>,
        between: &str,
        around: &str,
    ) -> io::Result<()> {
        let cells: Vec<String> = cells.collect();
        let end: String = around.chars().rev().collect();
        writeln!(self.out, "{around}{}{end}", cells.join(between))
    }

    fn aligned(&mut self, cells: &[String]) -> io::Result<()> {
        let mut line = String::new();
        for (column, cell) in cells.iter().enumerate() {
            let room = " ".repeat(self.widths[column].saturating_sub(width(cell)));
            let right = is_numeric(self.schema.field(column));
            let separate = if column > 0 { "  " } else { "" };
            let (before, after) = if right { (room, String::new()) } else { (String::new(), room) };
            line.extend([separate, &before, cell, &after]);
        }
        writeln!(self.out, "{}", line.trim_end())
    }

    fn object(&self, cells: &[Option<String>]) -> String {
        let mut object = String::from("{");
        for (field, cell) in self.schema.fields().iter().zip(cells) {
            if object.len() > 1 {
                object.push(',');
            }
            object.push_str(&json(field.name()));
            object.push(':');
            match cell {
                None => object.push_str("null"),
                Some(cell) if is_plain(field, cell) => object.push_str(cell),
                Some(cell) => object.push_str(&json(cell)),
            }
        }
        object.push('}');
        object
    }
}

/// A text column of numbers, some of which do not fit into any number type.
///
/// Text formats write such a column as they write a column of numbers.
pub fn spelled_numbers(name: &str) -> Field {
    let metadata = [(SPELLED.to_owned(), "number".to_owned())];
    Field::new(name, DataType::Utf8, true).with_metadata(metadata.into())
}

/// The key of the metadata that marks such a column.
const SPELLED: &str = "ppt.spelled";

fn is_spelled(field: &Field) -> bool {
    field.metadata().contains_key(SPELLED)
}

fn is_numeric(field: &Field) -> bool {
    field.data_type().is_numeric() || is_spelled(field)
}

/// Whether the value needs no quotes in JSON.
fn is_plain(field: &Field, cell: &str) -> bool {
    match field.data_type() {
        DataType::Boolean => true,
        _ if is_spelled(field) => cell.parse::<f64>().is_ok_and(f64::is_finite),
        ty if ty.is_floating() => cell.parse::<f64>().is_ok_and(f64::is_finite),
        ty => ty.is_numeric(),
    }
}

/// Text as JSON.
fn json(text: &str) -> String {
    let mut out = Vec::with_capacity(text.len() + 2);
    json_string(text.as_bytes(), &mut out);
    String::from_utf8_lossy(&out).into_owned()
}

fn width(text: &str) -> usize {
    text.chars().count()
}

/// A cell of TSV.
fn escaped(text: &str) -> String {
    let mut out = Vec::with_capacity(text.len());
    escape_cell(text.as_bytes(), &mut out);
    String::from_utf8_lossy(&out).into_owned()
}

/// A cell of CSV. `guards`: add a `'` before formulas, for spreadsheets.
fn quoted(text: &str, guards: bool) -> String {
    let guard = if guards && begins_formula(text.as_bytes()) { "'" } else { "" };
    let mut out = Vec::with_capacity(text.len());
    csv_cell(format!("{guard}{}", escaped(text)).as_bytes(), &mut out);
    String::from_utf8_lossy(&out).into_owned()
}

fn markdown(text: &str) -> String {
    let mut out = String::new();
    for char in plain(text).chars() {
        match char {
            '<' => out.push_str("&lt;"),
            '&' => out.push_str("&amp;"),
            '|' | '\\' | '`' | '*' | '_' | '[' | ']' => out.extend(['\\', char]),
            char => out.push(char),
        }
    }
    out
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use datafusion::arrow::array::{ArrayRef, Float64Array, Int64Array, StringArray};

    use super::*;

    fn written(format: ResultFormat) -> String {
        let columns: Vec<(&str, ArrayRef)> = vec![
            ("n", Arc::new(Int64Array::from(vec![Some(-7), None]))),
            ("x", Arc::new(Float64Array::from(vec![f64::NAN, 0.5]))),
            ("text", Arc::new(StringArray::from(vec!["=a\u{1b}[1m", "<b>\\,\""]))),
        ];
        let batch = RecordBatch::try_from_iter(columns).unwrap();
        let mut output = TextWriter::new(Vec::new(), format, batch.schema());
        output.write(&batch).unwrap();
        String::from_utf8(output.finish().unwrap()).unwrap()
    }

    #[test]
    fn spelled_numbers_look_like_numbers() {
        use datafusion::arrow::datatypes::Schema;
        let schema = Arc::new(Schema::new(vec![spelled_numbers("n")]));
        let cells = ["18446744073709551615", "0.5", "inf"];
        let column: ArrayRef = Arc::new(StringArray::from(cells.to_vec()));
        let batch = RecordBatch::try_new(schema, vec![column]).unwrap();
        let text = |format| {
            let mut output = TextWriter::new(Vec::new(), format, batch.schema());
            output.write(&batch).unwrap();
            String::from_utf8(output.finish().unwrap()).unwrap()
        };
        let lines = "{\"n\":18446744073709551615}\n{\"n\":0.5}\n{\"n\":\"inf\"}\n";
        assert_eq!(text(ResultFormat::JsonLines), lines);
        let aligned = text(ResultFormat::Aligned);
        assert!(aligned.contains("\n                 0.5\n"), "{aligned}");
    }

    #[test]
    fn every_format_writes_the_same_rows() {
        assert_eq!(
            written(ResultFormat::Tsv),
            "n\tx\ttext\n-7\tNaN\t=a\\x1b[1m\n\t0.5\t<b>\\\\,\"\n"
        );
        assert_eq!(
            written(ResultFormat::Csv),
            "n,x,text\n-7,NaN,=a\\x1b[1m\n,0.5,\"<b>\\\\,\"\"\"\n"
        );
        assert_eq!(
            written(ResultFormat::CsvForSpreadsheet),
            "n,x,text\n-7,NaN,'=a\\x1b[1m\n,0.5,\"<b>\\\\,\"\"\"\n"
        );
        assert_eq!(
            written(ResultFormat::Aligned),
            " n    x  text\n-7  NaN  =a\\x1b[1m\n    0.5  <b>\\,\"\n"
        );
        assert_eq!(
            written(ResultFormat::JsonLines),
            "{\"n\":-7,\"x\":\"NaN\",\"text\":\"=a\\u001b[1m\"}\n\
             {\"n\":null,\"x\":0.5,\"text\":\"<b>\\\\,\\\"\"}\n"
        );
        assert_eq!(
            written(ResultFormat::Json),
            "[\n{\"n\":-7,\"x\":\"NaN\",\"text\":\"=a\\u001b[1m\"},\n\
             {\"n\":null,\"x\":0.5,\"text\":\"<b>\\\\,\\\"\"}\n]\n"
        );
        assert_eq!(
            written(ResultFormat::Markdown),
            "| n | x | text |\n| --- | --- | --- |\n| -7 | NaN | =a\\\\x1b\\[1m |\n\
             |  | 0.5 | &lt;b>\\\\,\" |\n"
        );
    }
}
