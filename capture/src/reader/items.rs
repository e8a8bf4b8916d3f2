//! The items that a reader returns.

use ppt_clock::ClockReading;

use crate::bytes::u64_at;
use crate::cells::Cells;
use crate::chunk::{ChunkHeader, Drops, FramesHead, Gap};
use crate::codec::Codec;
use crate::end::End;
use crate::error::Damage;
use crate::index::IndexEntry;
use crate::masks::Flip;
use crate::modules::Modules;
use crate::series::SeriesPart;
use crate::sources::SourceInfo;
use crate::thread_names::ThreadNames;
use crate::trigger::Trigger;

/// The result of a read.
#[derive(Debug)]
pub enum CaptureItem<'a> {
    /// A good chunk.
    Chunk(Chunk<'a>),
    /// Bytes that are not a good chunk.
    Damage(Damage),
}

/// A chunk that has been checked.
#[derive(Debug)]
pub enum Chunk<'a> {
    /// A source, new or with more segments.
    Source(&'a SourceInfo),
    /// Frames that no earlier chunk contained.
    Frames(ChunkFrames<'a>),
    /// Frames of which only the head was read. Only
    /// [`Capture::read_heads`](crate::Capture::read_heads) returns this.
    Passed(Passed),
    /// Missing frames that no earlier chunk stated.
    Gap(Gap),
    /// Readings of clocks.
    Clock(Vec<ClockReading>),
    /// The frames that a known source dropped.
    Drops(Drops),
    /// A reading of counters and histograms.
    Cells(Cells<'a>),
    /// Why a window of the flight recorder was written.
    Trigger(Trigger),
    /// Changes of the masks of a segment.
    Masks(Flip),
    /// The names of threads of a known source's process.
    Threads(ThreadNames),
    /// The position of this file in a series. The first file has no such chunk.
    Series(SeriesPart),
    /// The code mappings of a known source's process.
    Modules(Modules),
    /// The offset of the previous index, and the entries since then. They are not compared with the
    /// chunks.
    Index(Option<u64>, Vec<IndexEntry>),
    /// The end.
    End(End),
    /// A kind of a later version.
    Other(u16),
}

/// The frames of one chunk.
#[derive(Debug, Clone, Copy)]
pub struct ChunkFrames<'a> {
    /// Offset of the chunk from the first byte of the capture.
    pub offset: u64,
    /// The facts that the chunk states about them.
    pub head: FramesHead,
    /// Their source.
    pub info: &'a SourceInfo,
    /// Whether `head.lost_before` is new; otherwise another chunk stated it.
    pub loss_is_new: bool,
    /// The codec, if they are compressed.
    pub codec: Option<Codec>,
    /// Bytes of the payload in the capture.
    pub stored_len: u64,
    pub(super) ordinal: u64,
    pub(super) payload_crc: u32,
    pub(super) header_len: u64,
    pub(super) payload: &'a [u8],
}

/// A chunk of frames of which only the head was read.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Passed {
    /// Offset of the chunk from the first byte of the capture.
    pub offset: u64,
    /// Bytes of the chunk in the file.
    pub len: u64,
    /// The number of the chunk in the capture.
    pub ordinal: u64,
    /// The checksum of its payload, as its header states it.
    pub payload_crc: u32,
    /// The facts that the chunk states about them.
    pub head: FramesHead,
    /// Whether `head.lost_before` is new; otherwise another chunk stated it.
    pub loss_is_new: bool,
}

impl<'a> ChunkFrames<'a> {
    /// The chunk, without its frames.
    pub fn passed(&self) -> Passed {
        Passed {
            offset: self.offset,
            len: self.header_len + self.stored_len,
            ordinal: self.ordinal,
            payload_crc: self.payload_crc,
            head: self.head,
            loss_is_new: self.loss_is_new,
        }
    }

    /// The sequence number and the bytes of each frame that carries its own number. A frame has
    /// `head.stride` bytes, which is at least the schema's stride.
    pub fn iter(&self) -> impl Iterator<Item = (u64, &'a [u8])> + use<'a> {
        numbered(&self.head, self.payload).filter(|(seq, frame)| u64_at(frame, 0) == *seq)
    }

    /// The bytes of all frames, one after the other.
    pub fn bytes(&self) -> &'a [u8] {
        self.payload
    }

    /// Makes `owned` a copy that does not need the capture.
    pub fn copy_to(&self, owned: &mut OwnedFrames) {
        (owned.offset, owned.head) = (self.offset, self.head);
        owned.payload.clear();
        owned.payload.extend_from_slice(self.payload);
    }

    /// The sequence numbers whose frames carry another number and are skipped.
    pub fn wrong(&self) -> impl Iterator<Item = u64> + use<'a> {
        numbered(&self.head, self.payload)
            .filter(|(seq, frame)| u64_at(frame, 0) != *seq)
            .map(|(seq, _)| seq)
    }
}

/// A copy of the frames of one chunk that does not borrow from the capture.
#[derive(Debug, Clone, Default)]
pub struct OwnedFrames {
    /// Offset of the chunk from the first byte of the capture.
    pub offset: u64,
    /// The facts that the chunk states about them.
    pub head: FramesHead,
    payload: Vec<u8>,
}

impl OwnedFrames {
    /// As [`ChunkFrames::iter`].
    pub fn iter(&self) -> impl Iterator<Item = (u64, &[u8])> {
        numbered(&self.head, &self.payload).filter(|(seq, frame)| u64_at(frame, 0) == *seq)
    }
}

/// How a capture ended. Known once [`Capture::read`](crate::Capture::read) has returned `None`.
#[derive(Debug, Clone, Copy)]
pub struct Finish<'a> {
    /// The end chunk.
    pub end: Option<&'a End>,
    /// The offset at which the capture stops without an end chunk, because it was truncated or is
    /// still being written.
    pub cut: Option<u64>,
    /// The length of the input when the reader reached its end. A file may have grown since.
    pub len: u64,
    /// CLOCK_MONOTONIC in ns: every frame that was published before is in the chunks that were read,
    /// or in an earlier file of the series, or stated as lost there or later; 0 = unknown.
    pub complete: u64,
}

/// A chunk that has been checked, before it is lent.
pub(super) enum ReadAhead {
    Source(u16),
    Frames { offset: u64, header: ChunkHeader, head: FramesHead, loss_is_new: bool },
    Cells(ChunkHeader),
    Owned(Chunk<'static>),
}

/// The frames of a payload with their expected numbers. `head` has been checked.
pub(crate) fn numbered<'a>(
    head: &FramesHead,
    payload: &'a [u8],
) -> impl Iterator<Item = (u64, &'a [u8])> + use<'a> {
    (head.first_seq..).zip(payload.chunks_exact(head.stride as usize))
}
