//! Causes and effects as events, each at the time of its cause.

use ppt_query::datafusion::prelude::DataFrame;
use ppt_query::{Engine, QueryError, sql_literal};

use crate::event::{COLUMNS, EventRole, EventSchema};
use crate::source::column;

/// Certain edges between frames of these `kinds`; None if frames of these kinds cannot have edges.
/// `is_part`: without the edges of spans and chains, whose frames may be in other parts of their capture.
///
/// # Errors
/// [`QueryError::Incomparable`], if times of several hosts cannot be compared; see [`QueryError`].
pub(crate) async fn edges(
    engine: &Engine,
    kinds: &[EventSchema],
    is_part: bool,
) -> Result<Option<(EventSchema, DataFrame)>, QueryError> {
    let may_have = |kind: &&EventSchema| kind.may_have_edges();
    let mut told: Vec<_> =
        kinds.iter().filter(may_have).map(|kind| (&kind.buffer, &kind.frame)).collect();
    told.sort_unstable();
    told.dedup();
    if told.is_empty() {
        return Ok(None);
    }
    let is_told = |end: &str| {
        let each = told.iter().map(|(buffer, frame)| {
            let (buffer, frame) = (sql_literal(buffer), sql_literal(frame));
            format!("({end}_buffer = {buffer} AND {end}_point = {frame})")
        });
        each.collect::<Vec<_>>().join(" OR ")
    };
    let left_out = if is_part { "'wake', 'span', 'chain'" } else { "'wake'" };
    let [begin, dur, placed, first, capture, buffer, segment, ring, seqno, host, pid, tid] =
        COLUMNS.map(|name| format!("AS \"{}\"", column(name)));
    let sql = format!(
        "SELECT arrow_cast(src_ts, 'Int64') {begin}, arrow_cast(NULL, 'Int64') {dur}, \
                true {placed}, true {first}, src_capture {capture}, src_buffer {buffer}, \
                src_segment {segment}, src_ring {ring}, src_seqno {seqno}, src_host {host}, \
                src_pid {pid}, src_tid {tid}, \
                dst_capture, dst_segment, dst_ring, dst_seqno, kind, type \
         FROM edges WHERE certainty = 'certain' AND kind NOT IN ({left_out}) AND src_ts IS NOT NULL \
           AND ({src}) AND ({dst}) ORDER BY 1",
        src = is_told("src"),
        dst = is_told("dst"),
    );
    let rows = engine.sql(&sql).await?;
    // Planning finds out whether the times of hosts can be compared.
    rows.clone().create_physical_plan().await?;
    let fields = rows.schema().as_arrow().fields().iter().skip(COLUMNS.len());
    let kind = EventSchema {
        what: EventRole::Edge,
        buffer: String::new(),
        frame: String::new(),
        interval: None,
        fields: fields.map(|field| field.as_ref().clone()).collect(),
        seqno: "seqno".to_owned(),
    };
    Ok(Some((kind, rows)))
}
