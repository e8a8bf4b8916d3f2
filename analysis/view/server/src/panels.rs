//! `/v1/panels` and `/v1/panel`: the answers next to the timeline.

use ppt_text::grouped;
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

use crate::error::HttpRefusal;
use crate::find::KEY;
use crate::frame::FrameKey;
use crate::session::ViewSession;
use crate::slices::{sql_command, within};
use crate::table::{MAX_ROWS, QueryTable, ask};
use crate::times::time;

#[derive(Debug, Deserialize)]
pub(crate) struct PanelQuery {
    id: String,
    from: Option<String>,
    to: Option<String>,
}

/// The answer of a panel.
#[derive(Debug, Serialize)]
pub(crate) struct Panel {
    title: &'static str,
    note: String,
    command: String,
    columns: Vec<PanelColumn>,
    rows: Vec<PanelRow>,
}

/// `content` is the way to show cells: `text`, `count`, `duration` (ns) or `percent`.
#[derive(Debug, Serialize)]
struct PanelColumn {
    name: &'static str,
    content: &'static str,
}

/// A row with a link to a frame or to a range of time.
#[derive(Debug, Default, Serialize)]
struct PanelRow {
    cells: Vec<String>,
    frame: Option<FrameKey>,
    span: Option<(String, String)>,
}

/// The ids and titles of all panels.
pub(crate) fn panels() -> Value {
    let panels = [
        ("time", "What takes the time", "Intervals by name, in the time that is marked or visible"),
        (
            "slowest",
            "The slowest",
            "The longest intervals in the time that is marked or visible; each leads to its place",
        ),
        (
            "account",
            "What is missing",
            "Frames that were written, captured, lost and dropped, by source; of what is marked, if \
             something is",
        ),
    ];
    let panels = panels.map(|(id, title, why)| json!({ "id": id, "title": title, "why": why }));
    Value::from(panels.to_vec())
}

/// Answers a panel.
pub(crate) async fn panel(session: &ViewSession, asked: &PanelQuery) -> Result<Panel, HttpRefusal> {
    let range = asked.from.as_deref().zip(asked.to.as_deref());
    let window = || range.map_or(Ok("true".into()), |(from, to)| within(from, to));
    match asked.id.as_str() {
        "time" => by_name(session, &window()?).await,
        "slowest" => slowest(session, &window()?).await,
        "account" => match range {
            None => account(session).await,
            Some((from, to)) => account_between(session, time(from)?, time(to)?).await,
        },
        _ => Err(HttpRefusal::bad("there is no such panel")),
    }
}

async fn table(session: &ViewSession, sql: &str, rows: usize) -> Result<QueryTable, HttpRefusal> {
    let engine = session.engine()?;
    ask(&engine, sql, rows).await
}

/// The note of an empty panel.
const NO_INTERVALS: &str = "No interval begins in that time.";
/// The most names.
const MAX_NAMES: usize = 50;
/// The number of slowest intervals.
const MAX_SLOWEST: usize = 20;

fn text(cell: &Option<String>) -> String {
    cell.clone().unwrap_or_default()
}

async fn by_name(session: &ViewSession, window: &str) -> Result<Panel, HttpRefusal> {
    let sql = format!(
        "SELECT name, count(*) AS count, sum(dur) AS total, sum(self) AS own, \
         approx_percentile_cont(dur, 0.5) AS median, max(dur) AS longest \
         FROM slices WHERE {window} GROUP BY name ORDER BY total DESC, name LIMIT {MAX_NAMES}"
    );
    let table = table(session, &sql, MAX_NAMES).await?;
    let column = |name, content| PanelColumn { name, content };
    Ok(Panel {
        title: "What takes the time",
        note: if table.rows.is_empty() { NO_INTERVALS.into() } else { String::new() },
        command: sql_command(&sql),
        columns: vec![
            column("name", "text"),
            column("count", "count"),
            column("total", "duration"),
            column("own", "duration"),
            column("median", "duration"),
            column("longest", "duration"),
        ],
        rows: table
            .rows
            .iter()
            .map(|row| PanelRow { cells: row.iter().map(text).collect(), ..PanelRow::default() })
            .collect(),
    })
}

async fn slowest(session: &ViewSession, window: &str) -> Result<Panel, HttpRefusal> {
    let sql = format!(
        "SELECT name, dur, tid, ts, {KEY} FROM slices \
         WHERE {window} ORDER BY dur DESC, ts LIMIT {MAX_SLOWEST}"
    );
    let table = table(session, &sql, MAX_SLOWEST).await?;
    let row = |row: &Vec<Option<String>>| {
        let [name, length, thread, at, key @ ..] = &row[..] else {
            return PanelRow::default();
        };
        let begin: Option<i64> = at.as_ref().and_then(|at| at.parse().ok());
        let length_ns: i64 = length.as_ref().and_then(|ns| ns.parse().ok()).unwrap_or(0);
        let span = begin.map(|at| (at.to_string(), at.saturating_add(length_ns).to_string()));
        PanelRow {
            cells: vec![text(name), text(length), text(thread)],
            frame: FrameKey::from_cells(key),
            span,
        }
    };
    let column = |name, content| PanelColumn { name, content };
    Ok(Panel {
        title: "The slowest",
        note: if table.rows.is_empty() { NO_INTERVALS.into() } else { String::new() },
        command: sql_command(&sql),
        columns: vec![column("name", "text"), column("took", "duration"), column("thread", "text")],
        rows: table.rows.iter().map(row).collect(),
    })
}

async fn account(session: &ViewSession) -> Result<Panel, HttpRefusal> {
    let sql = "SELECT * FROM account";
    let table = table(session, sql, MAX_ROWS).await?;
    let lost: u64 = session
        .view()
        .1
        .about()
        .captures
        .iter()
        .map(|capture| capture.lost + capture.dropped)
        .sum();
    let note = match lost {
        0 => "Every frame that was written is in the capture.".into(),
        lost => format!("{} frames that were written are not in the capture.", grouped(lost)),
    };
    account_panel(&table, note, "ppt info CAPTURE".into())
}

/// The account of a range of time: the frames in it, and the gaps that overlap it.
async fn account_between(session: &ViewSession, from: i64, to: i64) -> Result<Panel, HttpRefusal> {
    let (from, to) = (format!("to_timestamp_nanos({from})"), format!("to_timestamp_nanos({to})"));
    let sql = format!(
        "SELECT buffer, pid, 'captured' AS cause, count(*) AS count FROM frames \
         WHERE coalesce(ts, drained) >= {from} AND coalesce(ts, drained) < {to} GROUP BY buffer, pid \
         UNION ALL SELECT buffer, pid, cause, sum(count) AS count FROM gaps \
         WHERE coalesce(ts_hi, ts_lo) >= {from} AND coalesce(ts_lo, ts_hi) < {to} \
         GROUP BY buffer, pid, cause ORDER BY buffer, pid, cause"
    );
    let table = table(session, &sql, MAX_ROWS).await?;
    let note = "A gap that only reaches into that time counts with all of its frames. Dropped frames have \
                no time: they are in the account of everything.";
    account_panel(&table, note.into(), sql_command(&sql))
}

fn account_panel(table: &QueryTable, note: String, command: String) -> Result<Panel, HttpRefusal> {
    let names: Vec<String> = table.columns.iter().map(|column| column.name.clone()).collect();
    let at = |name: &str| names.iter().position(|other| other == name);
    let (buffer, what, count) = (at("buffer"), at("cause"), at("count"));
    let (Some(buffer), Some(what), Some(count)) = (buffer, what, count) else {
        return Err(HttpRefusal::new(hyper::StatusCode::INTERNAL_SERVER_ERROR, "no account"));
    };
    let pid = at("pid");
    let row = |row: &Vec<Option<String>>| {
        let process = pid.map(|pid| text(&row[pid])).unwrap_or_default();
        let cells = vec![text(&row[buffer]), process, text(&row[what]), text(&row[count])];
        PanelRow { cells, ..PanelRow::default() }
    };
    let column = |name, content| PanelColumn { name, content };
    Ok(Panel {
        title: "What is missing",
        note,
        command,
        columns: vec![
            column("buffer", "text"),
            column("process", "text"),
            column("frames", "text"),
            column("count", "count"),
        ],
        rows: table.rows.iter().map(row).collect(),
    })
}
