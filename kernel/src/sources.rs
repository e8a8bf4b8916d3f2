//! Which event a record comes from.

use std::collections::HashMap;

/// What a record is about: the kind of its event, and the thread whose event reports it (of an
/// event of a CPU, 0).
pub(crate) type Sources = HashMap<u64, (EventSource, i32)>;

/// Kinds of events.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum EventSource {
    Thread,
    Enter,
    Exit,
    Minor,
    Major,
    /// Wake-ups of some threads, and of all.
    Waking,
    WakingOfAll,
    Switch,
    /// Stacks of threads that run, and of those that begin to wait.
    Running,
    Leaving,
    /// A place of a probe is hit.
    Hit {
        probe: u16,
        site: u16,
    },
    /// A function of a probe returns.
    Return {
        probe: u16,
    },
}
