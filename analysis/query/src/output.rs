//! Answers as text: tables for people, and for programs.
//!
//! Text from a target gets out escaped: control characters, DEL and C1 as `\xNN`, so that no terminal
//! obeys them. Numbers are digits in every format; NULL is an empty cell, in JSON null.

use std::io::{self, Write};
use std::str::FromStr;

use datafusion::arrow::array::{Array, RecordBatch};
use datafusion::arrow::datatypes::{DataType, SchemaRef};
use datafusion::arrow::error::ArrowError;
use datafusion::arrow::util::display::{ArrayFormatter, FormatOptions};

/// What an answer looks like.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Format {
    /// Columns side by side, for people.
    Aligned,
    /// Tab-separated values, as `ppt dump` writes them.
    Tsv,
    /// Comma-separated values, RFC 4180. Text that a spreadsheet takes for a formula begins with `'`.
    Csv,
    /// An object per line.
    JsonLines,
    /// An array of objects.
    Json,
    /// A table of Markdown.
    Markdown,
    /// A stream of Arrow's IPC.
    Arrow,
    /// Parquet, zstd.
    Parquet,
}

impl Format {
    /// All of them, by the words that choose them.
    pub const ALL: [(&'static str, Format); 8] = [
        ("table", Format::Aligned),
        ("tsv", Format::Tsv),
        ("csv", Format::Csv),
        ("jsonl", Format::JsonLines),
        ("json", Format::Json),
        ("md", Format::Markdown),
        ("arrow", Format::Arrow),
        ("parquet", Format::Parquet),
    ];

    /// Whether it is no text: not for a terminal.
    pub fn is_binary(self) -> bool {
        matches!(self, Format::Arrow | Format::Parquet)
    }
}

impl FromStr for Format {
    type Err = String;

    fn from_str(word: &str) -> Result<Format, String> {
        let found = Format::ALL.into_iter().find(|(known, _)| *known == word);
        let words = || Format::ALL.map(|(known, _)| known).join(", ");
        found.map(|(_, format)| format).ok_or_else(|| format!("expected one of {}", words()))
    }
}

/// Rows whose widths are looked at before an aligned table begins.
const LOOKED_AT: usize = 1000;

/// Writes an answer, batch by batch.
#[derive(Debug)]
pub(crate) struct Output<W> {
    out: W,
    format: Format,
    schema: SchemaRef,
    begun: bool,
    /// Rows of an aligned table that is not begun.
    held: Vec<Vec<String>>,
    widths: Vec<usize>,
}

impl<W: Write> Output<W> {
    /// Writes rows of these columns.
    pub fn new(out: W, format: Format, schema: SchemaRef) -> Output<W> {
        let widths = schema.fields().iter().map(|field| width(&plain(field.name()))).collect();
        Output { out, format, schema, begun: false, held: Vec::new(), widths }
    }

    /// Writes rows.
    ///
    /// # Errors
    /// Those of the output.
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

    /// Writes what is left.
    ///
    /// # Errors
    /// Those of the output.
    pub fn finish(mut self) -> io::Result<W> {
        self.begin()?;
        if self.format == Format::Json {
            self.out.write_all(b"\n]\n")?;
        }
        Ok(self.out)
    }

    fn row(&mut self, cells: Vec<Option<String>>) -> io::Result<()> {
        if self.format == Format::Aligned && !self.begun {
            let cells: Vec<String> =
                cells.iter().map(|cell| plain(cell.as_deref().unwrap_or_default())).collect();
            for (known, cell) in self.widths.iter_mut().zip(&cells) {
                *known = width(cell).max(*known);
            }
            self.held.push(cells);
            return if self.held.len() == LOOKED_AT { self.begin() } else { Ok(()) };
        }
        let first = !self.begun;
        self.begin()?;
        let text = |cell: &Option<String>| cell.clone().unwrap_or_default();
        match self.format {
            Format::Aligned => {
                let cells: Vec<String> = cells.iter().map(|cell| plain(&text(cell))).collect();
                self.aligned(&cells)
            }
            Format::Tsv => self.line(cells.iter().map(|cell| escaped(&text(cell))), "\t", ""),
            Format::Csv => self.line(cells.iter().map(|cell| quoted(&text(cell))), ",", ""),
            Format::Markdown => {
                self.line(cells.iter().map(|cell| markdown(&text(cell))), " | ", "| ")
            }
            Format::Json | Format::JsonLines => {
                let json = self.format == Format::Json;
                if json && !first {
                    self.out.write_all(b",\n")?;
                }
                let object = self.object(&cells);
                self.out.write_all(object.as_bytes())?;
                if json { Ok(()) } else { self.out.write_all(b"\n") }
            }
            Format::Arrow | Format::Parquet => Err(io::ErrorKind::Unsupported.into()),
        }
    }

    /// Writes what comes before the first row.
    fn begin(&mut self) -> io::Result<()> {
        if std::mem::replace(&mut self.begun, true) {
            return Ok(());
        }
        let names: Vec<String> =
            self.schema.fields().iter().map(|field| field.name().clone()).collect();
        match self.format {
            Format::Aligned => {
                let names: Vec<String> = names.iter().map(|name| plain(name)).collect();
                self.aligned(&names)?;
                let held = std::mem::take(&mut self.held);
                held.iter().try_for_each(|cells| self.aligned(cells))
            }
            Format::Tsv => self.line(names.iter().map(|name| escaped(name)), "\t", ""),
            Format::Csv => self.line(names.iter().map(|name| quoted(name)), ",", ""),
            Format::Markdown => {
                self.line(names.iter().map(|name| markdown(name)), " | ", "| ")?;
                self.line(names.iter().map(|_| "---".to_owned()), " | ", "| ")
            }
            Format::Json => self.out.write_all(b"[\n"),
            Format::JsonLines => Ok(()),
            Format::Arrow | Format::Parquet => Err(io::ErrorKind::Unsupported.into()),
        }
    }

    /// `around` begins and, turned around, ends the line.
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
            let right = self.schema.field(column).data_type().is_numeric();
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
            json_string(field.name(), &mut object);
            object.push(':');
            match cell {
                None => object.push_str("null"),
                Some(cell) if is_plain(field.data_type(), cell) => object.push_str(cell),
                Some(cell) => json_string(cell, &mut object),
            }
        }
        object.push('}');
        object
    }
}

/// Whether JSON has the value without quotes.
fn is_plain(ty: &DataType, cell: &str) -> bool {
    match ty {
        DataType::Boolean => true,
        ty if ty.is_floating() => cell.parse::<f64>().is_ok_and(f64::is_finite),
        ty => ty.is_numeric(),
    }
}

fn width(text: &str) -> usize {
    text.chars().count()
}

/// Whether a terminal may obey it, or show what is around it in another order.
fn is_control(char: char) -> bool {
    char.is_control() || matches!(char, '\u{202a}'..='\u{202e}' | '\u{2066}'..='\u{2069}')
}

/// Text from a target without what a terminal obeys; on one line.
pub fn plain(text: &str) -> String {
    if !text.contains(is_control) {
        return text.to_owned();
    }
    let mut out = String::new();
    for char in text.chars() {
        match char {
            '\t' => out.push_str("\\t"),
            '\n' => out.push_str("\\n"),
            char if char.is_control() => {
                out.push_str(&format!("\\x{:02x}", u32::from(char)));
            }
            char if is_control(char) => out.push_str(&format!("\\u{:04x}", u32::from(char))),
            char => out.push(char),
        }
    }
    out
}

/// JSON without what a terminal obeys: the same JSON, since such a character stands in strings alone.
pub fn plain_json(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    for char in text.chars() {
        match char {
            // White space between values.
            '\n' => out.push(char),
            char if is_control(char) => out.push_str(&format!("\\u{:04x}", u32::from(char))),
            char => out.push(char),
        }
    }
    out
}

/// The same, and what was a backslash can be told from it.
fn escaped(text: &str) -> String {
    plain(&text.replace('\\', "\\\\"))
}

fn quoted(text: &str) -> String {
    let number = text.parse::<f64>().is_ok();
    let formula = !number && text.starts_with(['=', '+', '-', '@']);
    let text = if formula { format!("'{}", escaped(text)) } else { escaped(text) };
    match text.contains([',', '"']) {
        true => format!("\"{}\"", text.replace('"', "\"\"")),
        false => text,
    }
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

fn json_string(text: &str, out: &mut String) {
    out.push('"');
    for char in text.chars() {
        match char {
            '"' | '\\' => out.extend(['\\', char]),
            char if is_control(char) => out.push_str(&format!("\\u{:04x}", u32::from(char))),
            char => out.push(char),
        }
    }
    out.push('"');
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use datafusion::arrow::array::{ArrayRef, Float64Array, Int64Array, StringArray};

    use super::*;

    fn written(format: Format) -> String {
        let columns: Vec<(&str, ArrayRef)> = vec![
            ("n", Arc::new(Int64Array::from(vec![Some(-7), None]))),
            ("x", Arc::new(Float64Array::from(vec![f64::NAN, 0.5]))),
            ("text", Arc::new(StringArray::from(vec!["=a\u{1b}[1m", "<b>\\,\""]))),
        ];
        let batch = RecordBatch::try_from_iter(columns).unwrap();
        let mut output = Output::new(Vec::new(), format, batch.schema());
        output.write(&batch).unwrap();
        String::from_utf8(output.finish().unwrap()).unwrap()
    }

    #[test]
    fn what_a_terminal_obeys_is_written_out() {
        assert_eq!(plain("a\u{202e}\u{9b}b\n"), "a\\u202e\\x9bb\\n");
        let value = serde_json::json!({"unit\u{9b}": "\u{2066}ä"});
        let text = plain_json(&value.to_string());
        assert!(!text.contains(is_control), "{text:?}");
        assert_eq!(serde_json::from_str::<serde_json::Value>(&text).unwrap(), value);
    }

    #[test]
    fn every_format_says_the_same() {
        assert_eq!(written(Format::Tsv), "n\tx\ttext\n-7\tNaN\t=a\\x1b[1m\n\t0.5\t<b>\\\\,\"\n");
        assert_eq!(written(Format::Csv), "n,x,text\n-7,NaN,'=a\\x1b[1m\n,0.5,\"<b>\\\\,\"\"\"\n");
        assert_eq!(
            written(Format::Aligned),
            " n    x  text\n-7  NaN  =a\\x1b[1m\n    0.5  <b>\\,\"\n"
        );
        assert_eq!(
            written(Format::JsonLines),
            "{\"n\":-7,\"x\":\"NaN\",\"text\":\"=a\\u001b[1m\"}\n\
             {\"n\":null,\"x\":0.5,\"text\":\"<b>\\\\,\\\"\"}\n"
        );
        assert_eq!(
            written(Format::Json),
            "[\n{\"n\":-7,\"x\":\"NaN\",\"text\":\"=a\\u001b[1m\"},\n\
             {\"n\":null,\"x\":0.5,\"text\":\"<b>\\\\,\\\"\"}\n]\n"
        );
        assert_eq!(
            written(Format::Markdown),
            "| n | x | text |\n| --- | --- | --- |\n| -7 | NaN | =a\\\\x1b\\[1m |\n\
             |  | 0.5 | &lt;b>\\\\,\" |\n"
        );
    }
}
