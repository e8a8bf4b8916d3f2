//! Header of a masks chunk, after the common part: what was enabled and disabled in one segment.
//! Everything is enabled until a chunk states otherwise. Payload: `changes` entries of
//! [`change`], in the order of their numbers, and then `rings` entries of [`ring`],
//! one for each claimed ring. In any other ring, no frame came before the change.
//!
//! A file that continues a capture begins with the disabled bits at that time ([`BASE`]).

/// u64, names the segment.
pub const NONCE: usize = 64;
/// u64, CLOCK_MONOTONIC in ns, before the change.
pub const MONOTONIC: usize = 72;
/// u32, number of changes.
pub const CHANGES: usize = 80;
/// u32, number of rings.
pub const RINGS: usize = 84;
/// u32, [`BASE`] or zero.
pub const FLAGS: usize = 88;
/// Zeros.
pub const RESERVED: usize = 92;
pub const LEN: usize = 128;
/// Bit of the flags: an earlier file states it, too.
pub const BASE: u32 = 1;

/// A change.
pub mod change {
    /// u32: a frame by its id, below 256; 256 + n: counter or histogram n of the schema.
    pub const CHOSEN: usize = 0;
    /// u32, 1: enabled from here on; 0: disabled.
    pub const ENABLED: usize = 4;
    pub const LEN: usize = 8;
}

/// A ring.
pub mod ring {
    /// u32.
    pub const RING: usize = 0;
    /// u32, zero.
    pub const RESERVED: usize = 4;
    /// u64: no enabled frame comes before this sequence number.
    pub const FIRST_ENABLED: usize = 8;
    /// u64: no disabled frame has this sequence number or a later one.
    pub const FIRST_DISABLED: usize = 16;
    pub const LEN: usize = 24;
}
