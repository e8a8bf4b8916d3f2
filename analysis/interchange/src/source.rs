//! Where the rows of a kind come from.

use ppt_query::datafusion::logical_expr::SortExpr;
use ppt_query::datafusion::prelude::{DataFrame, ident};

use crate::event::COLUMNS;
use crate::frame_kind::FrameKinds;

/// The rows of a kind.
#[derive(Debug)]
pub(crate) enum TraceRows {
    /// Sorted by their beginning, as a query sorts them.
    Sorted(DataFrame),
    /// The same of frames whose kind their schema does not have.
    Unknown(DataFrame),
    /// In the order in which the captures have them: see [`Sources::frames`].
    Frames,
}

/// The rows of all kinds.
#[derive(Debug)]
pub struct Sources {
    /// By kind.
    pub(crate) all: Vec<TraceRows>,
    /// The kinds that are frames, which are read together.
    pub(crate) frames: Vec<FrameKinds>,
    /// Why causes and effects are not exported, where there may be some.
    pub edges_are_unknown: Option<String>,
}

/// The name of a column of [`COLUMNS`] in SQL: no field has such a name.
pub(crate) fn column(name: &str) -> String {
    format!("ppt:{name}")
}

/// A text in SQL.
pub(crate) fn quoted(text: &str) -> String {
    format!("'{}'", text.replace('\'', "''"))
}

/// The order of events. It names every row, so that it does not depend on who sorts.
pub(crate) fn order(last_is_outer: bool) -> Vec<SortExpr> {
    let [begin, dur, _, _, capture, _, segment, ring, seqno, ..] =
        COLUMNS.map(|name| ident(column(name)));
    vec![
        begin.sort(true, true),
        dur.sort(false, false),
        seqno.sort(!last_is_outer, true),
        ring.sort(true, true),
        capture.sort(true, true),
        segment.sort(true, true),
    ]
}
