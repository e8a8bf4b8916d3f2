//! One buffer of one target, as the agent hands it to the listener.

use std::fmt;
use std::sync::Arc;

use ppt_capture::{Segment as ListedSegment, Source};
use ppt_segment::Segment;

use crate::cells::FoundCells;
use crate::error::ListenerError;

/// Returns whether the thread with this id, in the target's numbering, exists. `None` if that is
/// unknown, or not known yet. Called at most once a second per idle ring; takes at most a
/// millisecond.
pub type Alive = Box<dyn FnMut(u32) -> Option<bool> + Send>;

/// A buffer to drain. Its index is its source number in the capture, unless the capture continues
/// in other files: these renumber the feeds that may still have frames.
pub struct Feed {
    /// The description in the capture. `segment` is added to the segments there if it is missing.
    pub source: Source,
    /// The rings.
    pub segment: Arc<Segment>,
    /// For each ring, the cursor (frames published) at which this session starts.
    pub first: Vec<u64>,
    /// The cells of the segment at the start of the session: what earlier sessions added.
    pub cells: FoundCells,
    /// Frames between the last session and this one. They count towards neither.
    pub unattended: Vec<Unattended>,
    /// The number of rings, from the first, that are already populated.
    pub populated: u32,
    /// Lets the listener free the rings of threads that ended without freeing them.
    pub alive: Option<Alive>,
}

/// A change that is passed to a working thread while feeds come and go.
pub(crate) enum FeedChange<T> {
    /// One more segment.
    Add(T),
    /// No more frames come from this segment.
    Retire(usize),
}

/// Frames of one ring that were written while no session was attached.
#[derive(Debug, Clone)]
pub struct Unattended {
    /// The segment: that of the feed, or one of earlier sessions.
    pub segment: Arc<Segment>,
    /// The ring.
    pub ring: u32,
    /// The first sequence number.
    pub first_seq: u64,
    /// The number of frames.
    pub count: u64,
}

impl Feed {
    /// A feed that starts at the current cursors, which should be read before the gate opens.
    /// Frames that earlier sessions did not account for are unattended.
    pub fn starting_now(source: Source, segment: Arc<Segment>) -> Self {
        let rings = 0..segment.geometry().rings();
        let first: Vec<u64> = rings.clone().map(|ring| segment.ring(ring).tail()).collect();
        let unattended = rings
            .zip(&first)
            .filter_map(|(ring, &tail)| {
                let (first_seq, count) = segment.ring(ring).unattended(0, tail)?;
                Some(Unattended { segment: segment.clone(), ring, first_seq, count })
            })
            .collect();
        let cells = FoundCells::new();
        Self { source, segment, first, cells, unattended, populated: 0, alive: None }
    }

    /// Fails if the feed cannot be drained. Adds the segment to the source.
    pub(crate) fn complete(&mut self, feed: usize) -> Result<(), ListenerError> {
        let geometry = self.segment.geometry();
        let refuse = |what| Err(ListenerError::Feed { feed, what });
        if self.first.len() != geometry.rings() as usize {
            return refuse("there is not one start for each ring");
        }
        if self.unattended.iter().any(|one| one.ring >= one.segment.geometry().rings()) {
            return refuse("it speaks of a ring that its segment does not have");
        }
        let listed = &mut self.source.segments;
        for segment in self.unattended.iter().map(|one| &one.segment).chain([&self.segment]) {
            let (nonce, geometry) = (segment.nonce(), segment.geometry());
            if listed.iter().all(|listed| listed.nonce != nonce) {
                listed.push(ListedSegment {
                    nonce,
                    rings: geometry.rings(),
                    slots: geometry.slots() as u32,
                    stride: geometry.stride(),
                });
            }
        }
        Ok(())
    }
}

impl fmt::Debug for Feed {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Feed")
            .field("buffer", &self.source.buffer)
            .field("segment", &self.segment)
            .field("first", &self.first)
            .field("unattended", &self.unattended)
            .field("populated", &self.populated)
            .field("alive", &self.alive.is_some())
            .finish()
    }
}
