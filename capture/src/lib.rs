//! The capture file: format, writer and reader. No command line, no terminal.
//!
//! A capture is a file header and then self-delimiting chunks, written front to back without
//! seeking, so that a pipe carries it too. `format` (the source file) lists every byte.
//!
//! * [`CaptureWriter`] writes one, to any [`std::io::Write`].
//! * [`Capture`] reads one, from a file or a stream. The capture may be finished, truncated,
//!   damaged or still being written. Memory does not grow with its size, and everything that it
//!   returns has been checked.
//! * [`columns`] reads the values of frames.
//! * [`Account`] sums captured, lost and dropped frames, from the chunks only.
//!
//! # How losses are stated
//! Every frame that got a sequence number is stated exactly once: in a frames chunk, in the
//! `lost_before` of a frames chunk, or in a gap chunk. So the ranges of one ring do not overlap,
//! and a hole between them means that the file is damaged.

mod absent;
mod account;
mod bound;
mod bytes;
mod cause;
mod cells;
mod chunk;
mod chunk_file;
mod clock;
mod codec;
pub mod columns;
mod end;
mod error;
mod format;
mod header;
mod index;
mod input;
mod masks;
mod modules;
mod ranges;
mod reader;
mod scan;
mod series;
mod source;
mod sources;
pub mod stamps;
mod thread_names;
mod trigger;
mod writer;

/// The frame language: schemas and columns, for readers of captures.
pub use ppt_frame_dsl as frame_dsl;

pub use absent::{Absence, CapturePlace, FilesBetween, SequenceCoverage};
pub use account::{Account, Mismatch, RingAccount, RingKey};
pub use bound::{Bound, NoBound};
pub use cause::{Cause, Dropped, Lost};
pub use cells::{CellRow, CellRows, CellTotals, Cells, CellsHead, HistogramCells};
pub use chunk::{ChunkKind, Drops, FramesHead, Gap, drained_at};
pub use chunk_file::{ChunkFile, Payload};
pub use codec::{Codec, Packed, Packer, checksum};
pub use end::{End, EndReason, RingEnd};
pub use error::{CaptureError, Damage, DamageKind};
pub use format::file::MAGIC_VALUE as MAGIC;
pub use format::{ALIGNED_PAYLOAD_FROM, BLOCK, MAX_FRAMES, MAX_PAYLOAD, MAX_STRIDE, VERSION};
pub use header::FileHeader;
pub use index::IndexEntry;
pub use masks::{Chosen, Flip, FlipRing};
pub use modules::{Module, ModuleHistory, ModuleSet, ModuleTable, Modules, ProgramKey};
pub use reader::{Capture, CaptureItem, Chunk, ChunkFrames, Finish, OwnedFrames, Passed};
pub use series::SeriesPart;
pub use source::{Process, Segment, Source};
pub use sources::{MAX_SOURCES, SourceInfo};
pub use thread_names::{ProcessKey, ThreadName, ThreadNames, ThreadTable};
pub use trigger::{Stretch, Trigger, TriggerCause};
pub use writer::CaptureWriter;

pub use ppt_clock::{
    Aligned, Alignment, ClockId, ClockReading, ClockTable, REALTIME_STEP_NS, Stamps, TickStep,
    TimeNamespace,
};
/// Readings of clocks, and the conversion of stamps.
pub use ppt_clock::{sync, times};

/// One bit, for schemas and for clocks.
const _: () = assert!(ppt_clock::STAMP_IS_MONOTONIC == frame_dsl::schema::STAMP_IS_MONOTONIC);
