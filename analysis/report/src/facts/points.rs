//! Which points lead to which.

use ppt_query::graph::PointGraph;
use ppt_query::{Engine, QueryError};

use crate::error::ReportError;
use crate::rows;

/// The graph of points; None where there are none, or where their edges are not known.
pub(super) async fn gather(engine: &Engine) -> Result<Option<PointGraph>, ReportError> {
    if rows::all(engine, "SELECT point FROM points LIMIT 1").await?.is_empty() {
        return Ok(None);
    }
    match engine.point_graph().await {
        // Everything else can be shown.
        Err(QueryError::Incomparable(_) | QueryError::Hot(_)) => Ok(None),
        graph => Ok(Some(graph?)),
    }
}
