//! A kind of frame.

use ppt_frame_dsl::Schema;
use ppt_frame_dsl::schema::Frame;

/// A kind of frame, against which an expression is checked.
#[derive(Debug, Clone, Copy)]
pub struct FrameKind<'a> {
    /// The buffer's name, as in `buffer.frame.field`.
    pub buffer: &'a str,
    /// The buffer's schema.
    pub schema: &'a Schema,
    /// One of its frames.
    pub frame: &'a Frame,
}
