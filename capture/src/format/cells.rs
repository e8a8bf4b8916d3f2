//! Header of a cells chunk, after the common part: a reading of the counters and histograms of one
//! segment. It states the cells that have changed since the previous reading.
//!
//! Payload: rows, each a head of [`row`] and then `count` entries of [`entry`], in
//! the order of their cells. A value is the sum added since the session began, modulo 2^64; the
//! last one counts. Cells that no chunk states are 0.
//!
//! A file that continues a capture begins with the values at which the previous file ended
//! ([`BASE`]). The difference is what was added while the file was written.

/// u64, names the segment.
pub const NONCE: usize = 64;
/// u64, CLOCK_MONOTONIC in ns when the reading began.
pub const MONOTONIC: usize = 72;
/// u64, adds and observations of the source that were lost because the target could not map its
/// segment, since the start of the capture; the last chunk counts.
pub const NOT_MAPPED: usize = 80;
/// u32, [`BASE`] or zero.
pub const FLAGS: usize = 88;
/// Zeros.
pub const RESERVED: usize = 92;
pub const LEN: usize = 128;
/// Bit of the flags: the values at the start of the file.
pub const BASE: u32 = 1;

/// The head of a row.
pub mod row {
    /// u32, the ring whose owners added; [`SHARED`] for the shared row.
    pub const RING: usize = 0;
    /// u32, kernel id of the thread that added since the previous reading, in the target's own
    /// pid namespace; 0: several threads did, or it is unknown.
    pub const TID: usize = 4;
    /// u32, number of entries.
    pub const COUNT: usize = 8;
    /// u32, zero.
    pub const RESERVED: usize = 12;
    pub const LEN: usize = 16;
    /// No ring.
    pub const SHARED: u32 = u32::MAX;
}

/// A cell.
pub mod entry {
    /// u32, its number in a row. The schema states its counter or histogram.
    pub const CELL: usize = 0;
    /// u32, zero.
    pub const RESERVED: usize = 4;
    /// u64.
    pub const VALUE: usize = 8;
    pub const LEN: usize = 16;
}
