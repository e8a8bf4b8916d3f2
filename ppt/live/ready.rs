//! The result of a wait.

/// The result of a wait.
pub(crate) struct Ready {
    pub(super) listener: bool,
    pub(super) undersized: bool,
    pub(super) tick: bool,
    pub(super) hello: bool,
    pub(super) deadline: bool,
    pub(super) members: Vec<bool>,
    /// The caller's descriptors.
    pub(crate) others: Vec<bool>,
}
