//! Rows from tables instead of the index: spans and chains of processes (`spans.NAME.PROCESS`), and the states
//! of threads (`states.THREAD`).
//!
//! SQL sums the intervals that are narrower than a pixel, and returns the others one by one.

use std::collections::HashMap;

use ppt_query::{Engine, FrameTable, RowUnit, sql_literal};
use ppt_text::escaped;
use ppt_view::{About, Cell, FramePlace, NO_NAME, RowId, SINGLE, give_lanes};
use serde::Deserialize;
use serde_json::{Value, json};

use crate::error::HttpRefusal;
use crate::frame::{FrameKey, quoted};
use crate::session::ViewSession;
use crate::table::{QueryTable, ask};
use crate::times::time;

/// The states of threads, in the order of their names.
const STATES: [&str; 4] = ["running", "runnable", "blocked", "unknown"];
/// The most wide cells of a row. A row has as many narrow cells as pixels.
const MAX_WIDE_CELLS: usize = 8192;
/// The most rows of one query.
const MAX_ROWS_PER_QUERY: usize = 32;
/// The chunk of a cell from a table, which has no frame.
const NO_CHUNK: u32 = u32::MAX;

/// A row from a table.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum TableRow {
    /// The spans or chains of a table, of one process.
    Spans { table: String, process: usize },
    /// The states of a thread.
    States { thread: u32 },
}

/// A request for a span, a chain or a state, by its row and its beginning.
#[derive(Debug, Deserialize)]
pub(crate) struct EntryQuery {
    row: String,
    at: String,
}

impl TableRow {
    /// The row with this id. None if it is not from a table.
    pub fn parse(id: &str) -> Option<TableRow> {
        if let Some(thread) = id.strip_prefix("states.") {
            return Some(TableRow::States { thread: thread.parse().ok()? });
        }
        let (table, process) = id.strip_prefix("spans.")?.rsplit_once('.')?;
        Some(TableRow::Spans { table: table.to_owned(), process: process.parse().ok()? })
    }

    pub fn id(&self) -> String {
        match self {
            TableRow::Spans { table, process } => format!("spans.{table}.{process}"),
            TableRow::States { thread } => format!("states.{thread}"),
        }
    }
}

/// A table of spans or chains.
struct WholeTable {
    /// The name in SQL.
    reference: String,
    /// The name for display.
    name: String,
    /// The column with the lengths.
    length: &'static str,
}

/// The tables of spans and chains.
fn wholes(engine: &Engine) -> Vec<WholeTable> {
    let whole = |(table, unit): (FrameTable, RowUnit)| {
        let length = match unit {
            RowUnit::Frame => return None,
            RowUnit::Span => "dur",
            RowUnit::Chain => "total",
        };
        Some(WholeTable { reference: table.name.to_quoted_string(), name: table.frame, length })
    };
    engine.spans_and_chains(None).into_iter().filter_map(whole).collect()
}

/// The names of cells in these rows. Their numbers follow those of the view.
pub(crate) fn names(engine: &Engine) -> Vec<Value> {
    let states = STATES.map(|state| json!({ "name": state, "buffer": "kernel" }));
    let wholes = wholes(engine).into_iter();
    states
        .into_iter()
        .chain(wholes.map(|whole| json!({ "name": escaped(&whole.name), "buffer": "" })))
        .collect()
}

/// The rows from tables, by the row of the index that they follow.
pub(crate) fn rows(engine: &Engine, about: &About) -> HashMap<RowId, Vec<Value>> {
    let row = |layer: &TableRow, parent: RowId, label: &str| {
        json!({
            "id": layer.id(), "parent": parent.to_string(), "label": escaped(label), "unit": "",
            "count": "0", "lost": "0", "from": null, "to": null,
        })
    };
    let mut rows: HashMap<RowId, Vec<Value>> = HashMap::new();
    let tables = wholes(engine);
    for process in 0..about.processes.len() {
        let parent = RowId::Process(process as u32);
        for WholeTable { reference, name, .. } in &tables {
            let layer = TableRow::Spans { table: reference.clone(), process };
            rows.entry(parent).or_default().push(row(&layer, parent, name));
        }
    }
    if engine.set().has_kernel() {
        for thread in &about.rows {
            let RowId::Thread(number) = thread.id else { continue };
            if thread.tid.is_some() {
                let states = row(&TableRow::States { thread: number }, thread.id, "states");
                rows.entry(thread.id).or_default().push(states);
            }
        }
    }
    rows
}

/// The process or the thread that a row of the page shows.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
struct RowOwner {
    host: String,
    pid: i64,
    tid: Option<i64>,
}

impl RowOwner {
    /// The condition of its rows in SQL.
    fn condition(&self) -> String {
        let tid = self.tid.map_or_else(String::new, |tid| format!(" AND tid = {tid}"));
        format!("pid = {} AND host = {}{tid}", self.pid, sql_literal(&self.host))
    }
}

/// The table of a row.
#[derive(Debug, Clone, PartialEq, Eq)]
struct RowSource {
    table: String,
    /// The column with the lengths.
    length: &'static str,
    /// The SQL expression of the number of a name, counted after the names of the view.
    name: String,
}

fn owner(about: &About, row: &TableRow) -> Option<RowOwner> {
    let (process, tid) = match row {
        TableRow::Spans { process, .. } => (*process, None),
        TableRow::States { thread } => {
            let id = RowId::Thread(*thread);
            let row = about.rows.iter().find(|row| row.id == id)?;
            let Some(RowId::Process(process)) = row.parent else { return None };
            (process as usize, Some(i64::from(row.tid?)))
        }
    };
    let process = about.processes.get(process)?;
    Some(RowOwner { host: process.host.clone(), pid: i64::from(process.pid), tid })
}

fn source(engine: &Engine, row: &TableRow) -> Option<RowSource> {
    match row {
        TableRow::Spans { table, .. } => {
            let wholes = wholes(engine);
            let number = wholes.iter().position(|whole| whole.reference == *table)?;
            let name = (STATES.len() + number).to_string();
            Some(RowSource { table: table.clone(), length: wholes[number].length, name })
        }
        TableRow::States { .. } => {
            let cases: String = (0..)
                .zip(STATES)
                .map(|(number, state)| format!(" WHEN '{state}' THEN {number}"))
                .collect();
            let name = format!("CASE state{cases} ELSE {} END", STATES.len() - 1);
            Some(RowSource { table: "thread_states".into(), length: "dur", name })
        }
    }
}

/// Divides rows into groups for one query each: adjacent rows of one table.
pub(crate) fn groups(rows: &[TableRow]) -> impl Iterator<Item = &[TableRow]> {
    let same_table = |row: &TableRow, next: &TableRow| match (row, next) {
        (TableRow::States { .. }, TableRow::States { .. }) => true,
        (TableRow::Spans { table, .. }, TableRow::Spans { table: other, .. }) => table == other,
        _ => false,
    };
    rows.chunk_by(same_table).flat_map(|group| group.chunks(MAX_ROWS_PER_QUERY))
}

/// The cells of rows of one table in a window, in the order of the rows. None for a row without an owner.
pub(crate) async fn cells(
    engine: &Engine,
    about: &About,
    rows: &[TableRow],
    (from_ns, to_ns, pixels): (i64, i64, u32),
) -> Result<Vec<Option<Vec<Cell>>>, HttpRefusal> {
    let Some(source) = rows.first().and_then(|first| source(engine, first)) else {
        return Ok(vec![None; rows.len()]);
    };
    // Processes of two captures may be one process, with a row for each capture.
    let mut places: HashMap<RowOwner, Vec<usize>> = HashMap::new();
    for (place, row) in rows.iter().enumerate() {
        if let Some(owner) = owner(about, row) {
            places.entry(owner).or_default().push(place);
        }
    }
    let mut cells: Vec<Option<Vec<Cell>>> = vec![None; rows.len()];
    if places.is_empty() {
        return Ok(cells);
    }
    places.values().flatten().for_each(|&place| cells[place] = Some(Vec::new()));
    let (wide, narrow) = queries(&source, places.keys(), (from_ns, to_ns, pixels));
    let names = about.names.len() as u32;
    let number = |row: &[Option<String>], at: usize| -> i64 {
        row.get(at).and_then(|cell| cell.as_ref()?.parse().ok()).unwrap_or(0)
    };
    let place = |row: &[Option<String>]| {
        let tid = row.get(2)?.as_ref().and_then(|tid| tid.parse().ok());
        let owner = RowOwner { host: row.first()?.clone()?, pid: number(row, 1), tid };
        places.get(&owner)
    };
    let cell = |start: i64, end: i64, name: i64| Cell {
        from: start,
        to: end,
        busy: end.saturating_sub(start).max(0) as u64,
        longest: end.saturating_sub(start).max(0) as u64,
        count: 1,
        best: FramePlace { chunk: NO_CHUNK, frame: 0 },
        best_name: u32::try_from(name).map_or(NO_NAME, |name| names + name),
        name: u32::try_from(name).map_or(NO_NAME, |name| names + name),
        share: u16::MAX,
        flags: SINGLE,
        lane: 0,
    };
    let mut add = |row: &[Option<String>], cell: Cell| {
        for &place in place(row).into_iter().flatten() {
            cells[place].get_or_insert_default().push(cell);
        }
    };
    for row in ask(engine, &wide, MAX_WIDE_CELLS * rows.len()).await?.rows {
        let (start, length) = (number(&row, 3), number(&row, 4));
        add(&row, cell(start, start.saturating_add(length), number(&row, 5)));
    }
    for row in ask(engine, &narrow, 2 * MAX_WIDE_CELLS * rows.len()).await?.rows {
        let single = cell(number(&row, 3), number(&row, 4), number(&row, 5));
        let count = number(&row, 8).max(1) as u64;
        let flags = if count == 1 { SINGLE } else { 0 };
        let (busy, longest) = (number(&row, 6).max(0) as u64, number(&row, 7).max(0) as u64);
        add(&row, Cell { busy, longest, count, flags, ..single });
    }
    for cells in cells.iter_mut().flatten() {
        cells.sort_by_key(|cell| (cell.from, cell.to));
        give_lanes(cells);
    }
    Ok(cells)
}

/// The SQL of rows of at least a pixel, and that of shorter ones, together for each pixel.
fn queries<'a>(
    source: &RowSource,
    owners: impl Iterator<Item = &'a RowOwner> + Clone,
    (from_ns, to_ns, pixels): (i64, i64, u32),
) -> (String, String) {
    let RowSource { table, length, name } = source;
    let list = |numbers: &mut dyn Iterator<Item = i64>| {
        let numbers: Vec<String> = numbers.map(|number| number.to_string()).collect();
        numbers.join(", ")
    };
    let pids = list(&mut owners.clone().map(|owner| owner.pid));
    let tids = list(&mut owners.filter_map(|owner| owner.tid));
    let (tid, of_threads) = if tids.is_empty() {
        ("NULL", String::new())
    } else {
        ("tid", format!(" AND tid IN ({tids})"))
    };
    let pixel = (to_ns.saturating_sub(from_ns) / i64::from(pixels)).max(1);
    let inner = format!(
        "SELECT host, pid, {tid} AS thread, CAST(ts AS BIGINT) AS start, {length} AS dur, {name} AS name \
         FROM {table} WHERE pid IN ({pids}){of_threads} \
         AND {length} IS NOT NULL AND ts < to_timestamp_nanos({to_ns}) \
         AND CAST(ts AS BIGINT) + {length} >= {from_ns}"
    );
    let long = format!(
        "SELECT host, pid, thread, start, dur, name FROM ({inner}) AS all_rows WHERE dur >= {pixel}"
    );
    let short = format!(
        "SELECT host, pid, thread, min(start), max(start + dur), first_value(name ORDER BY dur DESC), sum(dur), \
         max(dur), count(*) FROM ({inner}) AS all_rows WHERE dur < {pixel} \
         GROUP BY host, pid, thread, (start - {from_ns}) / {pixel}"
    );
    (long, short)
}

/// The fields of a row of a table that begins at the requested time, and its first frame.
pub(crate) async fn entry(session: &ViewSession, asked: &EntryQuery) -> Result<Value, HttpRefusal> {
    let layer = TableRow::parse(&asked.row)
        .ok_or_else(|| ppt_view::ViewError::NoSuchRow(asked.row.clone()))?;
    let at = time(&asked.at)?;
    let about = session.view().1.about();
    let engine = session.engine()?;
    let unknown = || ppt_view::ViewError::NoSuchRow(asked.row.clone());
    let RowSource { table, length, .. } = source(&engine, &layer).ok_or_else(unknown)?;
    let condition = owner(&about, &layer).ok_or_else(unknown)?.condition();
    let sql = format!(
        "SELECT * FROM {table} WHERE {condition} AND ts = to_timestamp_nanos({at}) ORDER BY {length} DESC"
    );
    let QueryTable { columns, mut rows, .. } = ask(&engine, &sql, 1).await?;
    let row = rows.pop().ok_or(ppt_view::ViewError::NoSuchFrame)?;
    let by_name: HashMap<&str, &Option<String>> =
        columns.iter().map(|column| column.name.as_str()).zip(&row).collect();
    let key = ["capture", "buffer", "segment", "ring", "seqno"]
        .map(|name| by_name.get(name).and_then(|cell| (*cell).clone()));
    let fields =
        columns.iter().zip(&row).filter(|(_, cell)| cell.is_some()).map(|(column, cell)| {
            let content =
                if ["dur", "total"].contains(&&*column.name) { "duration" } else { column.content };
            json!({ "name": column.name, "unit": "", "type": content, "text": cell })
        });
    let shown = match &layer {
        TableRow::Spans { table, .. } => table.clone(),
        TableRow::States { .. } => "thread_states".to_owned(),
    };
    let question = quoted(&format!("SELECT * FROM {shown} WHERE {condition}"));
    Ok(json!({
        "name": escaped(&shown),
        "fields": fields.collect::<Vec<_>>(),
        "key": FrameKey::from_cells(&key),
        "command": format!("ppt sql CAPTURE {question}"),
    }))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_question_answers_neighbours_of_one_table() {
        let spans = |table: &str, process| TableRow::Spans { table: table.into(), process };
        let mut rows = vec![spans("a", 0), spans("a", 1), spans("b", 1)];
        rows.extend((0..40).map(|thread| TableRow::States { thread }));
        let sizes: Vec<usize> = groups(&rows).map(<[_]>::len).collect();
        assert_eq!(sizes, [2, 1, 32, 8]);
        assert_eq!(groups(&rows).flatten().cloned().collect::<Vec<_>>(), rows);
    }

    #[test]
    fn rows_are_found_by_their_names() {
        let layers = [
            TableRow::Spans { table: "request_spans".into(), process: 3 },
            TableRow::Spans { table: "\"Odd\".\"a.b\"".into(), process: 0 },
            TableRow::States { thread: 7 },
        ];
        for layer in layers {
            assert_eq!(TableRow::parse(&layer.id()), Some(layer));
        }
        for other in ["depth.1.0", "spans", "spans.x", "states.x", "states."] {
            assert_eq!(TableRow::parse(other), None, "{other}");
        }
    }
}
