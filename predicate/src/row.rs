//! A frame and its context.

use ppt_capture::{FramesHead, Stamps};

/// The context that the frames of a chunk share.
#[derive(Debug, Clone, Copy)]
pub struct Chunk<'a> {
    /// Converts their stamps.
    pub stamps: &'a Stamps<'a>,
    /// Realtime − monotonic of the capture, ns. `None` if unknown.
    pub offset: Option<i128>,
    /// The thread that wrote them, and the time of the drain.
    pub head: &'a FramesHead,
    /// The process, in the listener's numbering.
    pub pid: u32,
}

/// A frame.
#[derive(Debug, Clone, Copy)]
pub struct PredicateRow<'a> {
    /// The chunk with the frame.
    pub chunk: &'a Chunk<'a>,
    /// The sequence number of the frame, from 1.
    pub seqno: u64,
    /// The bytes of the frame.
    pub bytes: &'a [u8],
}
