//! Begins and ends of the span, as some source reports them.

use std::fmt::Debug;

use thiserror::Error;

/// A thread enters or leaves the span.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct SpanEdge {
    /// The thread, by its number in ppt's pid namespace.
    pub tid: i32,
    /// The time, in ns of CLOCK_MONOTONIC.
    pub at_ns: i64,
    /// Whether it enters.
    pub is_begin: bool,
}

/// Edges were lost.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Error)]
#[error("frames of the span were lost")]
pub struct EdgesLost;

/// A source of edges of the span.
pub trait SpanEdges: Debug + Send {
    /// Appends the edges since the last poll, those of each thread in the order of time.
    ///
    /// # Errors
    /// Some are missing.
    fn poll(&mut self, edges: &mut Vec<SpanEdge>) -> Result<(), EdgesLost>;
}
