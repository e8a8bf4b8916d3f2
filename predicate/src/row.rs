//! A frame, and what is known of it.

use ppt_capture::{FramesHead, Stamps};

/// What the frames of a chunk share.
#[derive(Debug, Clone, Copy)]
pub struct Chunk<'a> {
    /// Converts their stamps.
    pub stamps: &'a Stamps<'a>,
    /// Realtime − monotonic of the capture, ns; None if that is not known.
    pub offset: Option<i128>,
    /// Who wrote them, and when they were drained.
    pub head: &'a FramesHead,
    /// The process, as the listener sees it.
    pub pid: u32,
}

/// A frame.
#[derive(Debug, Clone, Copy)]
pub struct Row<'a> {
    /// Its chunk.
    pub chunk: &'a Chunk<'a>,
    /// Its number in its ring.
    pub seqno: u64,
    /// Its bytes.
    pub bytes: &'a [u8],
}
