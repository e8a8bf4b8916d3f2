//! Sinks take drained frames.
//!
//! A drain feeds one sink or several. Each has a thread and a bounded queue of its own, and an
//! account of its own: what its queue has no room for is lost by cause `disk`, to this sink and to no
//! other. The drain waits for none of them. All share the memory of the frames, which is freed when
//! the last one lets it go.

use std::io;
use std::sync::Arc;

use ppt_capture::{Dropped, EndReason, Flip, Gap, Modules, Source};
use ppt_segment::Segment;

use crate::account::Closing;
use crate::cells::FoundCells;
use crate::chunk::Frames;
use crate::tally::FeedTally;
use crate::thread_names::NameChanges;
use ppt_capture::stamps::Stamps;

/// Takes what comes out of the rings, in order. One thread works it, whom nobody waits for.
///
/// For each ring, what a sink is given tiles: its [first cursor](Introduction::first), then losses
/// and frames by turns ([`Frames::lost_before`]), and what [`Closing`] says of its end.
pub trait Sink: Send {
    /// Frames of these come from now on.
    fn introduce(&mut self, new: &[Introduction]);

    /// Frames of a segment that has been introduced.
    fn frames(&mut self, frames: &Frames);

    /// What was enabled and disabled in a segment of this feed. It says by itself which frames it is
    /// about.
    fn masks(&mut self, feed: usize, flip: &Arc<Flip>) {
        let _ = (feed, flip);
    }

    /// Threads of this feed's process have got a name, or ended.
    fn thread_names(&mut self, feed: usize, changes: &Arc<NameChanges>) {
        let _ = (feed, changes);
    }

    /// What this feed's process has mapped as code has changed.
    fn modules(&mut self, feed: usize, modules: &Modules) {
        let _ = (feed, modules);
    }

    /// Nothing more comes out of segment `segment_number`, whose rings were left so. Rings that nothing came
    /// out of are not named.
    fn gone(&mut self, segment_number: usize, closings: &[Closing]);

    /// All frames that were written before this time, ns of CLOCK_MONOTONIC, have come. Only a sink
    /// that keeps time is told.
    fn upto(&mut self, mono_ns: u64) {
        let _ = mono_ns;
    }

    /// When [`Self::tick`] is due, ns of CLOCK_MONOTONIC.
    fn due(&self) -> u64;

    /// Does what has to be done now and then: asked for when it is due, and after everything else.
    fn tick(&mut self);

    /// Nothing more comes at all.
    fn end(self: Box<Self>, ending: &Ending) -> SinkOutcome;
}

/// The description of a segment, which precedes its first frame.
#[derive(Debug)]
pub struct Introduction {
    /// The number of its feed: a new one, or one that is known by another segment.
    pub feed: usize,
    /// The segment's number, which no other one ever has.
    pub segment_number: usize,
    /// The segment.
    pub segment: Arc<Segment>,
    /// The cursor of each of its rings at the start.
    pub first: Vec<u64>,
    /// The cells of the segment when the session came to it.
    pub cells: FoundCells,
    /// The source of its frames, with all segments of the feed.
    pub source: Source,
    pub(crate) stamps: Arc<Stamps>,
    pub(crate) tally: Option<Arc<FeedTally>>,
    /// Frames of earlier times; what number the feed has in a file is the sink's to say.
    pub gaps: Vec<Gap>,
    /// Up to which cursors all is accounted for, once those gaps are stated: segment, ring, cursor.
    pub attended: Vec<(Arc<Segment>, u32, u64)>,
}

/// How it is to end.
#[derive(Debug, Clone)]
pub struct Ending {
    /// Why.
    pub reason: EndReason,
    /// More about that.
    pub message: String,
    /// The frames that each feed refused.
    pub dropped: Vec<Dropped>,
}

/// The result of a sink.
#[derive(Debug)]
pub struct SinkOutcome {
    /// The error that ended it, if any.
    pub error: Option<io::Error>,
    /// Whether everything has been dealt with, its end included.
    pub complete: bool,
}
