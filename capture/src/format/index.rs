//! Payload of an index chunk: a head, then one entry for each chunk since the previous index.

/// u64, offset of the previous index chunk; 0 = none.
pub const PREVIOUS: usize = 0;
/// u64, number of entries.
pub const COUNT: usize = 8;
pub const HEAD: usize = 16;

/// One entry; fields that its kind does not have are 0.
pub mod entry {
    /// u64, offset of the chunk from the first byte of the file.
    pub const OFFSET: usize = 0;
    /// u16.
    pub const KIND: usize = 8;
    /// u16.
    pub const SOURCE: usize = 10;
    /// u32.
    pub const RING: usize = 12;
    /// u64.
    pub const NONCE: usize = 16;
    /// u64.
    pub const FIRST_SEQ: usize = 24;
    /// u64.
    pub const COUNT: usize = 32;
    /// u64.
    pub const T_MIN: usize = 40;
    /// u64.
    pub const T_MAX: usize = 48;
    /// u64, as in the frames chunk.
    pub const FRAME_MASK: usize = 56;
    pub const LEN: usize = 64;
}
