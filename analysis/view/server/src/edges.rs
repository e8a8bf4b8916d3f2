//! `/v1/edges`: what led to a frame, and what it led to.

use serde::Serialize;

use crate::error::HttpRefusal;
use crate::find::literal;
use crate::frame::{FrameAsked, FrameKey};
use crate::session::ViewSession;
use crate::table::ask;

/// Most causes, and most effects.
const MOST: usize = 50;

#[derive(Debug, Serialize)]
pub(crate) struct Edges {
    causes: Vec<EdgeEnd>,
    effects: Vec<EdgeEnd>,
    truncated: bool,
}

/// The other end of an edge.
#[derive(Debug, Serialize)]
struct EdgeEnd {
    key: FrameKey,
    /// The point, as `edges` calls it.
    name: String,
    relation: String,
    certainty: String,
    /// Nanoseconds from cause to effect.
    latency: Option<String>,
    at: Option<String>,
}

/// The edges of a frame, one hop each way.
pub(crate) async fn edges(session: &ViewSession, asked: &FrameAsked) -> Result<Edges, HttpRefusal> {
    let (_, name) = asked.name(session)?;
    let engine = session.engine()?;
    let (capture, buffer) = (literal(&name.capture), literal(&name.buffer));
    let segment = literal(&format!("{:016x}", name.segment));
    let (ring, seqno) = (name.ring, name.seqno);
    let mut found = Vec::new();
    let mut truncated = false;
    for (own, other) in [("dst", "src"), ("src", "dst")] {
        let sql = format!(
            "SELECT {other}_point, kind, certainty, latency, {other}_ts, {other}_capture, {other}_buffer, \
             {other}_segment, {other}_ring, {other}_seqno FROM edges \
             WHERE {own}_capture = {capture} AND {own}_buffer = {buffer} AND {own}_segment = {segment} \
             AND {own}_ring = {ring} AND {own}_seqno = {seqno} ORDER BY {other}_ts"
        );
        let table = ask(&engine, &sql, MOST).await?;
        truncated |= table.truncated;
        found.push(table.rows.into_iter().filter_map(end).collect());
    }
    let effects = found.pop().unwrap_or_default();
    Ok(Edges { causes: found.pop().unwrap_or_default(), effects, truncated })
}

fn end(row: Vec<Option<String>>) -> Option<EdgeEnd> {
    let [name, relation, certainty, latency, at, key @ ..] = &row[..] else { return None };
    let text = |cell: &Option<String>| cell.clone().unwrap_or_default();
    Some(EdgeEnd {
        key: FrameKey::of_cells(key)?,
        name: text(name),
        relation: text(relation),
        certainty: text(certainty),
        latency: latency.clone(),
        at: at.clone(),
    })
}
