//! Rows that come from tables rather than from the index: spans and chains of processes (`spans.NAME.PROCESS`)
//! and what the kernel did with threads (`states.THREAD`).
//!
//! SQL adds up what is narrower than a pixel, and returns the rest one by one.

use std::collections::HashMap;

use ppt_query::{Engine, FrameTable, Unit};
use ppt_text::escaped;
use ppt_view::{About, Cell, FramePlace, NO_NAME, RowId, SINGLE, give_lanes};
use serde::Deserialize;
use serde_json::{Value, json};

use crate::error::Refusal;
use crate::find::literal;
use crate::frame::{FrameKey, quoted};
use crate::session::Session;
use crate::table::{Table, ask};
use crate::times::time;

/// The states of threads, in the order of their names.
const STATES: [&str; 4] = ["running", "runnable", "blocked", "unknown"];
/// Most cells of a row: wide ones and, beside them, one for each pixel.
const WIDE: usize = 8192;
/// No frame: a cell that comes from a table.
const NO_CHUNK: u32 = u32::MAX;

/// A row that comes from a table.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Layer {
    /// The spans or chains of a process: a table.
    Spans { table: String, process: usize },
    /// The states of a thread.
    States { thread: u32 },
}

/// A span, a chain or a state that a page asks for, by its row and its beginning.
#[derive(Debug, Deserialize)]
pub(crate) struct EntryAsked {
    row: String,
    at: String,
}

impl Layer {
    /// The row of this name, if it is one that comes from a table.
    pub fn parse(id: &str) -> Option<Layer> {
        if let Some(thread) = id.strip_prefix("states.") {
            return Some(Layer::States { thread: thread.parse().ok()? });
        }
        let (table, process) = id.strip_prefix("spans.")?.rsplit_once('.')?;
        Some(Layer::Spans { table: table.to_owned(), process: process.parse().ok()? })
    }

    fn id(&self) -> String {
        match self {
            Layer::Spans { table, process } => format!("spans.{table}.{process}"),
            Layer::States { thread } => format!("states.{thread}"),
        }
    }
}

/// A table of spans or chains.
struct WholeTable {
    /// As SQL calls it.
    reference: String,
    /// As people do.
    name: String,
    /// The column that has lengths.
    length: &'static str,
}

fn wholes(engine: &Engine) -> Vec<WholeTable> {
    let whole = |(table, unit): (FrameTable, Unit)| {
        let length = match unit {
            Unit::Frame => return None,
            Unit::Span => "dur",
            Unit::Chain => "total",
        };
        Some(WholeTable { reference: table.name.to_quoted_string(), name: table.frame, length })
    };
    engine.wholes(None).into_iter().filter_map(whole).collect()
}

/// The names that cells of these rows have, behind those of the view.
pub(crate) fn names(engine: &Engine) -> Vec<Value> {
    let states = STATES.map(|state| json!({ "name": state, "buffer": "kernel" }));
    let wholes = wholes(engine).into_iter();
    states
        .into_iter()
        .chain(wholes.map(|whole| json!({ "name": escaped(&whole.name), "buffer": "" })))
        .collect()
}

/// The rows that come from tables, by the row behind which they belong.
pub(crate) fn rows(engine: &Engine, about: &About) -> HashMap<RowId, Vec<Value>> {
    let row = |layer: &Layer, parent: RowId, label: &str| {
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
            let layer = Layer::Spans { table: reference.clone(), process };
            rows.entry(parent).or_default().push(row(&layer, parent, name));
        }
    }
    if engine.set().has_kernel() {
        for thread in &about.rows {
            let RowId::Thread(number) = thread.id else { continue };
            if thread.tid.is_some() {
                let states = row(&Layer::States { thread: number }, thread.id, "states");
                rows.entry(thread.id).or_default().push(states);
            }
        }
    }
    rows
}

/// Where rows come from, and which of it is theirs.
struct From {
    table: String,
    condition: String,
    /// The column that has lengths.
    length: &'static str,
    /// An expression: the place of a row's name behind those of the view.
    name: String,
}

fn from(engine: &Engine, about: &About, layer: &Layer) -> Option<From> {
    let of_process = |process: usize| {
        let process = about.processes.get(process)?;
        Some(format!("pid = {} AND host = {}", process.pid, literal(&process.host)))
    };
    match layer {
        Layer::Spans { table, process } => {
            let known = wholes(engine);
            let place = known.iter().position(|whole| whole.reference == *table)?;
            Some(From {
                length: known[place].length,
                table: table.clone(),
                condition: of_process(*process)?,
                name: (STATES.len() + place).to_string(),
            })
        }
        Layer::States { thread } => {
            let id = RowId::Thread(*thread);
            let row = about.rows.iter().find(|row| row.id == id)?;
            let Some(RowId::Process(process)) = row.parent else { return None };
            let condition = format!("{} AND tid = {}", of_process(process as usize)?, row.tid?);
            let cases: String = (0..)
                .zip(STATES)
                .map(|(number, state)| format!(" WHEN '{state}' THEN {number}"))
                .collect();
            let name = format!("CASE state{cases} ELSE {} END", STATES.len() - 1);
            Some(From { table: "thread_states".into(), condition, length: "dur", name })
        }
    }
}

/// The cells of a row in a window.
pub(crate) async fn cells(
    engine: &Engine,
    about: &About,
    layer: &Layer,
    (from_ns, to_ns, pixels): (i64, i64, u32),
) -> Result<Vec<Cell>, Refusal> {
    let unknown = || ppt_view::ViewError::NoSuchRow(layer.id());
    let From { table, condition, length, name } = from(engine, about, layer).ok_or_else(unknown)?;
    let pixel = (to_ns.saturating_sub(from_ns) / i64::from(pixels)).max(1);
    let inner = format!(
        "SELECT CAST(ts AS BIGINT) AS start, {length} AS dur, {name} AS name FROM {table} WHERE {condition} \
         AND {length} IS NOT NULL AND ts < to_timestamp_nanos({to_ns}) \
         AND CAST(ts AS BIGINT) + {length} >= {from_ns}"
    );
    let wide = format!(
        "SELECT start, dur, name FROM ({inner}) AS all_rows WHERE dur >= {pixel} ORDER BY start"
    );
    let narrow = format!(
        "SELECT min(start), max(start + dur), sum(dur), max(dur), count(*), first_value(name ORDER BY dur DESC) \
         FROM ({inner}) AS all_rows WHERE dur < {pixel} GROUP BY (start - {from_ns}) / {pixel} ORDER BY 1"
    );
    let names = about.names.len() as u32;
    let number = |row: &[Option<String>], at: usize| -> i64 {
        row.get(at).and_then(|cell| cell.as_ref()?.parse().ok()).unwrap_or(0)
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
    let rows = ask(engine, &wide, WIDE).await?.rows;
    let mut cells: Vec<Cell> = rows
        .iter()
        .map(|row| {
            let (start, length) = (number(row, 0), number(row, 1));
            cell(start, start.saturating_add(length), number(row, 2))
        })
        .collect();
    for row in ask(engine, &narrow, 2 * WIDE).await?.rows {
        let one = cell(number(&row, 0), number(&row, 1), number(&row, 5));
        let count = number(&row, 4).max(1) as u64;
        let flags = if count == 1 { SINGLE } else { 0 };
        let (busy, longest) = (number(&row, 2).max(0) as u64, number(&row, 3).max(0) as u64);
        cells.push(Cell { busy, longest, count, flags, ..one });
    }
    cells.sort_by_key(|cell| cell.from);
    give_lanes(&mut cells);
    Ok(cells)
}

/// The row of a table that begins then, as fields; and the frame that began it, if there is one.
pub(crate) async fn entry(session: &Session, asked: &EntryAsked) -> Result<Value, Refusal> {
    let layer = Layer::parse(&asked.row)
        .ok_or_else(|| ppt_view::ViewError::NoSuchRow(asked.row.clone()))?;
    let at = time(&asked.at)?;
    let about = session.view().1.about();
    let engine = session.engine()?;
    let unknown = || ppt_view::ViewError::NoSuchRow(asked.row.clone());
    let From { table, condition, length, .. } =
        from(&engine, &about, &layer).ok_or_else(unknown)?;
    let sql = format!(
        "SELECT * FROM {table} WHERE {condition} AND ts = to_timestamp_nanos({at}) ORDER BY {length} DESC"
    );
    let Table { columns, mut rows, .. } = ask(&engine, &sql, 1).await?;
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
        Layer::Spans { table, .. } => table.clone(),
        Layer::States { .. } => "thread_states".to_owned(),
    };
    let question = quoted(&format!("SELECT * FROM {shown} WHERE {condition}"));
    Ok(json!({
        "name": escaped(&shown),
        "fields": fields.collect::<Vec<_>>(),
        "key": FrameKey::of_cells(&key),
        "command": format!("ppt sql CAPTURE {question}"),
    }))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rows_are_found_by_their_names() {
        let layers = [
            Layer::Spans { table: "request_spans".into(), process: 3 },
            Layer::Spans { table: "\"Odd\".\"a.b\"".into(), process: 0 },
            Layer::States { thread: 7 },
        ];
        for layer in layers {
            assert_eq!(Layer::parse(&layer.id()), Some(layer));
        }
        for other in ["depth.1.0", "spans", "spans.x", "states.x", "states."] {
            assert_eq!(Layer::parse(other), None, "{other}");
        }
    }
}
