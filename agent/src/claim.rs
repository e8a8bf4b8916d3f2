//! Claims: a buffer has at most one agent, and the claim of a dead agent is recognisable.

use std::fmt;
use std::time::Duration;

use ppt_segment::abi::Claim;

use crate::system::System;

/// An agent that holds a buffer.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Holder {
    /// The pid, in the holder's own pid namespace.
    pub pid: u64,
    /// Whether it runs. `None` if it is in another pid namespace, which ppt cannot inspect.
    pub alive: Option<bool>,
    /// The age of the process, if it runs.
    pub age: Option<Duration>,
}

impl fmt::Display for Holder {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "ppt with pid {}", self.pid)?;
        if self.alive.is_none() {
            write!(f, " of another pid namespace")?;
        }
        match self.age {
            Some(age) => write!(f, ", started {} s ago", age.as_secs()),
            None => Ok(()),
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

/// The holder of a claim. `None` if no process holds it.
pub(crate) fn holder(system: &System, claim: Claim) -> Option<Holder> {
    if claim.nonce == 0 {
        return None;
    }
    let here = system.namespace("self", "pid").unwrap_or(0);
    let alive = (claim.pid_namespace == here)
        .then(|| system.start_time(claim.agent_pid) == Some(claim.start_time));
    let age = alive.unwrap_or(false).then(|| system.age(claim.start_time)).flatten();
    Some(Holder { pid: claim.agent_pid, alive, age })
}
