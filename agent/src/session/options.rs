//! How to attach.

use std::sync::Arc;

use super::wanted::Choose;
use crate::clock::ClockChoice;
use crate::plan::UserLimits;

/// The safety checks that an attach ignores.
#[derive(Debug, Clone, Copy, Default)]
pub struct Allow {
    /// Attach in addition to a debugger.
    pub traced: bool,
    /// Attach to a target that its seccomp filter may kill.
    pub seccomp: bool,
    /// Take over a buffer whose agent is alive, or in another pid namespace.
    pub foreign_claim: bool,
}

/// Options of attaching.
#[derive(Debug, Clone, Default)]
pub struct AttachOptions {
    /// The limits of the segments.
    pub limits: UserLimits,
    /// The safety checks to ignore.
    pub allow: Allow,
    /// The clock that stamps of `option time tsc` count.
    pub clock: ClockChoice,
    /// The process that makes the segments.
    pub segment: SegmentChoice,
    /// The socket to which forked children of the target report (see [`ppt_segment::follow`]).
    /// `None` if there is no receiver. It is not used if the target has a filter that may kill it.
    pub follow: Option<u64>,
    /// The selection for each buffer. `None` means everything.
    pub choose: Option<Arc<dyn Choose>>,
    /// Whether the target is held.
    pub hold: Hold,
}

/// Whether a target is held by ptrace(2) while it is written to.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum Hold {
    /// The target is held, which excludes other agents.
    #[default]
    Held,
    /// The target is not held. This is for a process that was just forked: other agents do not know
    /// it yet, and it may be starting a set-user-ID program, which would not get its privileges
    /// under a tracer.
    Free,
}

/// The process that makes the segments.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum SegmentChoice {
    /// The agent if the target can attach its segments, else the target.
    #[default]
    Auto,
    /// The agent: System V shared memory.
    SysV,
    /// The target: a sealed memfd that the agent fetches.
    Memfd,
}
