//! `/v1/edges`: the causes and effects of frames.

use ppt_query::sql_literal;
use ppt_view::{FrameName, View};
use serde::{Deserialize, Serialize};

use crate::error::HttpRefusal;
use crate::frame::{FrameKey, FrameQuery};
use crate::session::ViewSession;
use crate::table::ask;

/// The most frames of a request.
const MAX_FRAMES: usize = 64;
/// The most edges of an answer.
const MAX_EDGES: usize = 200;

#[derive(Debug, Deserialize)]
pub(crate) struct EdgesQuery {
    frames: Vec<FrameQuery>,
}

#[derive(Debug, Serialize)]
pub(crate) struct Edges {
    edges: Vec<EdgeRow>,
    truncated: bool,
}

/// `latency`: nanoseconds from cause to effect; `lo` and `hi` are its bounds.
#[derive(Debug, Serialize)]
struct EdgeRow {
    cause: EdgeEnd,
    effect: EdgeEnd,
    relation: String,
    certainty: String,
    latency: Option<String>,
    lo: Option<String>,
    hi: Option<String>,
}

/// An end of an edge, and its position in the timeline.
#[derive(Debug, Serialize)]
struct EdgeEnd {
    key: FrameKey,
    /// The name of the point in the table `edges`.
    name: String,
    /// The time of the frame, ns since the epoch.
    at: Option<String>,
    /// The row of the thread.
    row: Option<String>,
    /// The numbers of its chunk and its frame in cells.
    place: Option<(u32, u32)>,
}

/// The edges that begin or end at the requested frames.
pub(crate) async fn edges(session: &ViewSession, asked: &EdgesQuery) -> Result<Edges, HttpRefusal> {
    if !(1..=MAX_FRAMES).contains(&asked.frames.len()) {
        return Err(HttpRefusal::bad(format!("edges of 1 to {MAX_FRAMES} frames at a time")));
    }
    let (_, view) = session.view();
    let mut conditions = Vec::new();
    for frame in &asked.frames {
        let (_, name) = frame.name(session)?;
        conditions.extend(["src", "dst"].map(|end| is_at(end, &name)));
    }
    let ends = ["src", "dst"].map(|end| {
        format!(
            "{end}_point, {end}_ts, {end}_capture, {end}_buffer, {end}_segment, {end}_ring, {end}_seqno"
        )
    });
    let sql = format!(
        "SELECT kind, certainty, latency, latency_lo, latency_hi, {} FROM edges WHERE {} \
         ORDER BY src_ts, dst_ts",
        ends.join(", "),
        conditions.join(" OR "),
    );
    let engine = session.engine()?;
    let table = ask(&engine, &sql, MAX_EDGES).await?;
    let edges = table.rows.iter().filter_map(|row| edge(row, &view)).collect();
    Ok(Edges { edges, truncated: table.truncated })
}

/// The SQL condition that an end of an edge (`src` or `dst`) is this frame.
fn is_at(end: &str, name: &FrameName) -> String {
    format!(
        "({end}_capture = {} AND {end}_buffer = {} AND {end}_segment = {} AND {end}_ring = {} \
         AND {end}_seqno = {})",
        sql_literal(&name.capture),
        sql_literal(&name.buffer),
        sql_literal(&format!("{:016x}", name.segment)),
        name.ring,
        name.seqno,
    )
}

fn edge(row: &[Option<String>], view: &View) -> Option<EdgeRow> {
    let [relation, certainty, latency, lo, hi, ends @ ..] = row else { return None };
    let (cause, effect) = ends.split_at_checked(ends.len() / 2)?;
    let text = |cell: &Option<String>| cell.clone().unwrap_or_default();
    Some(EdgeRow {
        cause: end(cause, view)?,
        effect: end(effect, view)?,
        relation: text(relation),
        certainty: text(certainty),
        latency: latency.clone(),
        lo: lo.clone(),
        hi: hi.clone(),
    })
}

fn end(cells: &[Option<String>], view: &View) -> Option<EdgeEnd> {
    let [name, at, key @ ..] = cells else { return None };
    let key = FrameKey::from_cells(key)?;
    let frame = key.name().ok()?;
    Some(EdgeEnd {
        name: name.clone().unwrap_or_default(),
        at: at.clone(),
        row: view.thread_row(&frame).map(|row| row.to_string()),
        place: view.frame_place(&frame).map(|place| (place.chunk, place.frame)),
        key,
    })
}
