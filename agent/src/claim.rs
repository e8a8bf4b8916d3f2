//! Who is attached: one agent at a time for each buffer, and a dead one can be recognised.

use std::fmt;

use ppt_segment::abi::Claim;

use crate::system::System;

/// An agent that holds a buffer.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Holder {
    /// Its pid, in its own pid namespace.
    pub pid: u64,
    /// Whether it runs; `None` if it is in another pid namespace, where we cannot look.
    pub alive: Option<bool>,
}

impl fmt::Display for Holder {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.alive {
            Some(_) => write!(f, "ppt with pid {}", self.pid),
            None => write!(f, "ppt with pid {} of another pid namespace", self.pid),
        }
    }
}

/// A claim of this process.
pub(crate) fn ours(system: &System, nonce: u64) -> Claim {
    let pid = u64::from(std::process::id());
    Claim {
        agent_pid: pid,
        start_time: system.start_time(pid).unwrap_or(0),
        pid_namespace: system.namespace("self", "pid").unwrap_or(0),
        nonce,
    }
}

/// Who holds a claim; `None` where nobody does.
pub(crate) fn holder(system: &System, claim: Claim) -> Option<Holder> {
    if claim.nonce == 0 {
        return None;
    }
    let here = system.namespace("self", "pid").unwrap_or(0);
    let alive = (claim.pid_namespace == here)
        .then(|| system.start_time(claim.agent_pid) == Some(claim.start_time));
    Some(Holder { pid: claim.agent_pid, alive })
}
