//! Why CPUs cannot be paused, or a round does not count.

use std::io;

use thiserror::Error;

use super::edges::EdgesLost;

/// The largest number of CPUs: each look reads the switches of all.
pub(super) const MAX_CPUS: usize = 16;

/// Why CPUs cannot be paused.
#[derive(Debug, Error)]
pub enum HostPauseError {
    /// The kernel refuses a right.
    #[error("CPUs cannot be paused without CAP_SYS_NICE and CAP_PERFMON: {0}")]
    Denied(io::Error),
    /// There are too many CPUs.
    #[error("CPUs can be paused on hosts with up to {MAX_CPUS} CPUs; this one has {0}")]
    TooManyCpus(usize),
    /// There is only one CPU.
    #[error("a host with one CPU has no other CPU to pause")]
    OneCpu,
    /// Two experiments at once would pause each other.
    #[error("another ppt pauses the CPUs of this host; wait until its experiment has ended")]
    AnotherPauses,
    /// Threads of other programs have no number here.
    #[error(
        "CPUs cannot be paused from within a container: ppt does not see the threads of other programs"
    )]
    PidNamespace,
}

/// Why a round does not count.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
pub enum RoundFault {
    /// Frames of the span are missing.
    #[error(transparent)]
    Edges(#[from] EdgesLost),
    /// The kernel lost context switches.
    #[error("the kernel lost context switches")]
    Switches,
    /// A thread ends the span in another thread.
    #[error("the span ends in other threads than it begins")]
    OtherThread,
    /// A thread has a priority of its own.
    #[error("thread {0} has a priority of its own")]
    Priority(i32),
    /// A weight could not be set.
    #[error("the weight of thread {0} cannot be set")]
    Weight(i32),
}
