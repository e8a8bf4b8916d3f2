//! Payload of the end chunk: a head, the rings, the drops, the message, zeros, and a trailer that
//! is the last part of the file. From there a reader that can seek finds end and index.

/// The head.
pub mod head {
    /// u16, see [`crate::EndReason`].
    pub const REASON: usize = 0;
    /// u16, zero.
    pub const RESERVED: usize = 2;
    /// u32, number of rings.
    pub const RINGS: usize = 4;
    /// u32, number of drops.
    pub const DROPS: usize = 8;
    /// u32, bytes of the message.
    pub const MESSAGE_LEN: usize = 12;
    /// u64, CLOCK_REALTIME in ns.
    pub const REALTIME: usize = 16;
    /// u64, CLOCK_MONOTONIC in ns.
    pub const MONOTONIC: usize = 24;
    pub const LEN: usize = 32;
}

/// The account of one ring.
pub mod ring {
    /// u64.
    pub const NONCE: usize = 0;
    /// u32.
    pub const RING: usize = 8;
    /// u16.
    pub const SOURCE: usize = 12;
    /// u16, zero.
    pub const RESERVED: usize = 14;
    /// u64, cursor when the session began.
    pub const FIRST_SEQ: usize = 16;
    /// u64, cursor of the last drain.
    pub const NEXT_SEQ: usize = 24;
    /// u64, frames in the file.
    pub const CAPTURED: usize = 32;
    /// u64 × 3: overrun, disk, corrupt.
    pub const LOST: usize = 40;
    pub const LEN: usize = 64;
}

/// The drops of one source.
pub mod drops {
    /// u64.
    pub const NO_RING: usize = 0;
    /// u64.
    pub const NESTED: usize = 8;
    /// u64.
    pub const NOT_MAPPED: usize = 16;
    /// u16.
    pub const SOURCE: usize = 24;
    /// Zeros.
    pub const RESERVED: usize = 26;
    pub const LEN: usize = 32;
}

/// The last bytes of the payload, which is padded so that they end the file.
pub mod trailer {
    /// u64, offset of the end chunk.
    pub const END: usize = 0;
    /// u64, offset of the last index chunk.
    pub const INDEX: usize = 8;
    /// u64, zero.
    pub const RESERVED: usize = 16;
    /// u8 × 8.
    pub const MAGIC: usize = 24;
    pub const MAGIC_VALUE: [u8; 8] = *b"\x89ppt-end";
    pub const LEN: usize = 32;
}
