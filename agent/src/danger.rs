//! The danger that the filters of a target's threads mean for it.

/// A reason not to attach.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Danger {
    /// This thread is in strict mode: anything but read, write and exit ends it.
    Strict(i32),
    /// This thread, perhaps among others, has filters that may be the program's own.
    Filtered(i32),
}
