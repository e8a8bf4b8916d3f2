//! What the kernel does with the threads of a process, as frames of a built-in buffer.
//!
//! ```text
//! perf rings, one per CPU ─ reader thread ─→ a segment of ppt's own ─→ listener
//! ```
//! [`KernelRequest::watch`] opens perf events, which needs rights. [`ProcessEvents::start`] starts
//! the thread that reads them, which needs none. Its frames lie in a segment that nobody else has mapped,
//! so what drains the buffers of programs drains this one, and accounts for it, in the same way. What
//! the kernel lost is [marked](ppt_segment::RingWriter::lose) there.
//!
//! - `schema` holds the frame file, and places values in frames.
//! - `perf` is the system call and its rings, `records` reads what is in them.
//! - `tracepoints` finds out what the raw bytes of a tracepoint mean; `filter` says which the kernel
//!   keeps, `wakes` finds where a wake-up ends.
//! - `threads` knows the threads of a process, and which event speaks for which of them.
//! - `memory` bounds what the rings of all processes take.
//! - `stack_events` opens the events that take stacks, `stack_frames` holds what becomes of
//!   them, `stack_reader` turns one into the other. `unwind` finds callers where programs have no frame
//!   pointers, from what `stack_registers` reads.
//! - `probes` says what is probed in a process, `probe_events` opens the events of that, `probe_frames`
//!   holds what becomes of them, `probe_reader` turns one into the other; `probe_calls` knows which
//!   return belongs to which call.
//! - `watch` opens, `reader` is the thread.
//! - `rounds` is another buffer of ppt's own: the rounds of `ppt whatif --live`.

#![deny(unsafe_code)]

mod error;
mod event_writer;
mod filter;
mod memory;
mod perf;
mod probe_calls;
mod probe_events;
mod probe_frames;
mod probe_reader;
mod probes;
mod reader;
mod records;
mod report;
mod rounds;
mod schema;
mod sources;
mod stack_events;
mod stack_frames;
mod stack_reader;
mod stack_registers;
mod successors;
mod threads;
mod tracepoints;
mod unwind;
mod wakes;
mod watch;

pub use error::{KernelError, KernelFeature};
pub use probe_events::probes_missing;
pub use probe_frames::PROBES_BUFFER;
pub use probe_reader::ProbeCounts;
pub use probes::{Probe, ProbeArgument, ProbeSite, SiteValue, ValueOrigin};
pub use reader::{Counts, ReaderThread};
pub use rounds::{ROUNDS_BUFFER, Round, RoundLog};
pub use schema::{BUFFER, Builtin};
pub use stack_events::Stacks;
pub use stack_frames::{STACKS_BUFFER, StackCounts};
pub use unwind::{MappedCode, StackUnwinder, UnwindMapping, UnwindTables};
pub use watch::{KernelRequest, ProcessEvents, Wanted};

/// Whether a source of this kind has frames of ppt's own.
pub fn is_builtin(kind: &str) -> bool {
    [BUFFER, STACKS_BUFFER, PROBES_BUFFER, ROUNDS_BUFFER].contains(&kind)
}
