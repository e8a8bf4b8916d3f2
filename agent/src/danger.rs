//! The risk that the filters of a target's threads pose to it.

/// A reason not to attach.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Danger {
    /// This thread is in strict mode: any call except read, write and exit kills it.
    Strict(i32),
    /// This thread, perhaps among others, has filters that the program may have installed itself.
    Filtered(i32),
}
