//! A session's selection for a buffer, and the effects of a change.

use std::fmt;

use ppt_frame_dsl::Schema;
use ppt_segment::Masks;

/// Chooses what a session records of each buffer.
pub trait Choose: fmt::Debug + Send + Sync {
    /// The masks for a buffer of process `pid`.
    fn masks(&self, pid: i32, schema: &Schema) -> Masks;
}

/// A change of the masks of a segment, and the effect on its rings.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Flip {
    /// Nonce of the segment.
    pub nonce: u64,
    /// CLOCK_MONOTONIC in ns, before the flip.
    pub mono_ns: u64,
    /// Bits of [`Masks`], and whether they are enabled from here on.
    pub changes: Vec<(u32, bool)>,
    /// The rings that were claimed. For any other ring, the flip came before its first frame.
    pub rings: Vec<FlipRing>,
}

/// The effect of a flip on a ring.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct FlipRing {
    /// The ring.
    pub ring: u32,
    /// No enabled frame comes before this sequence number.
    pub first_enabled: u64,
    /// No disabled frame has this sequence number or a later one.
    pub first_disabled: u64,
}
