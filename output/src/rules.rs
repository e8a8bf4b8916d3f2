//! The rules for an output: which files it may replace, and who may read it.

use rustix::process::geteuid;

use crate::identity::FileId;

/// The rules for an output.
#[derive(Debug, Clone, Default)]
pub struct Rules {
    /// Whether it may replace an existing file, if the user owns that file and no process writes
    /// it.
    pub force: bool,
    /// The users who may read it.
    pub readers: Readers,
    /// The input files, which must not be overwritten.
    pub inputs: Vec<FileId>,
    /// The user who called sudo. Files that root creates for that user belong to that user.
    pub invoker: Option<Invoker>,
}

/// A user for whom root acts.
#[derive(Debug, Clone, Copy)]
pub struct Invoker {
    /// The user id.
    pub uid: u32,
    /// The group id. None if it is unknown.
    pub gid: Option<u32>,
}

/// The users who may read an output.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum Readers {
    /// The owner alone: mode 0600.
    #[default]
    Owner,
    /// All users that the umask does not exclude.
    ByUmask,
}

impl Rules {
    /// Whether files of this user belong to the caller.
    pub(crate) fn is_ours(&self, uid: u32) -> bool {
        let us = geteuid();
        uid == us.as_raw()
            || (us.is_root() && self.invoker.is_some_and(|invoker| invoker.uid == uid))
    }
}
