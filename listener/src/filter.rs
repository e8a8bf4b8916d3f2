//! Filters frames out of a capture.

use std::fmt;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use ppt_capture::stamps::Stamps;
use ppt_capture::{ClockReading, FramesHead, Source};

use crate::chunk::Frames;

/// Decides which frames a capture contains. The thread that writes the capture calls it, never the
/// one that drains.
pub trait Filter: fmt::Debug + Send {
    /// Frames of these feeds may follow.
    fn introduce(&mut self, new: &[(usize, &Source)]);

    /// New clock readings: two before the first frame, then about one per second.
    fn clocks(&mut self, readings: &[ClockReading]);

    /// Decides for each of the frames of `feed` with this head whether it is wanted, in order.
    fn wants(&mut self, feed: usize, head: &FramesHead, frames: &[u8], wanted: &mut Vec<bool>);
}

/// A filter that the options of a listener hold.
pub type SharedFilter = Arc<Mutex<dyn Filter>>;

/// Locks the filter, which only this thread uses.
pub(crate) fn locked(filter: &SharedFilter) -> MutexGuard<'_, dyn Filter + 'static> {
    filter.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Consecutive frames that are all wanted, or all not.
#[derive(Debug)]
pub(crate) enum FilteredRun {
    Wanted(Frames),
    /// The number of frames, and how many were passed to earlier parts.
    LeftOut {
        before: u32,
        count: u32,
    },
}

/// Splits `frames` of `stride` words into runs.
pub(crate) fn parts(
    frames: &Frames,
    wanted: &[bool],
    stride: usize,
    stamps: &Stamps,
) -> Vec<FilteredRun> {
    if wanted.iter().all(|&flag| flag) {
        return vec![FilteredRun::Wanted(frames.clone())];
    }
    let mut before = 0;
    let runs = wanted.chunk_by(|a, b| a == b).map(|run| {
        let (first, count) = (before, run.len() as u32);
        before += count;
        if run[0] {
            FilteredRun::Wanted(frames.part(first, count, stride, stamps))
        } else {
            FilteredRun::LeftOut { before: first, count }
        }
    });
    runs.collect()
}
