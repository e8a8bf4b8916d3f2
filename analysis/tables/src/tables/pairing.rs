//! Frames that form spans or chains: their columns, and the groups in which they are paired.

mod columns;
mod form;
mod frames;
mod read;

use ppt_capture::frame_dsl::schema::Frame;

pub(super) use self::columns::{PairedColumn, whole_schema};
pub(super) use self::frames::{Hidden, PairedFrames};
pub(super) use self::read::{PairingColumns, find_missing};

/// Whether frames of this kind make spans.
pub(super) fn is_span(frame: &Frame) -> bool {
    frame.span().is_some()
}

/// Whether frames of this kind make chains.
pub(super) fn is_chain(frame: &Frame) -> bool {
    frame.chain().is_some()
}
