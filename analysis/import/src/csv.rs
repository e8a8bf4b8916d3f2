//! Text tables: a header line, and one line per frame.

use std::collections::HashMap;
use std::io::{Read, Write};

use csv::{ByteRecord, ReaderBuilder};
use ppt_frame_dsl::columns::STANDARD_COLUMNS;
use ppt_frame_dsl::schema::{Frame, Schema};
use ppt_frame_dsl::{ColumnType, Style, TimeType, columns};
use ppt_text::{did_you_mean, nearest, unescape_cell};

use crate::cell::CellParser;
use crate::error::ImportError;
use crate::recording::Recording;

/// The options of reading a table.
#[derive(Debug, Clone, Default)]
pub struct CsvOptions {
    /// The kind of frames of all lines. None for the only kind, or the value of the column `frame`.
    pub frame: Option<String>,
    /// Columns and their headers, if these differ.
    pub names: Vec<(String, String)>,
    /// Headers to ignore.
    pub skip: Vec<String>,
    /// Columns and the nanoseconds of their units. Other columns are in nanoseconds.
    pub units: Vec<(String, u64)>,
    /// The delimiter. None for a tab if the first line has one, otherwise a comma.
    pub delimiter: Option<u8>,
}

/// Headers in tables of ppt that no column needs.
const PPT_HEADERS: [&str; 4] = ["ts", "drained", "time", "count"];

/// Reads a table, and adds a frame for each line to `recording`.
///
/// Cells separated by tabs have the escapes of `ppt dump`; others may be quoted. A column is a name
/// of [`columns()`]. A timeval may be one column or two. The columns `tid` and `frame` have the thread
/// and the kind of frame of a line. The other [`STANDARD_COLUMNS`] are left out.
///
/// # Errors
/// The first line that is not a valid frame. Frames added before it remain.
pub fn import<W: Write>(
    input: impl Read,
    schema: &Schema,
    options: &CsvOptions,
    recording: &mut Recording<W>,
) -> Result<(), ImportError> {
    let (delimiter, input) = delimited(input, options.delimiter)?;
    let tabs = delimiter == b'\t';
    let mut reader = ReaderBuilder::new()
        .delimiter(delimiter)
        .quoting(!tabs)
        .has_headers(true)
        .from_reader(input);
    let headings = reader.byte_headers().map_err(|error| fault(error, &[]))?.clone();
    let headings: Vec<String> =
        headings.iter().map(|heading| String::from_utf8_lossy(heading).trim().to_owned()).collect();
    let table = Headings::new(schema, options, &headings)?;

    let mut record = ByteRecord::new();
    let mut frame = vec![0; recording.stride()];
    let mut unescaped = Vec::new();
    while reader.read_byte_record(&mut record).map_err(|error| fault(error, &headings))? {
        let line = record.position().map_or(0, csv::Position::line);
        let bad_cell = |at: usize, what: String| ImportError::Row {
            line,
            column: headings.get(at).cloned(),
            what,
        };
        let id = match &table.kind {
            LineFrame::One(id) => *id,
            LineFrame::Named(at) => {
                let name = String::from_utf8_lossy(record.get(*at).unwrap_or_default());
                let id = schema.frames.iter().position(|frame| frame.name == name.trim());
                id.ok_or_else(|| bad_cell(*at, format!("the frame file has no frame {name:?}")))?
            }
        };
        let tid = match table.tid {
            None => 0,
            Some(at) => {
                let text = String::from_utf8_lossy(record.get(at).unwrap_or_default());
                let text = text.trim();
                // `ppt dump` leaves the cell empty if the value is unknown.
                let tid = if text.is_empty() { Ok(0) } else { text.parse() };
                tid.map_err(|_| bad_cell(at, format!("{text:?} is not the number of a thread")))?
            }
        };
        frame.fill(0);
        for (at, cell) in &table.cells[id] {
            let text = record.get(*at).unwrap_or_default();
            let text = if tabs && text.contains(&b'\\') {
                unescaped.clear();
                unescape_cell(text, &mut unescaped);
                &unescaped
            } else {
                text
            };
            cell.put(&mut frame, text).map_err(|error| bad_cell(*at, error.to_string()))?;
        }
        recording.push(tid, id as u16, &mut frame).map_err(ImportError::Write)?;
    }
    Ok(())
}

/// The meaning of a table's headers.
struct Headings {
    kind: LineFrame,
    /// The position of the column `tid`.
    tid: Option<usize>,
    /// For each kind of frames, the positions of its cells in a line.
    cells: Vec<Vec<(usize, CellParser)>>,
}

/// The kind of frames of a line.
enum LineFrame {
    /// Each line is a frame of this kind.
    One(usize),
    /// The cell at this position names the kind of frames.
    Named(usize),
}

impl Headings {
    fn new(
        schema: &Schema,
        options: &CsvOptions,
        headings: &[String],
    ) -> Result<Headings, ImportError> {
        let mut places = HashMap::new();
        for (at, heading) in headings.iter().enumerate() {
            if places.insert(heading.as_str(), at).is_some() {
                let text = format!("the heading {heading:?} stands twice in the first line");
                return Err(ImportError::Headings(text));
            }
        }
        for name in options.names.iter().map(|name| &name.1).chain(&options.skip) {
            if !places.contains_key(name.as_str()) {
                let near = did_you_mean(&nearest(name, places.keys().copied()));
                return Err(ImportError::Headings(format!(
                    "no column has the heading {name}{near}"
                )));
            }
        }
        let kind = kind(schema, options, &places)?;
        let mut left: Vec<bool> = vec![true; headings.len()];
        let mut known = Vec::new();
        let mut cells = Vec::new();
        for (id, frame) in schema.frames.iter().enumerate() {
            let is_wanted = matches!(kind, LineFrame::Named(_))
                || matches!(kind, LineFrame::One(it) if it == id);
            let found = if is_wanted {
                cells_of(schema, frame, options, &places, &mut known)?
            } else {
                Vec::new()
            };
            found.iter().for_each(|(at, _)| left[*at] = false);
            cells.push(found);
        }
        let tid =
            if known.iter().any(|text| text == "tid") { None } else { places.get("tid").copied() };
        for name in
            options.names.iter().map(|name| &name.0).chain(options.units.iter().map(|unit| &unit.0))
        {
            if !known.contains(name) {
                let near = did_you_mean(&nearest(name, known.iter().map(String::as_str)));
                return Err(ImportError::Frames(format!("no frame has a column {name}{near}")));
            }
        }
        let unknown = headings.iter().zip(left).find(|(heading, left)| {
            let is_of_ppt = STANDARD_COLUMNS.contains(&heading.as_str())
                || PPT_HEADERS.contains(&heading.as_str());
            *left && !is_of_ppt && !options.skip.contains(heading)
        });
        if let Some((heading, _)) = unknown {
            let near = did_you_mean(&nearest(heading, known.iter().map(String::as_str)));
            return Err(ImportError::Headings(format!(
                "the frame file has no column {heading:?}{near}. Name it (--column \
                 FIELD={heading}), or leave it out (--skip {heading})"
            )));
        }
        Ok(Headings { kind, tid, cells })
    }
}

fn kind(
    schema: &Schema,
    options: &CsvOptions,
    places: &HashMap<&str, usize>,
) -> Result<LineFrame, ImportError> {
    if let Some(name) = &options.frame {
        let id = schema.frames.iter().position(|frame| frame.name == *name);
        return id.map(LineFrame::One).ok_or_else(|| {
            let near =
                did_you_mean(&nearest(name, schema.frames.iter().map(|frame| frame.name.as_str())));
            ImportError::Frames(format!("the frame file has no frame {name}{near}"))
        });
    }
    match (schema.frames.len(), places.get("frame")) {
        (1, _) => Ok(LineFrame::One(0)),
        (_, Some(&at)) => Ok(LineFrame::Named(at)),
        (count, None) => Err(ImportError::Frames(format!(
            "the frame file has {count} frames, and the table has no column `frame` that says which \
             of them a line is. Choose one with --frame"
        ))),
    }
}

/// The cells of a frame with their positions in a line. Adds the names of its columns to `known`.
fn cells_of(
    schema: &Schema,
    frame: &Frame,
    options: &CsvOptions,
    places: &HashMap<&str, usize>,
    known: &mut Vec<String>,
) -> Result<Vec<(usize, CellParser)>, ImportError> {
    let heading = |column: &str| {
        let other = options.names.iter().find(|name| name.0 == column);
        places.get(other.map_or(column, |entry| &entry.1)).copied()
    };
    let mut cells = Vec::new();
    let texts = columns(schema, frame, Style::Text);
    for column in columns(schema, frame, Style::Sql) {
        if matches!(column.ty, ColumnType::Length { .. }) {
            continue;
        }
        if column.ty == ColumnType::Time(TimeType::Ticks) {
            return Err(ImportError::Frames(format!(
                "{}.{} counts ticks of a CPU, which no file from elsewhere holds. Use `option time ns \
                 realtime;`, or @clock at the field",
                frame.name, column.name
            )));
        }
        // A timeval may be two columns, as in the tables of `ppt dump`.
        let halves: Vec<_> = match column.ty {
            ColumnType::Time(TimeType::Timeval) => {
                texts.iter().filter(|text| text.offset == column.offset).cloned().collect()
            }
            _ => Vec::new(),
        };
        let names = || std::iter::once(&column).chain(&halves).map(|column| column.name.clone());
        known.extend(names());
        let whole = heading(&column.name).map(|at| vec![(at, &column)]);
        let parts = || {
            let found: Option<Vec<_>> =
                halves.iter().map(|half| Some((heading(&half.name)?, half))).collect();
            found.filter(|found| !found.is_empty())
        };
        let Some(found) = whole.or_else(parts) else {
            let near = did_you_mean(&nearest(&column.name, places.keys().copied()));
            return Err(ImportError::Headings(format!(
                "the table has no column {}, which frame {} needs{near}. If it has another heading: \
                 --column {}=HEADING",
                column.name, frame.name, column.name
            )));
        };
        for (at, part) in found {
            let unit = options.units.iter().find(|unit| unit.0 == part.name);
            let Some(cell) = CellParser::for_column(schema, part, unit.map_or(1, |unit| unit.1))
            else {
                continue;
            };
            if unit.is_some() && !cell.has_unit() {
                let text =
                    format!("{} is neither a time nor a duration: it has no --unit", part.name);
                return Err(ImportError::Frames(text));
            }
            cells.push((at, cell));
        }
    }
    Ok(cells)
}

/// The delimiter, and the input from its first byte on. A byte order mark is skipped.
fn delimited(mut input: impl Read, stated: Option<u8>) -> Result<(u8, impl Read), ImportError> {
    let mut head = vec![0; 64 << 10];
    let mut len = 0;
    while len < head.len() && !head[..len].contains(&b'\n') {
        match input.read(&mut head[len..]) {
            Ok(0) => break,
            Ok(read) => len += read,
            Err(error) if error.kind() == std::io::ErrorKind::Interrupted => {}
            Err(error) => return Err(ImportError::Read(error)),
        }
    }
    head.truncate(len);
    if head.is_empty() {
        return Err(ImportError::Format("the input is empty: it has no line of headings".into()));
    }
    if head.contains(&0) {
        let text = "the input is neither text nor a pcap file";
        return Err(ImportError::Format(text.into()));
    }
    let skipped = if head.starts_with(b"\xef\xbb\xbf") { 3 } else { 0 };
    let line = head.split(|&byte| byte == b'\n').next().unwrap_or_default();
    let found = if line.contains(&b'\t') { b'\t' } else { b',' };
    let rest = std::io::Cursor::new(head.split_off(skipped)).chain(input);
    Ok((stated.unwrap_or(found), rest))
}

fn fault(error: csv::Error, headings: &[String]) -> ImportError {
    match error.into_kind() {
        csv::ErrorKind::Io(error) => ImportError::Read(error),
        csv::ErrorKind::UnequalLengths { pos, len, .. } => ImportError::Row {
            line: pos.map_or(0, |pos| pos.line()),
            column: None,
            what: format!("the line has {len} cells, and the first line {}", headings.len()),
        },
        other => ImportError::Format(format!("the input is not a table: {other:?}")),
    }
}
