//! The result of a wait.

/// The result of a wait.
pub(crate) struct WaitResult {
    pub(super) listener: bool,
    pub(super) undersized: bool,
    pub(super) tick: bool,
    pub(super) hello: bool,
    pub(super) deadline: bool,
    /// A client connects to this session.
    pub(super) door: bool,
    /// The first feeds of the members whose process has ended. Their places among the members
    /// change as others leave.
    pub(super) ended: Vec<usize>,
    /// The caller's descriptors.
    pub(crate) others: Vec<bool>,
}
