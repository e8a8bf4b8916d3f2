//! Frames whose keys join them to spans or chains: their columns, and the groups in which they are paired.

mod columns;
mod form;
mod frames;
mod read;

use ppt_capture::frame_dsl::schema::Frame;

pub(super) use self::columns::{SpanOrChainColumn, whole_schema};
pub(super) use self::frames::{Hidden, KeyedFrames};
pub(super) use self::read::{KeyedColumns, find_missing};

/// Whether frames of this kind make spans.
pub(super) fn is_span(frame: &Frame) -> bool {
    frame.span().is_some()
}

/// Whether frames of this kind make chains.
pub(super) fn is_chain(frame: &Frame) -> bool {
    frame.chain().is_some()
}
