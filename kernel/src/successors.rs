//! The names of threads that follow a target's thread on its CPU. Only names of the user's own threads are
//! shown.

use std::collections::HashMap;
use std::fs;
use std::os::unix::fs::MetadataExt;

use crate::schema::Comm;

/// The largest number of names in memory.
const MAX_NAMES: usize = 4096;
/// The time in ns after which an owner is looked up again: the number may belong to another thread by then.
const MAX_AGE_NS: u64 = 1_000_000_000;

/// The names of successors that the user may see.
#[derive(Debug)]
pub(crate) struct SuccessorNames {
    user: u32,
    /// By number of the thread.
    known: HashMap<i32, KnownName>,
}

#[derive(Debug, Clone, Copy)]
struct KnownName {
    name: Comm,
    /// The time until which the entry is valid, in ns of CLOCK_MONOTONIC.
    until: u64,
    /// The user may see the name.
    is_shown: bool,
}

impl SuccessorNames {
    /// The names that `user` may see.
    pub fn new(user: u32) -> Self {
        Self { user, known: HashMap::new() }
    }

    /// The name of thread `tid`, or an empty one if the user may not see it.
    pub fn name(&mut self, tid: i32, name: Comm, time: u64) -> Comm {
        let is_shown = match self.known.get(&tid) {
            Some(known) if known.name == name && time < known.until => known.is_shown,
            _ => {
                if self.known.len() >= MAX_NAMES {
                    self.known.clear();
                }
                let owner = fs::metadata(format!("/proc/{tid}")).map(|metadata| metadata.uid());
                let is_shown = owner.is_ok_and(|owner| owner == self.user);
                let until = time.saturating_add(MAX_AGE_NS);
                self.known.insert(tid, KnownName { name, until, is_shown });
                is_shown
            }
        };
        if is_shown { name } else { Comm::default() }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_the_users_own_are_named() {
        let us = std::process::id() as i32;
        let user = fs::metadata("/proc/self").unwrap().uid();
        let name = *b"somebody\0\0\0\0\0\0\0\0";
        assert_eq!(SuccessorNames::new(user).name(us, name, 0), name);
        assert_eq!(SuccessorNames::new(user + 1).name(us, name, 0), Comm::default());
        assert_eq!(SuccessorNames::new(user).name(i32::MAX, name, 0), Comm::default());
    }
}
