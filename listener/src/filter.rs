//! Frames that a capture leaves out.

use std::fmt;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use ppt_capture::stamps::Stamps;
use ppt_capture::{ClockReading, FramesHead, Source};

use crate::chunk::Frames;

/// Says which frames are wanted in a capture. The thread that writes it asks, never the one that
/// drains.
pub trait Filter: fmt::Debug + Send {
    /// Frames of these feeds come from now on.
    fn introduce(&mut self, new: &[(usize, &Source)]);

    /// The clocks were read: twice before the first frame, and about each second.
    fn clocks(&mut self, readings: &[ClockReading]);

    /// Says of each of the frames of `feed` with this head whether it is wanted, one after the other.
    fn wants(&mut self, feed: usize, head: &FramesHead, frames: &[u8], wanted: &mut Vec<bool>);
}

/// A filter that the options of a listener hold.
pub type SharedFilter = Arc<Mutex<dyn Filter>>;

/// The filter, of this thread alone.
pub(crate) fn locked(filter: &SharedFilter) -> MutexGuard<'_, dyn Filter + 'static> {
    filter.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Frames without a hole that are wanted, or not.
#[derive(Debug)]
pub(crate) enum FilteredRun {
    Wanted(Frames),
    /// So many frames, and how many went into the parts before.
    LeftOut {
        before: u32,
        count: u32,
    },
}

/// Takes `frames` of `stride` words apart.
pub(crate) fn parts(
    frames: &Frames,
    wanted: &[bool],
    stride: usize,
    stamps: &Stamps,
) -> Vec<FilteredRun> {
    if wanted.iter().all(|&it| it) {
        return vec![FilteredRun::Wanted(frames.clone())];
    }
    let mut before = 0;
    let runs = wanted.chunk_by(|a, b| a == b).map(|run| {
        let (first, count) = (before, run.len() as u32);
        before += count;
        match run[0] {
            true => FilteredRun::Wanted(frames.part(first, count, stride, stamps)),
            false => FilteredRun::LeftOut { before: first, count },
        }
    });
    runs.collect()
}
