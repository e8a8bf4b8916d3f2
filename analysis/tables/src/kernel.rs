//! Turns the kernel's events of threads into states, system calls and faults.
//!
//! - `event` defines the events, and the words of the tables.
//! - `states` and `calls` follow one thread, event by event; they do not depend on tables.
//! - `records` decides when records of a thread may be missing.

mod calls;
mod event;
mod records;
mod states;

pub(crate) use calls::{Call, Calls};
pub(crate) use event::{KernelFrameKind, KernelWord, ThreadEvent};
pub(crate) use records::{FramePosition, KernelChunk, KernelLoss, Records, RecordsBuilder};
pub(crate) use states::{Recorded, StateStretch, ThreadTrack};
