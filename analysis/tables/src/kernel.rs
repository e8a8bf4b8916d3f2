//! What the kernel did with threads: frames of its buffer become states, system calls and faults.
//!
//! - `event` decodes what a frame records, `words` names it.
//! - `states` and `calls` follow one thread, event by event; nothing there knows tables.
//! - `records` says when records are missing, and for whom that matters.

mod calls;
mod event;
mod records;
mod states;

pub(crate) use calls::{Call, Calls};
pub(crate) use event::{KernelFrameKind, KernelWord, ThreadEvent};
pub(crate) use records::{FrameChunk, KernelLoss, Records, RecordsBuilder};
pub(crate) use states::{Knows, Stretch, ThreadTrack};
