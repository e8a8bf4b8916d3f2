//! Sinks, which take drained frames.
//!
//! A drain feeds one or more sinks. Each has its own thread, bounded queue and account: frames
//! without room in its queue are lost by cause `disk`, for this sink only. The drain waits for none
//! of them. All share the memory of the frames, which is freed when the last one releases it.

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

/// Takes the frames of the rings, in order. One thread runs it, and no other thread waits for that
/// one.
///
/// For each ring, the input is contiguous: its [first cursor](Introduction::first), then losses and
/// frames alternately ([`Frames::lost_before`]), and the end as stated by [`Closing`].
pub trait Sink: Send {
    /// Frames of these segments may follow.
    fn introduce(&mut self, new: &[Introduction]);

    /// Frames of a segment that has been introduced.
    fn frames(&mut self, frames: &Frames);

    /// A change of the masks of a segment of this feed. It states by itself which frames it
    /// concerns.
    fn masks(&mut self, feed: usize, flip: &Arc<Flip>) {
        let _ = (feed, flip);
    }

    /// Threads of this feed's process got a name, or ended.
    fn thread_names(&mut self, feed: usize, changes: &Arc<NameChanges>) {
        let _ = (feed, changes);
    }

    /// The code mappings of this feed's process have changed.
    fn modules(&mut self, feed: usize, modules: &Modules) {
        let _ = (feed, modules);
    }

    /// No more frames come from segment `segment_number`, whose rings ended in these states. Rings
    /// without frames are not listed.
    fn gone(&mut self, segment_number: usize, closings: &[Closing]);

    /// All frames that were written before this time, ns of CLOCK_MONOTONIC, have arrived. Only
    /// called for a sink that keeps time.
    fn upto(&mut self, mono_ns: u64) {
        let _ = mono_ns;
    }

    /// The time at which [`Self::tick`] is due, ns of CLOCK_MONOTONIC.
    fn due(&self) -> u64;

    /// Does periodic work: called when it is due, and after every other call.
    fn tick(&mut self);

    /// The end: nothing follows.
    fn end(self: Box<Self>, ending: &Ending) -> SinkOutcome;
}

/// The description of a segment, which precedes its first frame.
#[derive(Debug)]
pub struct Introduction {
    /// The number of its feed: a new one, or one that is known from another segment.
    pub feed: usize,
    /// The segment's number, which is never reused.
    pub segment_number: usize,
    /// The segment.
    pub segment: Arc<Segment>,
    /// The cursor of each of its rings at the start of the session.
    pub first: Vec<u64>,
    /// The cells of the segment at the start of the session.
    pub cells: FoundCells,
    /// The source of its frames, with all segments of the feed.
    pub source: Source,
    pub(crate) stamps: Arc<Stamps>,
    pub(crate) tally: Option<Arc<FeedTally>>,
    /// Frames of earlier sessions. The sink assigns the feed's number in a file.
    pub gaps: Vec<Gap>,
    /// The cursors up to which everything is accounted for once those gaps are stated: segment,
    /// ring, cursor.
    pub attended: Vec<(Arc<Segment>, u32, u64)>,
}

/// The end of a capture.
#[derive(Debug, Clone)]
pub struct Ending {
    /// The reason.
    pub reason: EndReason,
    /// Further information about the reason.
    pub message: String,
    /// The frames that each feed refused.
    pub dropped: Vec<Dropped>,
}

/// The result of a sink.
#[derive(Debug)]
pub struct SinkOutcome {
    /// The error that ended it, if any.
    pub error: Option<io::Error>,
    /// Whether everything has been processed, including its end.
    pub complete: bool,
}
