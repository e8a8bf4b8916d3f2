//! Finds the ppt buffers of a live process and switches them on and off, without stopping it.
//!
//! ```text
//! Target::open ─→ buffers ─→ Session::attach ─→ advance … ─→ gate_off ─→ (last drain) ─→ close
//!   /proc, pidfd    ELF, scan    segment, hold   control_page   gate := 0                give back
//! ```
//!
//! The agent trusts nothing that it reads from the target: it copies data first and checks the
//! copy. Before it writes, it checks the magic, the self-address, the schema hash and the mapping
//! of the control page. Before each write, it reads the descriptor again, which must be the same
//! byte for byte. After attaching, its claim must be there, too. The agent knows nothing of
//! captures; `ppt attach` connects it to the listener.

mod allowance;
mod budget;
mod buffer;
mod claim;
mod clock;
mod code_files;
mod confined;
mod control;
mod danger;
mod death;
mod denied;
mod descriptor;
pub mod doctor;
mod elf;
mod error;
mod escape;
mod fork;
mod hold;
mod kin;
mod mapping;
mod memory;
mod modules;
mod plan;
mod preload;
mod random;
mod scan;
mod search;
mod seccomp;
mod session;
mod starting;
mod sweep;
mod system;
mod target;
mod thread_names;
mod threads;
mod timed_cache;

pub use allowance::{RING_MEMORY, RingBound};
pub use budget::Spent;
pub use buffer::{Buffer, FoundBy};
pub use claim::Holder;
pub use clock::{ClockChoice, StampClock};
pub use code_files::{Code, CodeMapping, MappedFile};
pub use confined::Confined;
pub use denied::{Denied, OwnRights, Rule};
pub use error::{AgentError, MemoryRefusal};
pub use escape::escaped;
pub use fork::{Newcomers, Origin, may_be_of, parent, was_started_with};
pub use kin::{descendants, named};
pub use mapping::FileId;
pub use memory::Transport;
pub use modules::{FoundModules, MAX_MODULES_PER_LOOK, MappedModule, ModuleWatch};
pub use plan::{GeometryPlan, UserLimits};
pub use ppt_frame_dsl::Schema;
pub use ppt_frame_dsl::schema::Attribute;
pub use ppt_now::{CpuCounter, Distrust};
pub use ppt_segment::follow;
pub use ppt_segment::handle::SegmentKind;
pub use ppt_segment::{Geometry, Masks, RefusedFrames, Segment};
pub use preload::{PreloadBarrier, Preloaded, preload_barrier, preloaded};
pub use random::random;
pub use search::{FoundBuffers, Remarks, Searched, Searcher, Unsearched};
pub use session::{
    Allow, AttachOptions, AttachedBuffer, BufferEnd, Choose, Detached, Dropped, Flip, FlipRing,
    FoundCells, FrameCounter, Hold, IntervalStamps, Leftover, MissedEdges, News, NotSlowable,
    NotWatchable, RingOwners, SegmentChoice, Session, SlowableBuffer, SpanWatch, Status, Stuck,
    Unattended, WatchedEdge, detach, reserves_all, status,
};
pub use sweep::sweep;
pub use system::System;
pub use target::{MapLimits, Target, processes};
pub use thread_names::{NAMES_A_LOOK, NameChanges, ThreadName, ThreadNames};
pub use threads::Threads;
pub use timed_cache::TimedCache;
