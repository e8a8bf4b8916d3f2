//! What triggers.

use std::collections::BTreeMap;
use std::fmt;
use std::sync::Arc;

use ppt_capture::{ClockReading, FramesHead, Source, Why};

/// Looks for what triggers. The recorder's own thread asks, never the one that drains.
pub trait TriggerWatch: fmt::Debug + Send {
    /// Frames of these feeds come from now on.
    fn introduce(&mut self, new: &[(usize, &Source)]);

    /// The clocks were read: twice before the first frame, and about each second.
    fn clocks(&mut self, readings: &[ClockReading]);

    /// Which of the frames of `feed` with this head trigger.
    fn frames(&mut self, feed: usize, head: &FramesHead, frames: &[u8], hits: &mut Vec<TriggerHit>);

    /// Which expressions are true of what was added to the cells of `feed` since it was asked before.
    fn added(&mut self, feed: usize, added: &BTreeMap<u32, u64>) -> Vec<Arc<str>>;
}

/// A frame that triggers.
#[derive(Debug, Clone)]
pub struct TriggerHit {
    /// Its number.
    pub seqno: u64,
    /// When it was written, ns of CLOCK_MONOTONIC, if the frame says so.
    pub mono_ns: Option<u64>,
    /// The expression that is true of it.
    pub expression: Arc<str>,
}

/// A trigger.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Fired {
    pub why: Why,
    pub expression: Arc<str>,
    pub feed: Option<usize>,
    /// Nonce of the segment, and number of the ring.
    pub ring: Option<(u64, u32)>,
    pub seqno: Option<u64>,
    pub note: String,
}

impl Fired {
    /// One that comes from no frame.
    pub fn without_frame(why: Why, feed: Option<usize>, note: String) -> Self {
        Self { why, expression: "".into(), feed, ring: None, seqno: None, note }
    }
}
