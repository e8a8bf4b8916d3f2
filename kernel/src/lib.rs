//! The kernel's actions on the threads of a process, as frames of a built-in buffer.
//!
//! ```text
//! perf rings, one per CPU ─ reader thread ─→ a segment of ppt's own ─→ listener
//! ```
//! [`KernelRequest::watch`] opens perf events, which needs rights. [`ProcessEvents::start`] starts
//! the thread that reads them, which needs none. Its frames are in a segment that only ppt has mapped, so the
//! listener drains and accounts for it like those of programs. Records that the kernel lost are
//! [marked](ppt_segment::RingWriter::lose) there.
//!
//! - `schema` has the frame file, and encodes frames; `event_writer` writes them.
//! - `perf` is the system call and its rings; `records` parses records, `decode` decodes them.
//! - `tracepoints` finds the fields of tracepoints; `filter` selects threads in the kernel, `wakes` finds records of
//!   the same wake-up.
//! - `threads` has the threads of a process, and the event that reports each of them.
//! - `memory` bounds the memory of the rings of all processes.
//! - `stack_events` opens the events that take stacks, `stack_frames` writes their frames, `stack_reader` converts.
//!   `unwind` finds callers in programs without frame pointers, from the registers of `stack_registers`.
//! - `probes` has the probes of a process, `probe_events` opens their events, `probe_frames` writes their frames,
//!   `probe_reader` converts; `probe_calls` pairs returns with calls.
//! - `watch` opens all events of a process, `reader` is the thread.
//! - `rounds` and `virtual_clock` are other buffers of ppt's own: the rounds of `ppt whatif --live`, and the pauses in
//!   them. `host_pause` pauses CPUs.

#![deny(unsafe_code)]

mod decode;
mod error;
mod event_writer;
mod filter;
mod host_pause;
mod latest_wakeup;
mod memory;
mod perf;
mod probe_calls;
mod probe_events;
mod probe_frames;
mod probe_reader;
mod probes;
mod reader;
mod records;
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
mod virtual_clock;
mod watch;

pub use error::{KernelError, KernelFeature};
pub use host_pause::{
    ClockPoint, EdgesLost, HostPause, HostPauseError, LOOK_INTERVAL, MAX_FACTOR, PausedRound,
    RoundFault, SpanEdge, SpanEdges, heavier_threads, keep_only_nice, restore_weight,
};
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
pub use virtual_clock::{VIRTUAL_CLOCK_BUFFER, VirtualClockLog};
pub use watch::{KernelRequest, ProcessEvents, Wanted};

/// Whether ppt itself writes the frames of a source of this kind.
pub fn is_builtin(kind: &str) -> bool {
    [BUFFER, STACKS_BUFFER, PROBES_BUFFER, ROUNDS_BUFFER, VIRTUAL_CLOCK_BUFFER].contains(&kind)
}
