//! Triggers.

use std::collections::BTreeMap;
use std::fmt;
use std::sync::Arc;

use ppt_capture::{ClockReading, FramesHead, Source, TriggerCause};

/// Evaluates triggers. The recorder's own thread calls it, never the one that drains.
pub trait TriggerWatch: fmt::Debug + Send {
    /// Frames of these feeds may follow.
    fn introduce(&mut self, new: &[(usize, &Source)]);

    /// New clock readings: two before the first frame, then about one per second.
    fn clocks(&mut self, readings: &[ClockReading]);

    /// Appends those of the frames of `feed` with this head that trigger.
    fn frames(&mut self, feed: usize, head: &FramesHead, frames: &[u8], hits: &mut Vec<TriggerHit>);

    /// The expressions that hold for the sums added to the cells of `feed` since the last call.
    fn added(&mut self, feed: usize, added: &BTreeMap<u32, u64>) -> Vec<Arc<str>>;
}

/// A frame that triggers.
#[derive(Debug, Clone)]
pub struct TriggerHit {
    /// The sequence number of the frame, from 1.
    pub seqno: u64,
    /// The time of the frame, ns of CLOCK_MONOTONIC, if the frame contains it.
    pub mono_ns: Option<u64>,
    /// The expression that holds for it.
    pub expression: Arc<str>,
}

/// A trigger.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Fired {
    pub why: TriggerCause,
    pub expression: Arc<str>,
    pub feed: Option<usize>,
    /// Nonce of the segment, and number of the ring.
    pub ring: Option<(u64, u32)>,
    pub seqno: Option<u64>,
    pub note: String,
}

impl Fired {
    /// A trigger that does not come from a frame.
    pub fn without_frame(why: TriggerCause, feed: Option<usize>, note: String) -> Self {
        Self { why, expression: "".into(), feed, ring: None, seqno: None, note }
    }
}
