//! What ppt may do once it is attached: read and write the target's memory, and no more; and while
//! it reads a capture: that.
//!
//! Whoever runs ppt as root for a target of another user must not be its deputy: from the last
//! write of an attach on, neither the target's bytes nor a path of its user's meet root's rights.

use rustix::process::{getegid, geteuid, getgid, getuid};
use rustix::thread::{
    CapabilitySet, CapabilitySets, capabilities, set_capabilities, set_no_new_privs,
};

/// Whether ppt runs with the rights of its file's owner rather than its user's.
pub(crate) fn borrowed() -> bool {
    getuid() != geteuid() || getgid() != getegid()
}

/// Gives up every capability but CAP_SYS_PTRACE, where it is held, and the ways to get them back.
///
/// CAP_SYS_PTRACE stays for looks at the target and for the end, which writes into it. Where more
/// files are to be made on the way, what root needs in a folder of the user who called it stays,
/// too. Threads that are started afterwards inherit this; those that exist do not.
pub(crate) fn give_up(more_files: bool) -> rustix::io::Result<()> {
    let mut needed = CapabilitySet::SYS_PTRACE;
    if more_files {
        needed |= CapabilitySet::DAC_OVERRIDE | CapabilitySet::CHOWN;
    }
    keep(needed)
}

/// Gives up every capability but the one by which root opens a capture of somebody else's, who may
/// have made it for root to read. What cannot be given up, as in a sandbox, is kept: no more is
/// asked of it than before.
pub(crate) fn only_read() {
    let reading = [CapabilitySet::DAC_READ_SEARCH, CapabilitySet::DAC_OVERRIDE];
    let Ok(held) = capabilities(None) else { return };
    let needed = reading.into_iter().find(|&it| held.permitted.contains(it));
    let _ = keep(needed.unwrap_or(CapabilitySet::empty()));
}

fn keep(needed: CapabilitySet) -> rustix::io::Result<()> {
    // execve(2) gives root its capabilities back, unless told not to.
    set_no_new_privs(true)?;
    let left = capabilities(None)?.permitted & needed;
    let inheritable = CapabilitySet::empty();
    set_capabilities(None, CapabilitySets { effective: left, permitted: left, inheritable })
}
