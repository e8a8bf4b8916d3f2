//! The sandboxes and filters around ppt itself. No file lists them, so this module finds them by
//! harmless trials.

use std::os::fd::{AsRawFd, FromRawFd, OwnedFd};

use nix::errno::Errno;
use nix::sys::ptrace;
use nix::unistd::Pid;

/// The sandboxes and filters around this process.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Confined {
    /// The number of nested Landlock sandboxes around it. A process in a sandbox may trace only
    /// processes in the same sandbox.
    pub landlock: u32,
    /// The errno with which a system call filter refuses every ptrace(2).
    pub ptrace: Option<i32>,
}

impl Confined {
    /// Finds them by trials.
    pub fn tried() -> Self {
        // No pid is that high: a ptrace(2) that gets through finds no process.
        let ptrace = ptrace::seize(Pid::from_raw(i32::MAX), ptrace::Options::empty()).err();
        let ptrace = ptrace.filter(|&ptrace| ptrace != Errno::ESRCH).map(|number| number as i32);
        Self { landlock: layers().unwrap_or(0), ptrace }
    }
}

/// The number of Landlock sandboxes around this process. `None` if the kernel has no Landlock.
///
/// A thread may be in at most 16. A thread created for this test enters as many as it can and then
/// ends: the remaining ones were there before.
fn layers() -> Option<u32> {
    const MAX_LAYERS: u32 = 16;
    let enter = || {
        let ruleset = ruleset()?;
        let entered = (0..=MAX_LAYERS).take_while(|_| is_entered(&ruleset)).count() as u32;
        (entered > 0 || Errno::last() == Errno::E2BIG).then_some(MAX_LAYERS.saturating_sub(entered))
    };
    std::thread::Builder::new().spawn(enter).ok()?.join().ok()?
}

/// A Landlock ruleset; its rules do not matter.
fn ruleset() -> Option<OwnedFd> {
    const MAKE_BLOCK_DEVICES: u64 = 1 << 11;
    let handled = MAKE_BLOCK_DEVICES;
    // SAFETY: the attribute has the layout of the first version, 8 bytes, and outlives the call.
    let fd = unsafe {
        libc::syscall(libc::SYS_landlock_create_ruleset, &raw const handled, size_of::<u64>(), 0)
    };
    let fd = i32::try_from(fd).ok().filter(|&fd| fd >= 0)?;
    // SAFETY: the kernel just returned this descriptor to us.
    Some(unsafe { OwnedFd::from_raw_fd(fd) })
}

/// Puts this thread into a sandbox, permanently.
fn is_entered(ruleset: &OwnedFd) -> bool {
    // SAFETY: no pointers; the call restricts only this thread.
    nix::sys::prctl::set_no_new_privs().is_ok()
        && unsafe { libc::syscall(libc::SYS_landlock_restrict_self, ruleset.as_raw_fd(), 0) } == 0
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sandboxes_are_counted_and_nothing_stays() {
        let before = Confined::tried();
        assert_eq!(Confined::tried(), before);
        let inside = std::thread::spawn(|| {
            let entered = ruleset().filter(is_entered)?;
            drop(entered);
            Some(Confined::tried())
        });
        match inside.join().unwrap() {
            Some(inside) => assert_eq!(inside.landlock, before.landlock + 1),
            None => eprintln!("skipped: this kernel has no Landlock"),
        }
        assert_eq!(Confined::tried(), before);
    }
}
