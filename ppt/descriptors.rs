//! The limit on open files. Each captured process takes some.

use std::fs::File;

use ppt_agent::AgentError;
use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};

/// Descriptors that a captured process takes, in addition to those of the search.
const OF_A_PROCESS: usize = 4;
/// Descriptors of ppt itself, including those that it opens while it searches a process.
const OF_PPT: usize = 40;

/// The current limit.
pub(crate) fn limit() -> u64 {
    getrlimit(Resource::Nofile).current.unwrap_or(u64::MAX)
}

/// Raises the limit as far as the system allows. Programs that ppt starts do not inherit this.
pub(crate) fn raise_limit() {
    let Rlimit { maximum, .. } = getrlimit(Resource::Nofile);
    // If the system refuses, the old limit stays.
    let _ = setrlimit(Resource::Nofile, Rlimit { current: maximum, maximum });
}

/// The error for a process that would exceed the limit.
pub(crate) fn no_room(pid: i32) -> AgentError {
    AgentError::TooManyFiles { pid, cause: rustix::io::Errno::MFILE.into() }
}

/// Whether ppt can open the descriptors of one more process, and its own.
pub(crate) fn has_room() -> bool {
    Room::default().for_one_more()
}

/// Descriptors that are reserved for later.
#[derive(Default)]
pub(crate) struct Room(Vec<File>);

impl Room {
    /// Whether ppt can open the descriptors of one more process, and its own; reserves those of the
    /// process.
    pub(crate) fn for_one_more(&mut self) -> bool {
        let Ok(first) = File::open("/dev/null") else { return false };
        let more = (0..OF_A_PROCESS + OF_PPT).map(|_| first.try_clone());
        let Ok(mut more) = more.collect::<std::io::Result<Vec<File>>>() else { return false };
        more.truncate(OF_A_PROCESS);
        self.0.extend(more);
        true
    }
}
