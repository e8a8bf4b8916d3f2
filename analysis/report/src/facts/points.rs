//! The graph of points.

use ppt_query::graph::PointGraph;
use ppt_query::{Engine, QueryError};

use crate::error::ReportError;
use crate::text_rows;

/// The graph of points; None if there are no points, or if their edges are unknown.
pub(super) async fn gather(engine: &Engine) -> Result<Option<PointGraph>, ReportError> {
    if text_rows::query(engine, "SELECT point FROM points LIMIT 1").await?.is_empty() {
        return Ok(None);
    }
    match engine.point_graph().await {
        // The other facts do not need edges.
        Err(QueryError::Incomparable(_) | QueryError::Hot(_)) => Ok(None),
        graph => Ok(Some(graph?)),
    }
}
