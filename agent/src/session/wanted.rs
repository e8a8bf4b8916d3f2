//! What a session wants of a buffer, and what it says of a change.

use std::fmt;

use ppt_frame_dsl::Schema;
use ppt_segment::Masks;

/// Says what a session wants of each buffer that it comes to.
pub trait Choose: fmt::Debug + Send + Sync {
    /// What it does not want of a buffer of process `pid`.
    fn masks(&self, pid: i32, schema: &Schema) -> Masks;
}

/// What was enabled or disabled in a segment, and what that says of its rings.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Flip {
    /// Nonce of the segment.
    pub nonce: u64,
    /// CLOCK_MONOTONIC in ns, before the flip.
    pub mono_ns: u64,
    /// Bits of [`Masks`], and whether they are enabled from here on.
    pub changes: Vec<(u32, bool)>,
    /// The rings that somebody had claimed. The flip came before the first frame of any other.
    pub rings: Vec<FlipRing>,
}

/// What a flip says of a ring.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct FlipRing {
    /// The ring.
    pub ring: u32,
    /// No frame that was enabled comes before this number.
    pub first_enabled: u64,
    /// No frame that was disabled has this number, or a later one.
    pub first_disabled: u64,
}
