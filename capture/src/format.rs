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

/// Header of a cells chunk, after the common part: a reading of the counters and histograms of one
/// segment. It states the cells that have changed since the previous reading.
///
/// Payload: rows, each a head of [`cells::row`] and then `count` entries of [`cells::entry`], in
/// the order of their cells. A value is the sum added since the session began, modulo 2^64; the
/// last one counts. Cells that no chunk states are 0.
///
/// A file that continues a capture begins with the values at which the previous file ended
/// ([`cells::BASE`]). The difference is what was added while the file was written.
pub(crate) mod cells {
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
}

/// Header of a masks chunk, after the common part: what was enabled and disabled in one segment.
/// Everything is enabled until a chunk states otherwise. Payload: `changes` entries of
/// [`masks::change`], in the order of their numbers, and then `rings` entries of [`masks::ring`],
/// one for each claimed ring. In any other ring, no frame came before the change.
///
/// A file that continues a capture begins with the disabled bits at that time ([`masks::BASE`]).
pub(crate) mod masks {
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
}

/// Header of a threads chunk, after the common part: the names of threads of a source's process.
/// Payload: `count` entries of [`threads::entry`]. A name holds until a later entry of the same
/// thread.
///
/// A file that continues a capture begins with the current names ([`threads::BASE`]).
pub(crate) mod threads {
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
}

/// Header of a modules chunk, after the common part: all executable mappings of a source's process,
/// which hold until the next such chunk of the process. Payload: `count` entries, each a head of
/// [`modules::entry`], then the path, then the build id, then zeros to a multiple of
/// [`modules::ENTRY_ALIGN`], in the order of their addresses, without overlaps.
///
/// A file that continues a capture begins with the current set ([`modules::BASE`]).
pub(crate) mod modules {
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
}

/// Header of a trigger chunk, after the common part: why the flight recorder wrote this window. A
/// window has one such chunk for each of its triggers, before its frames. Payload: two lengths,
/// then an expression and a note.
pub(crate) mod trigger {
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

/// Payload of an index chunk: a head, then one entry for each chunk since the previous index.
pub(crate) mod index {
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
}

/// Payload of the end chunk: a head, the rings, the drops, the message, zeros, and a trailer that
/// is the last part of the file. From there a reader that can seek finds end and index.
pub(crate) mod end {
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
