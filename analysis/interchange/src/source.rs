//! Sources of the rows of kinds.

use ppt_query::datafusion::logical_expr::SortExpr;
use ppt_query::datafusion::prelude::{DataFrame, ident};

use crate::event::COLUMNS;
use crate::frame_kind::FrameKinds;

/// The rows of a kind.
#[derive(Debug)]
pub(crate) enum TraceRows {
    /// Sorted by their begin, by a query.
    Sorted(DataFrame),
    /// Sorted rows of frames whose kind is missing in their schema.
    Unknown(DataFrame),
    /// In the order of the captures: see [`Sources::frames`].
    Frames,
}

/// The rows of all kinds.
#[derive(Debug)]
pub struct Sources {
    /// One for each kind.
    pub(crate) all: Vec<TraceRows>,
    /// The kinds that are frames, which are read together.
    pub(crate) frames: Vec<FrameKinds>,
    /// Why edges are not exported, if there may be some.
    pub edges_are_unknown: Option<String>,
}

/// The name of a column of [`COLUMNS`] in SQL: no field has such a name.
pub(crate) fn column(name: &str) -> String {
    format!("ppt:{name}")
}

/// The order of events. It is total, so that all ways of sorting agree.
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
