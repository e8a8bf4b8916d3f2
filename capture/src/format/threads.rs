//! Header of a threads chunk, after the common part: the names of threads of a source's process.
//! Payload: `count` entries of [`entry`]. A name holds until a later entry of the same
//! thread.
//!
//! A file that continues a capture begins with the current names ([`BASE`]).

/// u32, number of entries.
pub const COUNT: usize = 64;
/// u32, [`BASE`] or zero.
pub const FLAGS: usize = 68;
/// Zeros.
pub const RESERVED: usize = 72;
pub const LEN: usize = 128;
/// Bit of the flags: an earlier file states it, too.
pub const BASE: u32 = 1;

/// A thread.
pub mod entry {
    /// u32, kernel id of the thread, in the target's own pid namespace.
    pub const TID: usize = 0;
    /// u32, zero.
    pub const RESERVED: usize = 4;
    /// u64, CLOCK_MONOTONIC in ns when the name was read.
    pub const MONOTONIC: usize = 8;
    /// u8 × 16, the name as the kernel keeps it: any bytes, zero-padded.
    pub const NAME: usize = 16;
    pub const LEN: usize = 32;
}
