//! What an output may be, and whose.

use rustix::process::geteuid;

use crate::identity::FileId;

/// What an output may be, and whose.
#[derive(Debug, Clone, Default)]
pub struct Rules {
    /// It may take the place of a file that is there: one's own, which nobody writes.
    pub force: bool,
    /// Who may read it.
    pub readers: Readers,
    /// What is read meanwhile, and must not be written.
    pub inputs: Vec<FileId>,
    /// Who called sudo: what root makes in that user's name belongs to that user.
    pub invoker: Option<Invoker>,
}

/// A user for whom root works.
#[derive(Debug, Clone, Copy)]
#[allow(missing_docs, reason = "each says what it is")]
pub struct Invoker {
    pub uid: u32,
    pub gid: Option<u32>,
}

/// Who may read an output.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum Readers {
    /// Its owner: mode 0600.
    #[default]
    Owner,
    /// Whom the umask does not exclude.
    ByUmask,
}

impl Rules {
    /// Whether what belongs to this user is the caller's.
    pub(crate) fn is_ours(&self, uid: u32) -> bool {
        let us = geteuid();
        uid == us.as_raw() || (us.is_root() && self.invoker.is_some_and(|it| it.uid == uid))
    }
}
