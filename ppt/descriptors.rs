//! How many files ppt may have open: a process that is captured takes some.

use std::fs::File;

use ppt_agent::AgentError;
use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};

/// What a process takes beside those that it was found by.
const OF_A_PROCESS: usize = 4;
/// What ppt takes whatever it captures, and what a look at a process takes for a moment.
const OF_PPT: usize = 40;

/// How many there may be.
pub(crate) fn limit() -> u64 {
    getrlimit(Resource::Nofile).current.unwrap_or(u64::MAX)
}

/// Allows itself as many as it may. Nothing that ppt starts has this from it.
pub(crate) fn raise_limit() {
    let Rlimit { maximum, .. } = getrlimit(Resource::Nofile);
    // Where it is refused, the limit is what it was.
    let _ = setrlimit(Resource::Nofile, Rlimit { current: maximum, maximum });
}

/// What comes of a process that there is no room for.
pub(crate) fn no_room(pid: i32) -> AgentError {
    AgentError::TooManyFiles { pid, cause: rustix::io::Errno::MFILE.into() }
}

/// Whether there is room for one more process, and for ppt.
pub(crate) fn has_room() -> bool {
    Room::default().for_one_more()
}

/// Descriptors that are held for later.
#[derive(Default)]
pub(crate) struct Room(Vec<File>);

impl Room {
    /// Whether there is room for one more process, and for ppt; holds what that will take.
    pub(crate) fn for_one_more(&mut self) -> bool {
        let Ok(one) = File::open("/dev/null") else { return false };
        let more = (0..OF_A_PROCESS + OF_PPT).map(|_| one.try_clone());
        let Ok(mut more) = more.collect::<std::io::Result<Vec<File>>>() else { return false };
        more.truncate(OF_A_PROCESS);
        self.0.extend(more);
        true
    }
}
