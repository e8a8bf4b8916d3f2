//! The memory that the rings of a process may take, so that neither its control groups nor its locked
//! memory harm it.
//!
//! The kernel counts a page of a ring for the group of the thread that writes into it first, and ends a
//! process of a group that exceeds its limit. A process that locks its memory (mlockall(2)) waits until
//! all pages of a segment are mapped.

use std::path::PathBuf;
use std::sync::{Mutex, PoisonError};

use crate::error::AgentError;
use crate::escape::escaped;
use crate::plan::{RingLimits, UserLimits};
use crate::target::Target;

/// Default for all rings of a process, in bytes.
pub const RING_MEMORY: u64 = 256 << 20;
/// Rings take at most this fraction (1/`GROUP_PART`) of what the control groups leave, unless the user
/// states how much.
const GROUP_PART: u64 = 4;
/// Default for the rings of a process that locks its memory: it waits half a millisecond for them.
const LOCKED: u64 = 2 << 20;
/// Rings of such a process, unless it has more threads.
const LOCKED_RINGS: u32 = 8;
/// Rings of any other process, unless it has more threads.
const RINGS: u32 = 64;
/// A process that has locked this fraction (1/`LOCKED_PART`) of its resident memory locks what it maps.
const LOCKED_PART: u64 = 4;

/// What bounds the memory of rings.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum RingBound {
    /// The user, or the default.
    Stated,
    /// A control group.
    Group {
        /// Its folder.
        folder: PathBuf,
        /// The bytes that its limit leaves.
        left: u64,
    },
    /// The process locks its memory.
    Locked,
}

/// The memory that further rings of a process may take.
pub(crate) struct RingAllowance {
    pub(crate) limits: RingLimits,
    pub(crate) bound: RingBound,
    /// The folders of the control groups that count.
    groups: Vec<PathBuf>,
    pid: i32,
}

/// Memory of rings that the process may not have touched yet. No other rings get it while this lives.
#[derive(Debug)]
pub(crate) struct RingPromise(u64);

/// A promise to a process.
struct Promised {
    id: u64,
    pid: i32,
    groups: Vec<PathBuf>,
    bytes: u64,
}

/// All promises of this program.
static PROMISES: Mutex<(u64, Vec<Promised>)> = Mutex::new((0, Vec::new()));

/// The sum of the promises that `counts` selects.
fn promised(counts: impl Fn(&Promised) -> bool) -> u64 {
    let promises = PROMISES.lock().unwrap_or_else(PoisonError::into_inner);
    promises.1.iter().filter(|promise| counts(promise)).map(|promise| promise.bytes).sum()
}

impl Drop for RingPromise {
    fn drop(&mut self) {
        let mut promises = PROMISES.lock().unwrap_or_else(PoisonError::into_inner);
        promises.1.retain(|promise| promise.id != self.0);
    }
}

impl RingAllowance {
    /// The allowance of `target` now.
    pub(crate) fn of(target: &Target, limits: UserLimits) -> Self {
        let pid = target.pid();
        let stated = limits.memory.unwrap_or(RING_MEMORY);
        let mut memory = stated.saturating_sub(promised(|promise| promise.pid == pid));
        let mut bound = RingBound::Stated;
        let lockable = target.lockable();
        if let Some(lockable) = lockable {
            let locked = if limits.memory.is_some() { lockable } else { lockable.min(LOCKED) };
            (memory, bound) = (memory.min(locked), RingBound::Locked);
        }
        let mut groups = Vec::new();
        for group in target.memory_groups() {
            let taken = promised(|promise| promise.groups.contains(&group.folder));
            let left = group.left.saturating_sub(taken);
            let allowed = if limits.memory.is_some() { left } else { left / GROUP_PART };
            groups.push(group.folder.clone());
            if allowed < memory {
                (memory, bound) = (allowed, RingBound::Group { folder: group.folder, left });
            }
        }
        let UserLimits { slots, grow, .. } = limits;
        let is_populated = lockable.is_some();
        let rings = if is_populated { LOCKED_RINGS } else { RINGS };
        let varies = matches!(bound, RingBound::Group { .. });
        let limits = RingLimits { slots, grow, memory, rings, is_populated, varies };
        Self { limits, bound, groups, pid }
    }

    /// The limits of the next of `buffers` buffers.
    pub(crate) fn share(&self, buffers: usize) -> RingLimits {
        RingLimits { memory: self.limits.memory / buffers.max(1) as u64, ..self.limits }
    }

    /// Says which limit has no room for rings, if `error` says that there is none.
    pub(crate) fn refusal(&self, error: AgentError) -> AgentError {
        let pid = self.pid;
        match (error, &self.bound) {
            (
                AgentError::MemoryTooSmall { buffer, needed, .. },
                RingBound::Group { folder, left },
            ) => {
                let group = escaped(&folder.to_string_lossy());
                AgentError::ControlGroupFull { pid, buffer, group, left: *left, needed }
            }
            (AgentError::MemoryTooSmall { buffer, needed, limit, .. }, RingBound::Locked) => {
                AgentError::LockedMemory { pid, buffer, limit, needed }
            }
            (error, _) => error,
        }
    }

    /// Notes that rings of the process take `bytes`.
    pub(crate) fn promise(&mut self, bytes: u64) -> RingPromise {
        self.limits.memory = self.limits.memory.saturating_sub(bytes);
        let mut promises = PROMISES.lock().unwrap_or_else(PoisonError::into_inner);
        promises.0 += 1;
        let id = promises.0;
        promises.1.push(Promised { id, pid: self.pid, groups: self.groups.clone(), bytes });
        RingPromise(id)
    }
}

impl Target {
    /// The bytes that the process may lock in addition, if it locks what it maps. The kernel does not
    /// state that, so what it has locked tells.
    fn lockable(&self) -> Option<u64> {
        let status = self.status()?;
        let kib = |value: Option<u64>| value.unwrap_or(0) << 10;
        let (locked, resident) = (kib(status.vmlck), kib(status.vmrss));
        if locked == 0 || locked < resident / LOCKED_PART {
            return None;
        }
        const CAP_IPC_LOCK: u64 = 1 << 14;
        let limit = self.locked_limit().filter(|_| status.capeff & CAP_IPC_LOCK == 0);
        Some(limit.map_or(u64::MAX, |bytes| bytes.saturating_sub(locked)))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_promise_counts_until_it_is_dropped() {
        let limits = RingLimits {
            slots: None,
            grow: false,
            memory: 100,
            rings: 1,
            is_populated: false,
            varies: false,
        };
        let group = PathBuf::from("/a/group/of/this/test");
        let groups = vec![group.clone()];
        let mut allowance = RingAllowance { limits, bound: RingBound::Stated, groups, pid: -7 };
        let of_process = || promised(|promise| promise.pid == -7);
        let (first, second) = (allowance.promise(30), allowance.promise(12));
        assert_eq!((of_process(), promised(|promise| promise.groups.contains(&group))), (42, 42));
        drop(first);
        assert_eq!(of_process(), 12);
        drop(second);
        assert_eq!(of_process(), 0);
        assert_eq!([1, 2].map(|buffers| allowance.share(buffers).memory), [58, 29], "what is left");
    }
}
