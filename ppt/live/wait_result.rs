//! The result of a wait.

/// The descriptors that were ready when a wait returned.
pub(crate) struct WaitResult {
    pub(super) listener: bool,
    pub(super) undersized: bool,
    pub(super) tick: bool,
    pub(super) hello: bool,
    pub(super) deadline: bool,
    /// Whether a client of the session's socket has connected or sent.
    pub(super) request: bool,
    /// The first feeds of the members whose process has ended. A member's index changes when
    /// another one leaves; its feed does not.
    pub(super) ended: Vec<usize>,
    /// Whether each of the caller's descriptors is ready, in the caller's order.
    pub(crate) others: Vec<bool>,
}
