//! Chunk headers: the common part, and the parts of frames, gaps and drops.

use crate::bytes::{get, put, put_u16, put_u32, put_u64, u16_at, u32_at, u64_at};
use crate::cause::{Cause, Dropped, Lost};
use crate::codec::{Codec, Packed};
use crate::error::DamageKind;
use crate::format::{
    self, NO_SOURCE, cells, chunk, codec, drops, frames, gap, kind, masks, modules, threads,
    trigger,
};
use crate::header::crc_without;

/// The kind of content of a chunk.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ChunkKind {
    /// A buffer of a process.
    Source,
    /// Frames of one ring.
    Frames,
    /// Missing frames of one ring.
    Gap,
    /// Readings of clocks.
    Clock,
    /// Number of frames that the writers of a source refused.
    Drops,
    /// The offsets of the chunks.
    Index,
    /// How the capture ended.
    End,
    /// Counters and histograms of one segment.
    Cells,
    /// Why a window of the flight recorder was written.
    Trigger,
    /// Changes of the masks of a segment.
    Masks,
    /// Names of threads.
    Threads,
    /// The position of this file in a series.
    Series,
    /// The code mappings of a process.
    Modules,
    /// A kind of a later version.
    Other(u16),
}

impl ChunkKind {
    pub(crate) fn code(self) -> u16 {
        match self {
            ChunkKind::Source => kind::SOURCE,
            ChunkKind::Frames => kind::FRAMES,
            ChunkKind::Gap => kind::GAP,
            ChunkKind::Clock => kind::CLOCK,
            ChunkKind::Drops => kind::DROPS,
            ChunkKind::Index => kind::INDEX,
            ChunkKind::End => kind::END,
            ChunkKind::Cells => kind::CELLS,
            ChunkKind::Trigger => kind::TRIGGER,
            ChunkKind::Masks => kind::MASKS,
            ChunkKind::Threads => kind::THREADS,
            ChunkKind::Series => kind::SERIES,
            ChunkKind::Modules => kind::MODULES,
            ChunkKind::Other(code) => code,
        }
    }

    pub(crate) fn from_code(code: u16) -> ChunkKind {
        match code {
            kind::SOURCE => ChunkKind::Source,
            kind::FRAMES => ChunkKind::Frames,
            kind::GAP => ChunkKind::Gap,
            kind::CLOCK => ChunkKind::Clock,
            kind::DROPS => ChunkKind::Drops,
            kind::INDEX => ChunkKind::Index,
            kind::END => ChunkKind::End,
            kind::CELLS => ChunkKind::Cells,
            kind::TRIGGER => ChunkKind::Trigger,
            kind::MASKS => ChunkKind::Masks,
            kind::THREADS => ChunkKind::Threads,
            kind::SERIES => ChunkKind::Series,
            kind::MODULES => ChunkKind::Modules,
            code => ChunkKind::Other(code),
        }
    }

    /// Bytes of the header that this version writes.
    fn header_len(self) -> usize {
        match self {
            ChunkKind::Frames => frames::LEN,
            ChunkKind::Gap => gap::LEN,
            ChunkKind::Drops => drops::LEN,
            ChunkKind::Cells => cells::LEN,
            ChunkKind::Trigger => trigger::LEN,
            ChunkKind::Masks => masks::LEN,
            ChunkKind::Threads => threads::LEN,
            ChunkKind::Modules => modules::LEN,
            ChunkKind::Source
            | ChunkKind::Clock
            | ChunkKind::Index
            | ChunkKind::End
            | ChunkKind::Series
            | ChunkKind::Other(_) => chunk::LEN,
        }
    }
}

/// The head of a frames chunk.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct FramesHead {
    /// The source; a source chunk of this number comes first.
    pub source: u16,
    /// Nonce of the segment.
    pub nonce: u64,
    /// Ring in the segment.
    pub ring: u32,
    /// Kernel id of the thread that owned the ring; 0 = unknown.
    pub tid: u32,
    /// Sequence number of the first frame; the others follow without a hole.
    pub first_seq: u64,
    /// Number of frames, 1 to [`crate::MAX_FRAMES`].
    pub count: u32,
    /// Bytes from one frame to the next.
    pub stride: u32,
    /// Frames lost right before `first_seq` that no gap chunk states.
    pub lost_before: Lost,
    /// CLOCK_MONOTONIC before the first frame was drained, ns; 0 = unknown.
    pub drained_mono_ns: u64,
    /// CLOCK_MONOTONIC after the last frame was drained, ns; 0 = unknown.
    pub drained_by_mono_ns: u64,
    /// Smallest value of the `@at` field, in ns of its clock, or in ticks for `tsc`; 0 = unknown.
    pub t_min: u64,
    /// Largest value of the `@at` field, in the same unit; 0 = unknown.
    pub t_max: u64,
    /// Bit n: the chunk has a frame with id n; bit 63: 63 or higher; 0 = unknown.
    pub frame_mask: u64,
}

/// When a frame was drained: not before `first`, the start of its chunk's drain, and not before its
/// own time `own`. It is not after `by`, the end of that drain, whatever times the program states.
pub fn drained_at<T: Ord>(first: T, by: Option<T>, own: Option<T>) -> T {
    match (by, own) {
        (Some(by), Some(own)) => first.max(own.min(by)),
        _ => first,
    }
}

/// A run of missing sequence numbers.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Gap {
    /// The source; a source chunk of this number comes first.
    pub source: u16,
    /// Nonce of the segment.
    pub nonce: u64,
    /// Ring in the segment.
    pub ring: u32,
    /// The first missing number.
    pub first_seq: u64,
    /// The number of missing frames, at least 1.
    pub count: u64,
    /// The cause, for which [`Cause::is_numbered`] is true.
    pub cause: Cause,
}

/// Frames that the writers of one source have refused since the start of the capture.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Drops {
    /// The source; a source chunk of this number comes first.
    pub source: u16,
    /// Cumulative counts; the last drops chunk of a source counts.
    pub dropped: Dropped,
    /// CLOCK_MONOTONIC of the reading, ns.
    pub mono_ns: u64,
}

/// The part that all chunk headers share.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct ChunkHeader {
    pub capture: [u8; 8],
    pub header_len: usize,
    pub kind: ChunkKind,
    pub source: u16,
    pub codec: u16,
    pub stored_len: u64,
    pub raw_len: u64,
    pub ordinal: u64,
    pub payload_crc: u32,
}

impl ChunkHeader {
    /// The header of a chunk with this payload, stored uncompressed.
    pub fn new(
        kind: ChunkKind,
        capture: [u8; 8],
        source: Option<u16>,
        ordinal: u64,
        data: &Packed<'_>,
    ) -> Self {
        ChunkHeader {
            capture,
            header_len: kind.header_len(),
            kind,
            source: source.unwrap_or(NO_SOURCE),
            codec: data.codec,
            stored_len: data.stored.len() as u64,
            raw_len: data.raw_len as u64,
            ordinal,
            payload_crc: data.crc,
        }
    }

    /// The header as bytes. `fill` writes the fields of the chunk kind.
    pub fn encode(&self, fill: impl FnOnce(&mut [u8])) -> Vec<u8> {
        let mut bytes = vec![0; self.header_len];
        put(&mut bytes, chunk::MAGIC, chunk::MAGIC_VALUE);
        put(&mut bytes, chunk::CAPTURE, self.capture);
        put_u32(&mut bytes, chunk::HEADER_LEN, self.header_len as u32);
        put_u16(&mut bytes, chunk::KIND, self.kind.code());
        put_u16(&mut bytes, chunk::SOURCE, self.source);
        put_u16(&mut bytes, chunk::CODEC, self.codec);
        put_u64(&mut bytes, chunk::STORED_LEN, self.stored_len);
        put_u64(&mut bytes, chunk::RAW_LEN, self.raw_len);
        put_u64(&mut bytes, chunk::ORDINAL, self.ordinal);
        put_u32(&mut bytes, chunk::PAYLOAD_CRC, self.payload_crc);
        fill(&mut bytes);
        let crc = crc_without(&bytes, chunk::HEADER_CRC);
        put_u32(&mut bytes, chunk::HEADER_CRC, crc);
        bytes
    }

    /// Whether `bytes` begin like a chunk of `capture` (`None`: of any capture).
    pub fn begins(bytes: &[u8], capture: Option<[u8; 8]>) -> bool {
        bytes.starts_with(&chunk::MAGIC_VALUE)
            && capture.is_none_or(|id| bytes.get(chunk::CAPTURE..chunk::CAPTURE + 8) == Some(&id))
    }

    /// The header at the start of `bytes`, if it is complete and its checksum is right.
    pub fn decode(bytes: &[u8], capture: Option<[u8; 8]>) -> Option<ChunkHeader> {
        if bytes.len() < chunk::LEN || !Self::begins(bytes, capture) {
            return None;
        }
        let header_len = u32_at(bytes, chunk::HEADER_LEN) as usize;
        let fits = header_len.is_multiple_of(format::ALIGN)
            && (chunk::LEN..=format::MAX_HEADER).contains(&header_len);
        let crc = u32_at(bytes, chunk::HEADER_CRC);
        if !fits || crc_without(bytes.get(..header_len)?, chunk::HEADER_CRC) != crc {
            return None;
        }
        Some(ChunkHeader {
            capture: get(bytes, chunk::CAPTURE),
            header_len,
            kind: ChunkKind::from_code(u16_at(bytes, chunk::KIND)),
            source: u16_at(bytes, chunk::SOURCE),
            codec: u16_at(bytes, chunk::CODEC),
            stored_len: u64_at(bytes, chunk::STORED_LEN),
            raw_len: u64_at(bytes, chunk::RAW_LEN),
            ordinal: u64_at(bytes, chunk::ORDINAL),
            payload_crc: u32_at(bytes, chunk::PAYLOAD_CRC),
        })
    }

    /// Whether the payload is compressed.
    pub fn is_coded(&self) -> bool {
        self.codec != codec::NONE
    }

    /// The codec, if it is known.
    pub fn codec(&self) -> Option<Codec> {
        Codec::from_code(self.codec)
    }

    /// Whether this version can read a chunk with these lengths.
    pub fn check(&self) -> Result<(), DamageKind> {
        match self.kind {
            // The reader skips an unknown kind by its length.
            ChunkKind::Other(_) => Ok(()),
            kind if self.is_coded() && (kind != ChunkKind::Frames || self.codec().is_none()) => {
                Err(DamageKind::Codec(self.codec))
            }
            kind if self.header_len < kind.header_len() => Err(DamageKind::Length),
            _ if self.is_coded() && self.raw_len > format::MAX_CODED => Err(DamageKind::Length),
            _ if !self.is_coded() && self.raw_len != self.stored_len => Err(DamageKind::Length),
            _ if self.stored_len > format::MAX_PAYLOAD => Err(DamageKind::Length),
            _ => Ok(()),
        }
    }
}

impl FramesHead {
    /// The first sequence number after the frames.
    pub fn next_seq(&self) -> u64 {
        self.first_seq + u64::from(self.count)
    }

    /// Checks the head. The error is the fault. Every head that this crate returns has passed this
    /// check.
    pub(crate) fn check(&self, payload_len: u64) -> Result<(), &'static str> {
        if self.count == 0 || self.count > format::MAX_FRAMES {
            return Err("a frames chunk holds 1 to 65,536 frames");
        }
        if self.stride == 0 || self.stride > format::MAX_STRIDE || !self.stride.is_multiple_of(8) {
            return Err("a stride is a multiple of 8 up to 4,096");
        }
        if u64::from(self.count) * u64::from(self.stride) != payload_len {
            return Err("count × stride is not the length of the frames");
        }
        if self.first_seq == 0 || self.first_seq.checked_add(u64::from(self.count)).is_none() {
            return Err("sequence numbers start at 1 and end before 2^64");
        }
        if self.lost_before.total() >= self.first_seq {
            return Err("more frames lost than there are numbers before the first");
        }
        Ok(())
    }

    pub(crate) fn encode(&self, bytes: &mut [u8]) {
        put_u64(bytes, frames::NONCE, self.nonce);
        put_u64(bytes, frames::FIRST_SEQ, self.first_seq);
        put_u32(bytes, frames::COUNT, self.count);
        put_u32(bytes, frames::RING, self.ring);
        put_u32(bytes, frames::TID, self.tid);
        put_u32(bytes, frames::STRIDE, self.stride);
        put_lost(bytes, frames::LOST_BEFORE, &self.lost_before);
        put_u64(bytes, frames::DRAINED, self.drained_mono_ns);
        put_u64(bytes, frames::T_MIN, self.t_min);
        put_u64(bytes, frames::T_MAX, self.t_max);
        put_u64(bytes, frames::FRAME_MASK, self.frame_mask);
        put_u64(bytes, frames::DRAINED_BY, self.drained_by_mono_ns);
    }

    pub(crate) fn decode(source: u16, bytes: &[u8]) -> FramesHead {
        FramesHead {
            source,
            nonce: u64_at(bytes, frames::NONCE),
            ring: u32_at(bytes, frames::RING),
            tid: u32_at(bytes, frames::TID),
            first_seq: u64_at(bytes, frames::FIRST_SEQ),
            count: u32_at(bytes, frames::COUNT),
            stride: u32_at(bytes, frames::STRIDE),
            lost_before: lost_at(bytes, frames::LOST_BEFORE),
            drained_mono_ns: u64_at(bytes, frames::DRAINED),
            t_min: u64_at(bytes, frames::T_MIN),
            t_max: u64_at(bytes, frames::T_MAX),
            frame_mask: u64_at(bytes, frames::FRAME_MASK),
            drained_by_mono_ns: u64_at(bytes, frames::DRAINED_BY),
        }
    }
}

impl Gap {
    /// The first sequence number after the gap.
    pub fn next_seq(&self) -> u64 {
        self.first_seq + self.count
    }

    pub(crate) fn check(&self) -> Result<(), &'static str> {
        if self.count == 0 {
            return Err("a gap holds at least one number");
        }
        if self.first_seq == 0 || self.first_seq.checked_add(self.count).is_none() {
            return Err("sequence numbers start at 1 and end before 2^64");
        }
        if !self.cause.is_numbered() {
            return Err("dropped frames have no sequence number and make no gap");
        }
        Ok(())
    }

    pub(crate) fn encode(&self, bytes: &mut [u8]) {
        put_u64(bytes, gap::NONCE, self.nonce);
        put_u64(bytes, gap::FIRST_SEQ, self.first_seq);
        put_u64(bytes, gap::COUNT, self.count);
        put_u32(bytes, gap::RING, self.ring);
        let (cause, detail) = self.cause.file_code();
        put_u16(bytes, gap::CAUSE, cause);
        put_u16(bytes, gap::CAUSE + 2, detail);
    }

    pub(crate) fn decode(source: u16, bytes: &[u8]) -> Result<Gap, DamageKind> {
        let gap = Gap {
            source,
            nonce: u64_at(bytes, gap::NONCE),
            ring: u32_at(bytes, gap::RING),
            first_seq: u64_at(bytes, gap::FIRST_SEQ),
            count: u64_at(bytes, gap::COUNT),
            cause: Cause::from_code((u16_at(bytes, gap::CAUSE), u16_at(bytes, gap::CAUSE + 2)))
                .ok_or(DamageKind::Content("a gap of an unknown cause"))?,
        };
        gap.check().map_err(DamageKind::Content)?;
        Ok(gap)
    }
}

impl Drops {
    pub(crate) fn encode(&self, bytes: &mut [u8]) {
        put_u64(bytes, drops::NO_RING, self.dropped.no_ring);
        put_u64(bytes, drops::NESTED, self.dropped.nested);
        put_u64(bytes, drops::NOT_MAPPED, self.dropped.not_mapped);
        put_u64(bytes, drops::MONOTONIC, self.mono_ns);
    }

    pub(crate) fn decode(source: u16, bytes: &[u8]) -> Drops {
        Drops {
            source,
            dropped: Dropped {
                no_ring: u64_at(bytes, drops::NO_RING),
                nested: u64_at(bytes, drops::NESTED),
                not_mapped: u64_at(bytes, drops::NOT_MAPPED),
            },
            mono_ns: u64_at(bytes, drops::MONOTONIC),
        }
    }
}

pub(crate) fn put_lost(bytes: &mut [u8], at: usize, lost: &Lost) {
    put_u64(bytes, at, lost.overrun);
    put_u64(bytes, at + 8, lost.disk);
    put_u64(bytes, at + 16, lost.corrupt);
}

pub(crate) fn lost_at(bytes: &[u8], at: usize) -> Lost {
    Lost {
        overrun: u64_at(bytes, at),
        disk: u64_at(bytes, at + 8),
        corrupt: u64_at(bytes, at + 16),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_frame_is_drained_after_its_own_time_and_before_its_chunk_is_complete() {
        assert_eq!(drained_at(10, Some(20), Some(15)), 15);
        assert_eq!(drained_at(10, Some(20), Some(5)), 10);
        assert_eq!(drained_at(10, Some(20), Some(99)), 20);
        assert_eq!(drained_at(10, Some(20), None), 10);
        assert_eq!(drained_at(10, None, Some(15)), 10);
        // An inconsistent head.
        assert_eq!(drained_at(10, Some(5), Some(7)), 10);
    }
}
