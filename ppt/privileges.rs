//! What ppt may do once it is attached: read and write the target's memory, and no more; and while
//! it reads a capture: that.
//!
//! Whoever runs ppt as root for a target of another user must not be its deputy: from the last
//! write of an attach on, neither the target's bytes nor a path of its user's meet root's rights.

use std::io;
use std::panic;
use std::sync::mpsc::{Sender, channel};
use std::thread::{self, JoinHandle};

use ppt_output::Invoker;
use rustix::process::{getegid, geteuid, getgid, getuid};
use rustix::thread::{
    CapabilitySet, CapabilitySets, capabilities, set_capabilities, set_no_new_privs,
};

/// What it takes to give a file its name in a folder of the user who called root.
const PUBLISHING: CapabilitySet = CapabilitySet::DAC_OVERRIDE.union(CapabilitySet::FOWNER);

/// Whether ppt runs with the rights of its file's owner rather than its user's.
pub(crate) fn borrowed() -> bool {
    getuid() != geteuid() || getgid() != getegid()
}

/// Who called sudo: what is made belongs to that user.
pub(crate) fn invoker() -> Option<Invoker> {
    let number = |name| std::env::var(name).ok()?.parse().ok();
    Some(Invoker { uid: number("SUDO_UID")?, gid: number("SUDO_GID") })
}

/// Gives up every capability but CAP_SYS_PTRACE, where it is held, and the ways to get them back.
///
/// CAP_SYS_PTRACE stays for looks at the target and for the end, which writes into it. Where more
/// files are to be made on the way, what root needs in a folder of the user who called it stays,
/// too. Threads that are started afterwards inherit this; those that exist do not.
pub(crate) fn give_up(more_files: bool) -> rustix::io::Result<()> {
    let mut needed = CapabilitySet::SYS_PTRACE;
    if more_files {
        needed |= PUBLISHING | CapabilitySet::CHOWN;
    }
    let left = capabilities(None)?.permitted & needed;
    keep(left, left)
}

/// Gives up every capability but the one by which root opens a capture of somebody else's, who may
/// have made it for root to read. What cannot be given up, as in a sandbox, is kept: no more is
/// asked of it than before.
///
/// What it takes to [publish] an output in the end stays within reach, but is not in effect.
pub(crate) fn only_read(then_publish: bool) {
    let reading = [CapabilitySet::DAC_READ_SEARCH, CapabilitySet::DAC_OVERRIDE];
    let Ok(held) = capabilities(None) else { return };
    let needed = reading.into_iter().find(|&it| held.permitted.contains(it));
    let needed = needed.unwrap_or(CapabilitySet::empty());
    let later = if then_publish { held.permitted & PUBLISHING } else { CapabilitySet::empty() };
    let _ = keep(needed, needed | later);
}

/// Does what [`only_read`] left the rights for.
pub(crate) fn publish<T>(work: impl FnOnce() -> T) -> T {
    if let Ok(held) = capabilities(None) {
        let _ = keep(held.permitted, held.permitted);
    }
    work()
}

fn keep(effective: CapabilitySet, permitted: CapabilitySet) -> rustix::io::Result<()> {
    // execve(2) gives root its capabilities back, unless told not to.
    set_no_new_privs(true)?;
    let inheritable = CapabilitySet::empty();
    set_capabilities(None, CapabilitySets { effective, permitted, inheritable })
}

/// Something that is done later with the rights of now: a thread of its own has them.
pub(crate) struct WithRights<T> {
    go: Sender<()>,
    thread: JoinHandle<Option<T>>,
}

impl<T: Send + 'static> WithRights<T> {
    pub(crate) fn keep(work: impl FnOnce() -> T + Send + 'static) -> io::Result<Self> {
        let (go, wait) = channel();
        let body = move || wait.recv().ok().map(|()| work());
        let thread = thread::Builder::new().name("ppt-rights".into()).spawn(body)?;
        Ok(Self { go, thread })
    }

    /// Does it, and is rid of the rights.
    pub(crate) fn work(self) -> T {
        let _ = self.go.send(());
        match self.thread.join() {
            Ok(Some(done)) => done,
            Ok(None) => unreachable!("it was told to go"),
            Err(panicked) => panic::resume_unwind(panicked),
        }
    }
}
