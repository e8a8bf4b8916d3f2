//! The faults of a capture or of a part of it.

use std::fmt;
use std::io;

use strum::VariantNames;
use thiserror::Error;

use crate::format::VERSION;

/// Why a capture cannot be read at all.
#[derive(Debug, Error, strum::IntoStaticStr, strum::VariantNames)]
#[strum(serialize_all = "kebab-case")]
pub enum CaptureError {
    /// The file could not be opened or read.
    #[error("{0}")]
    #[strum(serialize = "cannot-read")]
    Io(#[from] io::Error),
    /// The file has no bytes.
    #[error("the file is empty; the capture was cut off before its first byte, or it never began")]
    #[strum(serialize = "empty-capture")]
    Empty,
    /// The path is a directory.
    #[error("this is a directory, not a capture")]
    #[strum(serialize = "not-a-capture")]
    Directory,
    /// The file begins like a capture, but is truncated or damaged so early that nothing can be read.
    #[error("the capture is cut off or damaged in its first bytes, so ppt cannot read it")]
    #[strum(serialize = "damaged")]
    Header,
    /// The file does not begin with the header of a capture.
    #[error("this is not a capture; it does not begin with a capture's header")]
    NotACapture,
    /// A later version wrote the file.
    #[error(
        "the capture has format version {found}, but this program reads versions up to {VERSION}; \
         use the ppt that wrote it, or a newer one"
    )]
    #[strum(serialize = "newer-capture")]
    Newer {
        /// The version that the capture states.
        found: u32,
    },
}

impl CaptureError {
    /// The name of the message in `docs/troubleshooting.md`.
    pub fn code(&self) -> &'static str {
        self.into()
    }

    /// All codes.
    pub fn codes() -> impl Iterator<Item = &'static str> {
        Self::VARIANTS.iter().copied()
    }
}

/// A part of a capture that cannot be trusted. The reader skips it and continues.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Damage {
    /// The offset from the first byte of the capture.
    pub offset: u64,
    /// The kind of damage.
    pub kind: DamageKind,
}

impl fmt::Display for Damage {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "at byte {}: {}", self.offset, self.kind)
    }
}

/// A fault of a part of a capture.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
pub enum DamageKind {
    /// The file header does not match its checksum.
    #[error("the file header is damaged")]
    FileHeader,
    /// Bytes between two chunks.
    #[error("{bytes} bytes that are not a chunk")]
    NotAChunk {
        /// The number of bytes, up to the next chunk or the end.
        bytes: u64,
    },
    /// The payload does not match its checksum.
    #[error("a chunk whose content does not match its checksum")]
    Checksum,
    /// A length that contradicts another.
    #[error("a chunk whose lengths contradict each other")]
    Length,
    /// A payload with a codec that this version does not know.
    #[error("a chunk with codec {0}, which this version does not know; a newer ppt may read it")]
    Codec(u16),
    /// A chunk with impossible content.
    #[error("{0}")]
    Content(&'static str),
    /// A source whose schema is not valid.
    #[error("a source with a bad schema: {0}")]
    Schema(String),
    /// A source that was not introduced.
    #[error("a chunk of source {0}, which is not known")]
    UnknownSource(u16),
    /// The number of missing chunks.
    #[error("{0} chunks are missing")]
    Missing(u64),
    /// A chunk that was read before.
    #[error("a chunk that appears twice")]
    Repeated,
    /// A chunk that comes later than its number requires. Its content is used.
    #[error("a chunk in the wrong place")]
    OutOfPlace,
    /// Frames that were read before, or were stated as lost.
    #[error("frames {first_seq} to {last_seq} of ring {ring} are already accounted for")]
    Overlap {
        /// The ring.
        ring: u32,
        /// The first.
        first_seq: u64,
        /// The last.
        last_seq: u64,
    },
    /// Frames whose first word is not their sequence number.
    #[error("frame {expected} of ring {ring} carries the number {found} ({frames} such frames)")]
    Sequence {
        /// The ring.
        ring: u32,
        /// The expected number.
        expected: u64,
        /// The number found.
        found: u64,
        /// The number of frames in the chunk with this fault.
        frames: u32,
    },
    /// A frame of a kind that is not in the schema.
    #[error("frame {seq} of ring {ring} has the frame id {id}, which its schema does not know")]
    UnknownFrame {
        /// The ring.
        ring: u32,
        /// The sequence number of the frame.
        seq: u64,
        /// The id.
        id: u16,
    },
}
