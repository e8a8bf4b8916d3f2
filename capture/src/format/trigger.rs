//! Header of a trigger chunk, after the common part: why the flight recorder wrote this window. A
//! window has one such chunk for each of its triggers, before its frames. Payload: two lengths,
//! then an expression and a note.

/// u64, CLOCK_MONOTONIC in ns.
pub const MONOTONIC: usize = 64;
/// u64, CLOCK_MONOTONIC in ns of the requested start of the window.
pub const FROM: usize = 72;
/// u64, the same for its end.
pub const TO: usize = 80;
/// u64, CLOCK_MONOTONIC in ns since which every drained frame was in memory.
pub const HELD_FROM: usize = 88;
/// u64, the end of that time.
pub const HELD_TO: usize = 96;
/// u64, names the segment of the ring.
pub const NONCE: usize = 104;
/// u64, sequence number of the frame, or of the first lost one; 0 = none.
pub const SEQNO: usize = 112;
/// u32, [`RING_NONE`] = none.
pub const RING: usize = 120;
/// u16, see [`crate::TriggerCause`].
pub const WHY: usize = 124;
/// u16, zero.
pub const RESERVED: usize = 126;
pub const LEN: usize = 128;
/// No ring.
pub const RING_NONE: u32 = u32::MAX;
/// Most bytes of each of the two texts.
pub const MAX_TEXT: usize = 64 << 10;

/// The payload.
pub mod texts {
    /// u32.
    pub const EXPRESSION_LEN: usize = 0;
    /// u32.
    pub const NOTE_LEN: usize = 4;
    /// Both texts, one after the other.
    pub const TEXTS: usize = 8;
}
