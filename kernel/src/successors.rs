//! The names of threads that follow a target's thread on its CPU. Only a user's own are shown.

use std::collections::HashMap;
use std::fs;
use std::os::unix::fs::MetadataExt;

use crate::schema::Comm;

/// Whose names are remembered at a time.
const MAX_NAMES: usize = 4096;
/// How long an owner is believed, ns: a number may name another thread by then.
const AGE_NS: u64 = 1_000_000_000;

/// The names of successors, as far as the user may see them.
#[derive(Debug)]
pub(crate) struct SuccessorNames {
    user: u32,
    /// By number: the name it had, until when that is known, and whether it may be shown.
    known: HashMap<i32, (Comm, u64, bool)>,
}

impl SuccessorNames {
    /// Those of `user`.
    pub fn new(user: u32) -> Self {
        Self { user, known: HashMap::new() }
    }

    /// The name of thread `tid` as far as it may be shown.
    pub fn name(&mut self, tid: i32, name: Comm, time: u64) -> Comm {
        let shown = match self.known.get(&tid) {
            Some((known, until, shown)) if *known == name && time < *until => *shown,
            _ => {
                if self.known.len() >= MAX_NAMES {
                    self.known.clear();
                }
                let owner = fs::metadata(format!("/proc/{tid}")).map(|metadata| metadata.uid());
                let shown = owner.is_ok_and(|owner| owner == self.user);
                self.known.insert(tid, (name, time.saturating_add(AGE_NS), shown));
                shown
            }
        };
        if shown { name } else { Comm::default() }
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
