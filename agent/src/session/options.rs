//! How to attach.

use crate::clock::ClockChoice;
use crate::plan::Limits;

/// Safety checks that an attach proceeds despite.
#[derive(Debug, Clone, Copy, Default)]
pub struct Allow {
    /// Attach beside a debugger.
    pub traced: bool,
    /// Attach to a target whose seccomp filter may end it.
    pub seccomp: bool,
    /// Take over a buffer whose agent lives, or cannot be looked at.
    pub foreign_claim: bool,
}

/// How to attach.
#[derive(Debug, Clone, Default)]
pub struct Options {
    /// Bounds of the segments.
    pub limits: Limits,
    /// Lifted refusals.
    pub allow: Allow,
    /// What stamps of `option time tsc` are to count.
    pub clock: ClockChoice,
    /// Who makes the segments.
    pub segment: SegmentChoice,
    /// The socket on which children that the target forks are to say hello (see
    /// [`ppt_segment::follow`]); `None` where nobody listens. Under a filter that may end the target
    /// it is left out.
    pub follow: Option<u64>,
    /// Whether the target is held.
    pub hold: Hold,
}

/// Whether a target is held by ptrace(2) while it is written to.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum Hold {
    /// Other agents are kept out.
    #[default]
    Held,
    /// For a process that was just forked, of which other agents know nothing, and which may start
    /// another program at this very moment: held, it would not get the rights of a set-user-ID one.
    Free,
}

/// Who makes the segments.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum SegmentChoice {
    /// The agent where the target can attach what it makes, else the target.
    #[default]
    Auto,
    /// The agent: System V shared memory.
    SysV,
    /// The target: a sealed memfd that the agent fetches.
    Memfd,
}
