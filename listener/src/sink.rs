//! What becomes of frames that have been drained.

use std::io;
use std::sync::Arc;

use ppt_capture::{Dropped, EndReason, Gap, Source};
use ppt_segment::Segment;

use crate::account::Closing;
use crate::chunk::Chunk;
use crate::stamps::Stamps;

/// Takes what comes out of the rings, in order. One thread works it, whom nobody waits for.
pub(crate) trait Sink {
    /// Frames of these come from now on.
    fn introduce(&mut self, new: Vec<Introduction>);

    /// Frames of a segment that has been introduced.
    fn frames(&mut self, chunk: &Chunk);

    /// Nothing more comes out of segment `part`, whose rings were left so.
    fn gone(&mut self, part: usize, closings: &[Closing]);

    /// When [`Self::tick`] is due, ns of CLOCK_MONOTONIC.
    fn due(&self) -> u64;

    /// Does what has to be done now and then: asked for when it is due, and after everything else.
    fn tick(&mut self);

    /// Nothing more comes at all.
    fn end(self, ending: Ending) -> Done;
}

/// What is said of a segment before its first frame.
#[derive(Debug)]
pub(crate) struct Introduction {
    /// A new one, or one that is known by another segment.
    pub feed: usize,
    /// The segment's number, which no other one ever has.
    pub part: usize,
    pub segment: Arc<Segment>,
    /// The cursor of each of its rings at the start.
    pub first: Vec<u64>,
    /// With all segments of the feed.
    pub source: Source,
    pub stamps: Arc<Stamps>,
    /// Frames of earlier times; what number the feed has in a file is the sink's to say.
    pub gaps: Vec<Gap>,
    /// Up to which cursors all is accounted for, once those gaps are stated: segment, ring, cursor.
    pub attended: Vec<(Arc<Segment>, u32, u64)>,
}

/// How it is to end.
#[derive(Debug)]
pub(crate) struct Ending {
    pub reason: EndReason,
    pub message: String,
    /// What each feed refused.
    pub dropped: Vec<Dropped>,
}

/// How it did.
#[derive(Debug)]
pub(crate) struct Done {
    pub error: Option<io::Error>,
    pub complete: bool,
}
