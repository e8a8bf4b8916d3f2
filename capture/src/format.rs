//! Every byte of a capture. All numbers are little-endian; text is UTF-8, zero-padded.
//!
//! ```text
//! file  = file header (256 bytes) · chunk · chunk · … · index chunk · end chunk
//! chunk = header (header_len bytes) · payload (stored_len bytes) · zeros to the next multiple of 64
//! ```
//! Every chunk starts at a multiple of 64 from the first byte of the file. So after damage, a
//! reader finds the next chunk by checking those offsets only. Each header repeats the first half
//! of the capture id, so bytes inside a payload, which the target chooses, never pass for a chunk.
//!
//! Without a new [`VERSION`], later versions may append fields to a header (header_len grows, and
//! readers use the fields that they know), add kinds (readers skip them by length), and use
//! reserved bytes for which 0 keeps its meaning. Header bytes after the writer's known fields are
//! zeros; the writer makes headers longer so that a large payload begins at a multiple of
//! [`BLOCK`]. Two things never change in any version: the first 24 bytes of the file header, and
//! the offset and computation of its checksum.

pub(crate) mod cells;
pub(crate) mod end;
pub(crate) mod index;
pub(crate) mod masks;
pub(crate) mod modules;
pub(crate) mod threads;
pub(crate) mod trigger;

/// Version of the format that this crate writes, and the newest it reads.
pub const VERSION: u32 = 1;
/// Chunks start at multiples of this.
pub(crate) const ALIGN: usize = 64;
/// Alignment, in the file and in memory, that suffices for every file system to write past the page
/// cache.
pub const BLOCK: usize = 4096;
/// Payloads of frames of at least this size in bytes begin at a multiple of [`BLOCK`], if the
/// header can be long enough.
pub const ALIGNED_PAYLOAD_FROM: usize = 256 << 10;
/// Most frames in a frames chunk.
pub const MAX_FRAMES: u32 = 1 << 16;
/// Most bytes from one frame to the next.
pub const MAX_STRIDE: u32 = 4096;
/// Most bytes of one payload.
pub const MAX_PAYLOAD: u64 = MAX_FRAMES as u64 * MAX_STRIDE as u64;
/// Most bytes of a compressed payload after decompression. A reader refuses more.
pub(crate) const MAX_CODED: u64 = 16 << 20;
/// Most bytes of one header; a longer one is damage.
pub(crate) const MAX_HEADER: usize = 4096;
/// Size of source chunks in bytes after which their copies are written, so that the writer's memory
/// is bounded.
pub(crate) const COPY_AFTER: u64 = 64 << 10;
/// Number of chunks after which an index is written, so that the writer's memory is bounded.
pub(crate) const INDEX_EVERY: usize = 4096;
/// Source number of a chunk without a source.
pub(crate) const NO_SOURCE: u16 = u16::MAX;

/// The file header.
pub(crate) mod file {
    /// The first bytes of a capture. They are not text, so that a transfer that changes line ends
    /// or strips bit 7 is detected.
    pub const MAGIC_VALUE: [u8; 8] = *b"\x89PPT\r\n\x1a\n";
    /// u8 × 8.
    pub const MAGIC: usize = 0;
    /// u32.
    pub const VERSION: usize = 8;
    /// u32, bytes of this header, a multiple of 64.
    pub const HEADER_LEN: usize = 12;
    /// u32, crc32c of the whole header with these four bytes zero.
    pub const CRC: usize = 16;
    /// u32, zero.
    pub const RESERVED: usize = 20;
    /// u8 × 16, random.
    pub const CAPTURE_ID: usize = 24;
    /// u64, CLOCK_REALTIME in ns when the capture was created.
    pub const CREATED_REALTIME: usize = 40;
    /// u64, CLOCK_MONOTONIC in ns at the same moment.
    pub const CREATED_MONOTONIC: usize = 48;
    /// u64, zero.
    pub const RESERVED_2: usize = 56;
    /// Text × 64, name of the host.
    pub const HOST: usize = 64;
    /// Text × 64, /proc/sys/kernel/random/boot_id.
    pub const BOOT_ID: usize = 128;
    /// Text × 64, program and version that wrote the capture.
    pub const TOOL: usize = 192;
    /// Bytes of each text.
    pub const TEXT: usize = 64;
    /// Bytes of the header.
    pub const LEN: usize = 256;
}

/// The first fields of every chunk header.
pub(crate) mod chunk {
    /// The digit changes with the format version.
    pub const MAGIC_VALUE: [u8; 8] = *b"\x89ppt-ch1";
    /// u8 × 8.
    pub const MAGIC: usize = 0;
    /// u8 × 8, the first half of the capture id.
    pub const CAPTURE: usize = 8;
    /// u32, bytes of the header, a multiple of 64.
    pub const HEADER_LEN: usize = 16;
    /// u16, see [`super::kind`].
    pub const KIND: usize = 20;
    /// u16, zero.
    pub const FLAGS: usize = 22;
    /// u16, number of the source in this capture; [`super::NO_SOURCE`] for none.
    pub const SOURCE: usize = 24;
    /// u16, how the payload is stored, see [`super::codec`].
    pub const CODEC: usize = 26;
    /// u32, crc32c of the whole header with these four bytes zero.
    pub const HEADER_CRC: usize = 28;
    /// u64, bytes of the payload in the file.
    pub const STORED_LEN: usize = 32;
    /// u64, bytes of the payload once decoded.
    pub const RAW_LEN: usize = 40;
    /// u64, number of this chunk in its capture, from 0 without holes. It distinguishes a repeated
    /// chunk from a late one.
    pub const ORDINAL: usize = 48;
    /// u32, crc32c of the stored payload.
    pub const PAYLOAD_CRC: usize = 56;
    /// u32, zero.
    pub const RESERVED: usize = 60;
    /// Bytes before the fields of a chunk kind.
    pub const LEN: usize = 64;
}

/// How a payload is stored. Only frames are compressed.
pub(crate) mod codec {
    /// Uncompressed.
    pub const NONE: u16 = 0;
    /// One Zstandard frame (RFC 8878).
    pub const ZSTD: u16 = 1;
    /// One LZ4 block, without a length before it.
    pub const LZ4: u16 = 2;
}

/// Chunk kinds.
pub(crate) mod kind {
    pub const SOURCE: u16 = 1;
    pub const FRAMES: u16 = 2;
    pub const GAP: u16 = 3;
    pub const CLOCK: u16 = 4;
    pub const DROPS: u16 = 5;
    pub const INDEX: u16 = 6;
    pub const END: u16 = 7;
    pub const CELLS: u16 = 8;
    pub const TRIGGER: u16 = 9;
    pub const MASKS: u16 = 10;
    pub const THREADS: u16 = 11;
    pub const SERIES: u16 = 12;
    pub const MODULES: u16 = 13;
}

/// Header of a frames chunk, after the common part. Payload, once decoded: `count` × `stride` bytes
/// as in the ring, sequence numbers `first_seq`, `first_seq + 1`, ….
pub(crate) mod frames {
    /// u64, names the segment.
    pub const NONCE: usize = 64;
    /// u64, from 1.
    pub const FIRST_SEQ: usize = 72;
    /// u32, 1 to 65,536.
    pub const COUNT: usize = 80;
    /// u32.
    pub const RING: usize = 84;
    /// u32, kernel id of the ring's owner, in the target's own pid namespace; 0 = unknown.
    pub const TID: usize = 88;
    /// u32, a multiple of 8.
    pub const STRIDE: usize = 92;
    /// u64 × 3, frames lost right before `first_seq`: overrun, disk, corrupt.
    pub const LOST_BEFORE: usize = 96;
    /// u64, CLOCK_MONOTONIC in ns before the first frame was drained.
    pub const DRAINED: usize = 120;
    /// u64, smallest value of the `@at` field, in ns of its clock (ticks for `tsc`); 0 = unknown.
    pub const T_MIN: usize = 128;
    /// u64, largest value of the `@at` field, in the same unit; 0 = unknown.
    pub const T_MAX: usize = 136;
    /// u64, bit n: a frame with id n is in the chunk; bit 63: 63 or higher; 0 = unknown.
    pub const FRAME_MASK: usize = 144;
    /// u64, CLOCK_MONOTONIC in ns after the last frame was drained; 0 = unknown.
    pub const DRAINED_BY: usize = 152;
    /// Zeros.
    pub const RESERVED: usize = 160;
    pub const LEN: usize = 192;
}

/// Header of a gap chunk, after the common part. No payload.
pub(crate) mod gap {
    /// u64, names the segment.
    pub const NONCE: usize = 64;
    /// u64, the first missing number.
    pub const FIRST_SEQ: usize = 72;
    /// u64, the number of missing frames.
    pub const COUNT: usize = 80;
    /// u32.
    pub const RING: usize = 88;
    /// u16 × 2, see [`crate::Cause::code`].
    pub const CAUSE: usize = 92;
    /// Zeros.
    pub const RESERVED: usize = 96;
    pub const LEN: usize = 128;
}

/// Header of a drops chunk, after the common part. No payload. The counts are those of the source
/// since the start of the capture: the last chunk counts.
pub(crate) mod drops {
    /// u64.
    pub const NO_RING: usize = 64;
    /// u64.
    pub const NESTED: usize = 72;
    /// u64.
    pub const NOT_MAPPED: usize = 80;
    /// u64, CLOCK_MONOTONIC in ns of the reading.
    pub const MONOTONIC: usize = 88;
    /// Zeros.
    pub const RESERVED: usize = 96;
    pub const LEN: usize = 128;
}

/// Payload of a series chunk: the position of this file in a series. The first file of a series has
/// no such chunk; each other file has one, before its frames.
pub(crate) mod series {
    /// u8 × 16, capture id of the first file.
    pub const SERIES: usize = 0;
    /// u8 × 16, capture id of the previous file.
    pub const PREVIOUS: usize = 16;
    /// u32, number of the file, from 2.
    pub const NUMBER: usize = 32;
    /// u32, number of files that are kept; 0 = all.
    pub const KEEP: usize = 36;
    /// u64, frames in the earlier files.
    pub const CAPTURED_BEFORE: usize = 40;
    /// Zeros.
    pub const RESERVED: usize = 48;
    pub const LEN: usize = 64;
}

/// Payload of a source chunk: two lengths, then JSON with the facts about the process and the
/// buffer (see [`crate::Source`]), then the schema's JSON exactly as the target holds it. A later
/// source chunk of the same number replaces the former (more segments); the schema stays the same.
/// The writer writes a copy of each before anything that refers to it, with another chunk between
/// the two, because frames cannot be read without their source.
pub(crate) mod source {
    /// u32.
    pub const META_LEN: usize = 0;
    /// u32.
    pub const SCHEMA_LEN: usize = 4;
    /// Both texts, one after the other.
    pub const TEXTS: usize = 8;
    /// Most bytes of each of the two texts.
    pub const MAX_TEXT: usize = 1 << 20;
}

/// Payload of a clock chunk: readings of this size, without a head.
pub(crate) mod clock {
    /// u16, see [`crate::ClockId`], or [`COMPLETE`].
    pub const A: usize = 0;
    /// u16.
    pub const B: usize = 2;
    /// u32, [`DISTRUSTED`] or zero.
    pub const FLAGS: usize = 4;
    /// u64, clock a before b was read.
    pub const A_BEFORE: usize = 8;
    /// u64, clock b.
    pub const B_VALUE: usize = 16;
    /// u64, clock a after b was read.
    pub const A_AFTER: usize = 24;
    pub const LEN: usize = 32;
    /// Bit of the flags: the system does not trust ticks, so readers must not use them from here
    /// on.
    pub const DISTRUSTED: u32 = 1;
    /// In the place of clock a: this is no reading. `b` is CLOCK_MONOTONIC in ns, and every frame that
    /// was published before is in an earlier chunk of the series, unless it is lost. Readers that do
    /// not know it skip it, as they skip readings of clocks that they do not know.
    pub const COMPLETE: u16 = 0x100;
}

/// The next multiple of [`ALIGN`].
pub(crate) const fn align(len: u64) -> u64 {
    len.next_multiple_of(ALIGN as u64)
}

/// Checks that fields follow each other without gaps, and that each struct has the stated size.
macro_rules! tiles {
    ($($module:path { $($field:ident: $size:expr),* })*) => {$(
        const _: () = {
            use $module as m;
            let mut at = tiles!(@first m $($field)*);
            $( assert!(m::$field == at); at += $size; )*
            assert!(at == m::LEN);
        };
    )*};
    (@first $m:ident $first:ident $($rest:ident)*) => { $m::$first };
}

tiles! {
    file { MAGIC: 8, VERSION: 4, HEADER_LEN: 4, CRC: 4, RESERVED: 4, CAPTURE_ID: 16,
        CREATED_REALTIME: 8, CREATED_MONOTONIC: 8, RESERVED_2: 8, HOST: file::TEXT,
        BOOT_ID: file::TEXT, TOOL: file::TEXT }
    chunk { MAGIC: 8, CAPTURE: 8, HEADER_LEN: 4, KIND: 2, FLAGS: 2, SOURCE: 2, CODEC: 2,
        HEADER_CRC: 4, STORED_LEN: 8, RAW_LEN: 8, ORDINAL: 8, PAYLOAD_CRC: 4, RESERVED: 4 }
    frames { NONCE: 8, FIRST_SEQ: 8, COUNT: 4, RING: 4, TID: 4, STRIDE: 4, LOST_BEFORE: 24,
        DRAINED: 8, T_MIN: 8, T_MAX: 8, FRAME_MASK: 8, DRAINED_BY: 8, RESERVED: 32 }
    gap { NONCE: 8, FIRST_SEQ: 8, COUNT: 8, RING: 4, CAUSE: 4, RESERVED: 32 }
    drops { NO_RING: 8, NESTED: 8, NOT_MAPPED: 8, MONOTONIC: 8, RESERVED: 32 }
    cells { NONCE: 8, MONOTONIC: 8, NOT_MAPPED: 8, FLAGS: 4, RESERVED: 36 }
    trigger { MONOTONIC: 8, FROM: 8, TO: 8, HELD_FROM: 8, HELD_TO: 8, NONCE: 8, SEQNO: 8, RING: 4,
        WHY: 2, RESERVED: 2 }
    masks { NONCE: 8, MONOTONIC: 8, CHANGES: 4, RINGS: 4, FLAGS: 4, RESERVED: 36 }
    threads { COUNT: 4, FLAGS: 4, RESERVED: 56 }
    threads::entry { TID: 4, RESERVED: 4, MONOTONIC: 8, NAME: 16 }
    modules { MONOTONIC: 8, COUNT: 4, LEFT_OUT: 4, FLAGS: 4, RESERVED: 44 }
    modules::entry { START: 8, END: 8, OFFSET: 8, ADDRESS: 8, PATH_LEN: 2, BUILD_ID_LEN: 2, FLAGS: 4 }
    masks::change { CHOSEN: 4, ENABLED: 4 }
    masks::ring { RING: 4, RESERVED: 4, FIRST_ENABLED: 8, FIRST_DISABLED: 8 }
    series { SERIES: 16, PREVIOUS: 16, NUMBER: 4, KEEP: 4, CAPTURED_BEFORE: 8, RESERVED: 16 }
    cells::row { RING: 4, TID: 4, COUNT: 4, RESERVED: 4 }
    cells::entry { CELL: 4, RESERVED: 4, VALUE: 8 }
    clock { A: 2, B: 2, FLAGS: 4, A_BEFORE: 8, B_VALUE: 8, A_AFTER: 8 }
    index::entry { OFFSET: 8, KIND: 2, SOURCE: 2, RING: 4, NONCE: 8, FIRST_SEQ: 8, COUNT: 8,
        T_MIN: 8, T_MAX: 8, FRAME_MASK: 8 }
    end::head { REASON: 2, RESERVED: 2, RINGS: 4, DROPS: 4, MESSAGE_LEN: 4, REALTIME: 8,
        MONOTONIC: 8 }
    end::ring { NONCE: 8, RING: 4, SOURCE: 2, RESERVED: 2, FIRST_SEQ: 8, NEXT_SEQ: 8, CAPTURED: 8,
        LOST: 24 }
    end::drops { NO_RING: 8, NESTED: 8, NOT_MAPPED: 8, SOURCE: 2, RESERVED: 6 }
    end::trailer { END: 8, INDEX: 8, RESERVED: 8, MAGIC: 8 }
}
const _: () = assert!(frames::NONCE == chunk::LEN && gap::NONCE == chunk::LEN);
const _: () = assert!(drops::NO_RING == chunk::LEN && cells::NONCE == chunk::LEN);
const _: () = assert!(masks::NONCE == chunk::LEN && masks::LEN.is_multiple_of(ALIGN));
const _: () = assert!(threads::COUNT == chunk::LEN && threads::LEN.is_multiple_of(ALIGN));
const _: () = assert!(modules::MONOTONIC == chunk::LEN && modules::LEN.is_multiple_of(ALIGN));
const _: () = assert!(trigger::MONOTONIC == chunk::LEN && trigger::LEN.is_multiple_of(ALIGN));
const _: () = assert!(file::LEN.is_multiple_of(ALIGN) && frames::LEN.is_multiple_of(ALIGN));
const _: () = assert!(
    gap::LEN.is_multiple_of(ALIGN) && drops::LEN.is_multiple_of(ALIGN) && chunk::LEN == ALIGN
);
