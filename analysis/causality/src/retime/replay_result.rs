//! The results of a replay.

use super::critical_paths::CriticalPaths;

/// The times of a run with other speeds.
#[derive(Debug)]
pub struct Replay {
    /// The time of each vertex, in the model's order.
    pub(super) time: Vec<i64>,
    /// All vertices, each after its predecessors.
    pub(super) order: Vec<u32>,
}

/// A replay, and its critical paths if they were asked for.
#[derive(Debug)]
pub(super) struct TracedReplay {
    pub replay: Replay,
    pub critical_paths: Option<CriticalPaths>,
}
