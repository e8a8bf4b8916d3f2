//! Header of a modules chunk, after the common part: all executable mappings of a source's process,
//! which hold until the next such chunk of the process. Payload: `count` entries, each a head of
//! [`entry`], then the path, then the build id, then zeros to a multiple of
//! [`ENTRY_ALIGN`], in the order of their addresses, without overlaps.
//!
//! A file that continues a capture begins with the current set ([`BASE`]).

/// u64, CLOCK_MONOTONIC in ns when they were read.
pub const MONOTONIC: usize = 64;
/// u32, number of entries.
pub const COUNT: usize = 72;
/// u32, number of the process's mappings that are not listed.
pub const LEFT_OUT: usize = 76;
/// u32, [`BASE`] or zero.
pub const FLAGS: usize = 80;
/// Zeros.
pub const RESERVED: usize = 84;
pub const LEN: usize = 128;
/// Bit of the flags: an earlier file states it, too.
pub const BASE: u32 = 1;
/// Most entries of a chunk.
pub const MAX_COUNT: usize = 4096;
/// Most bytes of a payload.
pub const MAX_PAYLOAD: usize = 1 << 20;
/// Most bytes of a path: PATH_MAX.
pub const MAX_PATH: usize = 4096;
/// Most bytes of a build id.
pub const MAX_BUILD_ID: usize = 64;
/// Entries begin at multiples of this.
pub const ENTRY_ALIGN: usize = 8;

/// A mapping.
pub mod entry {
    /// u64, its first address.
    pub const START: usize = 0;
    /// u64, its end address, exclusive.
    pub const END: usize = 8;
    /// u64, its offset in the file, in bytes.
    pub const OFFSET: usize = 16;
    /// u64, the address that the file assigns to the first address; see [`HAS_ADDRESS`].
    pub const ADDRESS: usize = 24;
    /// u16, length of the path in bytes; the path may hold any bytes.
    pub const PATH_LEN: usize = 32;
    /// u16, bytes of the build id; 0 = none.
    pub const BUILD_ID_LEN: usize = 34;
    /// u32, [`HAS_ADDRESS`] and [`DELETED`], or zero.
    pub const FLAGS: usize = 36;
    pub const LEN: usize = 40;
    /// Bit of the flags: the address in the file is known.
    pub const HAS_ADDRESS: u32 = 1;
    /// Bit of the flags: the file had been deleted or replaced.
    pub const DELETED: u32 = 2;
}
