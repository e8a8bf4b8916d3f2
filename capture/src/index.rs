//! The index: the offsets of all chunks, for a reader that can seek.

use crate::bytes::{put_u16, put_u32, put_u64, u16_at, u32_at, u64_at};
use crate::chunk::{ChunkKind, FramesHead, Gap};
use crate::error::DamageKind;
use crate::format::NO_SOURCE;
use crate::format::index::{self, entry};

/// The entry of one chunk. Fields that its kind does not have are 0.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct IndexEntry {
    /// Offset of the chunk from the first byte of the capture.
    pub offset: u64,
    /// The kind of the chunk.
    pub kind: ChunkKind,
    /// The source of the chunk. None if it has none.
    pub source: Option<u16>,
    /// Nonce of the segment.
    pub nonce: u64,
    /// Ring in the segment.
    pub ring: u32,
    /// First sequence number.
    pub first_seq: u64,
    /// Number of frames in the chunk, or of missing frames.
    pub count: u64,
    /// As in [`FramesHead`].
    pub t_min: u64,
    /// As in [`FramesHead`].
    pub t_max: u64,
    /// As in [`FramesHead`].
    pub frame_mask: u64,
}

impl IndexEntry {
    pub(crate) fn plain(offset: u64, kind: ChunkKind, source: Option<u16>) -> Self {
        IndexEntry {
            offset,
            kind,
            source,
            nonce: 0,
            ring: 0,
            first_seq: 0,
            count: 0,
            t_min: 0,
            t_max: 0,
            frame_mask: 0,
        }
    }

    pub(crate) fn frames(offset: u64, head: &FramesHead) -> Self {
        IndexEntry {
            nonce: head.nonce,
            ring: head.ring,
            first_seq: head.first_seq,
            count: u64::from(head.count),
            t_min: head.t_min,
            t_max: head.t_max,
            frame_mask: head.frame_mask,
            ..Self::plain(offset, ChunkKind::Frames, Some(head.source))
        }
    }

    pub(crate) fn gap(offset: u64, gap: &Gap) -> Self {
        IndexEntry {
            nonce: gap.nonce,
            ring: gap.ring,
            first_seq: gap.first_seq,
            count: gap.count,
            ..Self::plain(offset, ChunkKind::Gap, Some(gap.source))
        }
    }
}

/// Payload of an index chunk.
pub(crate) fn encode(previous: u64, entries: &[IndexEntry]) -> Vec<u8> {
    let mut bytes = vec![0; index::HEAD + entries.len() * entry::LEN];
    put_u64(&mut bytes, index::PREVIOUS, previous);
    put_u64(&mut bytes, index::COUNT, entries.len() as u64);
    for (bytes, one) in bytes[index::HEAD..].chunks_exact_mut(entry::LEN).zip(entries) {
        put_u64(bytes, entry::OFFSET, one.offset);
        put_u16(bytes, entry::KIND, one.kind.code());
        put_u16(bytes, entry::SOURCE, one.source.unwrap_or(NO_SOURCE));
        put_u32(bytes, entry::RING, one.ring);
        put_u64(bytes, entry::NONCE, one.nonce);
        put_u64(bytes, entry::FIRST_SEQ, one.first_seq);
        put_u64(bytes, entry::COUNT, one.count);
        put_u64(bytes, entry::T_MIN, one.t_min);
        put_u64(bytes, entry::T_MAX, one.t_max);
        put_u64(bytes, entry::FRAME_MASK, one.frame_mask);
    }
    bytes
}

/// The entries of an index chunk and the offset of the previous index.
pub(crate) fn decode(payload: &[u8]) -> Result<(Option<u64>, Vec<IndexEntry>), DamageKind> {
    let Some((head, rest)) = payload.split_at_checked(index::HEAD) else {
        return Err(DamageKind::Length);
    };
    let count = u64_at(head, index::COUNT);
    if !rest.len().is_multiple_of(entry::LEN) || (rest.len() / entry::LEN) as u64 != count {
        return Err(DamageKind::Length);
    }
    let entries = rest.chunks_exact(entry::LEN).map(|bytes| {
        let source = u16_at(bytes, entry::SOURCE);
        IndexEntry {
            offset: u64_at(bytes, entry::OFFSET),
            kind: ChunkKind::from_code(u16_at(bytes, entry::KIND)),
            source: (source != NO_SOURCE).then_some(source),
            nonce: u64_at(bytes, entry::NONCE),
            ring: u32_at(bytes, entry::RING),
            first_seq: u64_at(bytes, entry::FIRST_SEQ),
            count: u64_at(bytes, entry::COUNT),
            t_min: u64_at(bytes, entry::T_MIN),
            t_max: u64_at(bytes, entry::T_MAX),
            frame_mask: u64_at(bytes, entry::FRAME_MASK),
        }
    });
    let previous = u64_at(head, index::PREVIOUS);
    Ok(((previous != 0).then_some(previous), entries.collect()))
}
