//! Privileges. Once attached, ppt may only read and write the target's memory. While it reads a
//! capture, it may only read.
//!
//! Somebody may run ppt as root for another user's target. So that the target cannot misuse those
//! privileges, ppt gives them up after the last write of an attach. It handles neither the target's
//! bytes nor paths of the target's user with root's privileges. Before ppt answers a question about a capture,
//! it gives up everything but the right to read it.

#[cfg(any(feature = "answers", feature = "hosts"))]
use std::ffi::CString;
use std::io;
use std::panic;
use std::sync::mpsc::{Sender, channel};
use std::thread::{self, JoinHandle};

use nix::unistd::{Gid, Uid, setgid, setgroups, setuid};
use ppt_output::Invoker;
use rustix::process::{getegid, geteuid, getgid, getuid};
use rustix::thread::{
    CapabilitySet, CapabilitySets, capabilities, set_capabilities, set_no_new_privs,
};
#[cfg(any(feature = "answers", feature = "hosts"))]
use rustix::thread::{
    capability_is_in_ambient_set, set_thread_gid, set_thread_groups, set_thread_uid,
};

#[cfg(any(feature = "answers", feature = "hosts"))]
use crate::code::Code;
#[cfg(any(feature = "answers", feature = "hosts"))]
use crate::failure::Failure;

/// Capabilities to give a file its name in a folder of the user who called sudo.
const PUBLISHING: CapabilitySet = CapabilitySet::DAC_OVERRIDE.union(CapabilitySet::FOWNER);

/// The user nobody, who owns nothing.
const NOBODY: u32 = 65534;

/// Whether ppt is set-user-ID or set-group-ID.
pub(crate) fn borrowed() -> bool {
    getuid() != geteuid() || getgid() != getegid()
}

/// The user who called sudo. New files belong to that user.
pub(crate) fn invoker() -> Option<Invoker> {
    let number = |name| std::env::var(name).ok()?.parse().ok();
    Some(Invoker { uid: number("SUDO_UID")?, gid: number("SUDO_GID") })
}

/// Gives up every capability except CAP_SYS_PTRACE, and the ways to get them back.
///
/// ppt needs CAP_SYS_PTRACE to check the target, and to write into it at the end. If the capture
/// makes further files, ppt also keeps the capabilities that root needs in a folder of the user who
/// called sudo. Threads that are started afterwards inherit the rest; existing threads do not
/// change.
pub(crate) fn give_up(more_files: bool) -> rustix::io::Result<()> {
    let mut needed = CapabilitySet::SYS_PTRACE;
    if more_files {
        needed |= PUBLISHING | CapabilitySet::CHOWN;
    }
    let left = capabilities(None)?.permitted & needed;
    keep(left, left)
}

/// Gives up every capability except the one by which root opens a capture of another user. That
/// user may have made the capture to attack root. If a capability cannot be given up, as in a
/// sandbox, it stays.
///
/// The capabilities to [publish] an output at the end stay permitted, but are not effective.
pub(crate) fn only_read(then_publish: bool) {
    let reading = [CapabilitySet::DAC_READ_SEARCH, CapabilitySet::DAC_OVERRIDE];
    let Ok(held) = capabilities(None) else { return };
    let needed = reading.into_iter().find(|&reading| held.permitted.contains(reading));
    let needed = needed.unwrap_or(CapabilitySet::empty());
    let later = if then_publish { held.permitted & PUBLISHING } else { CapabilitySet::empty() };
    let _ = keep(needed, needed | later);
}

/// Gives up what reading captures does not need. Under sudo, this thread becomes the user who called sudo;
/// root without sudo keeps only the capability to open files. Another user keeps that capability if whoever
/// started ppt gave it (`ppt lab` does), and not if the file of ppt has it. Other threads do not change.
///
/// # Errors
/// A system call failed.
#[cfg(any(feature = "answers", feature = "hosts"))]
pub(crate) fn step_down() -> Result<(), Failure> {
    stepped_down().map_err(|error| {
        Failure::failed(Code::System, format!("cannot give up privileges: {error}"))
    })
}

#[cfg(any(feature = "answers", feature = "hosts"))]
fn stepped_down() -> io::Result<()> {
    ppt_foreign::end();
    let invoker = invoker().filter(|invoker| invoker.uid != 0);
    match (geteuid().is_root(), invoker) {
        (true, None) => {
            only_read(false);
            return Ok(());
        }
        (true, Some(invoker)) => become_user(invoker)?,
        (false, _) => {}
    }
    let reading = CapabilitySet::DAC_READ_SEARCH;
    let is_given = capability_is_in_ambient_set(reading).unwrap_or(false);
    let kept = if is_given { reading } else { CapabilitySet::empty() };
    // What is not inheritable leaves the ambient set, too.
    let sets = CapabilitySets { effective: kept, permitted: kept, inheritable: kept };
    Ok(set_capabilities(None, sets)?)
}

/// Becomes a user, with all groups of that user.
#[cfg(any(feature = "answers", feature = "hosts"))]
fn become_user(user: Invoker) -> io::Result<()> {
    use nix::unistd::{User, getgrouplist};
    let known = User::from_uid(Uid::from_raw(user.uid))?;
    let gid = user.gid.or(known.as_ref().map(|known| known.gid.as_raw())).unwrap_or(user.uid);
    let name = known.and_then(|known| CString::new(known.name).ok());
    let groups = name.map(|name| getgrouplist(&name, Gid::from_raw(gid))).transpose()?;
    let groups = groups.unwrap_or_else(|| vec![Gid::from_raw(gid)]);
    let groups: Vec<_> =
        groups.into_iter().map(|group| rustix::process::Gid::from_raw(group.as_raw())).collect();
    set_thread_groups(&groups)?;
    set_thread_gid(rustix::process::Gid::from_raw(gid))?;
    Ok(set_thread_uid(rustix::process::Uid::from_raw(user.uid))?)
}

/// Gives up all privileges, because any client can reach this process. Root becomes the user who
/// called sudo, or nobody. Where these users do not exist, as in a sandbox, the process stays root
/// without any capability.
pub(crate) fn give_up_all() -> rustix::io::Result<()> {
    if geteuid().is_root() {
        let invoker = invoker().filter(|invoker| invoker.uid != 0);
        let uid = invoker.as_ref().map_or(NOBODY, |invoker| invoker.uid);
        let gid = Gid::from_raw(invoker.and_then(|invoker| invoker.gid).unwrap_or(uid));
        let became = setgroups(&[gid]).and_then(|()| setgid(gid));
        let _ = became.and_then(|()| setuid(Uid::from_raw(uid)));
    }
    let none = CapabilitySet::empty();
    keep(none, none)
}

/// Runs `work` with the capabilities that [`only_read`] left for it.
pub(crate) fn publish<T>(work: impl FnOnce() -> T) -> T {
    if let Ok(held) = capabilities(None) {
        let _ = keep(held.permitted, held.permitted);
    }
    work()
}

fn keep(effective: CapabilitySet, permitted: CapabilitySet) -> rustix::io::Result<()> {
    // A process that reads for ppt has no more rights than ppt.
    ppt_foreign::end();
    // execve(2) gives root its capabilities back, unless no_new_privs is set.
    set_no_new_privs(true)?;
    let inheritable = CapabilitySet::empty();
    set_capabilities(None, CapabilitySets { effective, permitted, inheritable })
}

/// Deferred work with the current privileges, which a separate thread keeps.
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

    /// Does the work, and ends the thread.
    pub(crate) fn work(self) -> T {
        let _ = self.go.send(());
        match self.thread.join() {
            Ok(Some(done)) => done,
            Ok(None) => unreachable!("the message has been sent"),
            Err(panicked) => panic::resume_unwind(panicked),
        }
    }
}
