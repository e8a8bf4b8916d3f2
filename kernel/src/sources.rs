//! The events from which records come.

use std::collections::HashMap;

/// For the number of each event, its kind, and the thread to which it was attached (0 for an event of a CPU).
pub(crate) type Sources = HashMap<u64, (EventSource, i32)>;

/// The kind of an event.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum EventSource {
    Thread,
    Enter,
    Exit,
    Minor,
    Major,
    /// Wake-ups of threads that pass a filter.
    Waking,
    /// Wake-ups of all threads.
    WakingOfAll,
    Switch,
    /// Stacks of threads that run.
    Running,
    /// Stacks of threads that give up their CPU.
    Leaving,
    /// A site of a probe is hit.
    Hit {
        probe: u16,
        site: u16,
    },
    /// A function of a probe returns.
    Return {
        probe: u16,
    },
}
