//! What a run comes to when it is timed again.

/// The times of a run, with other speeds.
#[derive(Debug)]
pub struct Replay {
    /// Of each vertex, in the model's order.
    pub(super) time: Vec<i64>,
    /// An order in which each vertex comes after all that it follows.
    pub(super) order: Vec<u32>,
}
