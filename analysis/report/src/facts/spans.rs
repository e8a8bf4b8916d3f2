//! Kinds of spans, and their lanes on the timeline.

use ppt_query::{Engine, FrameTable, RowUnit, sql_identifier};

use crate::error::ReportError;
use crate::frame_facts::FrameFacts;
use crate::text_rows;
use crate::timeline_data::Lane;
use crate::times::standard;

/// Maximum number of lanes of spans on a page: those with most spans.
const LANES: usize = 16;

/// A kind of spans.
pub(super) struct SpanKind {
    /// Buffer and frame, as the table `slices` names them.
    pub buffer: String,
    pub frame: String,
    /// Index of its name on the timeline.
    pub number: usize,
    label: String,
    spans: FrameTable,
}

/// The kinds of spans of these tables.
pub(super) fn kinds(
    engine: &Engine,
    tables: &[&FrameTable],
    wholes: &[FrameFacts],
) -> Vec<SpanKind> {
    let kind = |table: &&FrameTable| {
        let spans = engine.spans(table)?;
        let is_its = |facts: &&FrameFacts| {
            facts.unit == RowUnit::Span
                && facts.buffer == spans.buffer
                && facts.frame == spans.name.table()
        };
        let facts = wholes.iter().find(is_its)?;
        let field = facts.fields.iter().find(|field| field.interval.is_some())?;
        Some(SpanKind {
            buffer: spans.buffer.clone(),
            frame: spans.frame.clone(),
            number: field.interval?,
            label: format!("{}.{}", facts.label, field.name),
            spans,
        })
    };
    tables.iter().filter_map(kind).collect()
}

/// A lane for each kind in each process in which such spans began.
pub(super) async fn lanes(engine: &Engine, kinds: &[SpanKind]) -> Result<Vec<Lane>, ReportError> {
    let mut lanes = Vec::new();
    for kind in kinds {
        let [host, pid, _] = standard(kind.spans.table.as_ref()).map(|name| sql_identifier(&name));
        let sql = format!(
            "SELECT {host}, {pid}, count(*) AS n FROM {} GROUP BY 1, 2 ORDER BY n DESC, 1, 2 \
             LIMIT {LANES}",
            kind.spans.name.to_quoted_string()
        );
        for row in text_rows::query(engine, &sql).await? {
            let [host, pid, spans] = <[String; 3]>::try_from(row).unwrap_or_default();
            let frames = spans.parse().unwrap_or(0);
            lanes.push(Lane {
                host,
                pid,
                frames,
                spans: Some(kind.label.clone()),
                ..Lane::default()
            });
        }
    }
    lanes.sort_by_key(|lane| std::cmp::Reverse(lane.frames));
    lanes.truncate(LANES);
    Ok(lanes)
}
