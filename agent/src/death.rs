//! How a process ended.

use std::os::fd::{AsRawFd, BorrowedFd};
use std::os::unix::process::ExitStatusExt;
use std::process::ExitStatus;

use crate::target::Target;

impl Target {
    /// The exit status of the process. `None` while it runs, and if the status is lost: another
    /// process reaped it first, and the kernel keeps no record (before Linux 6.15).
    pub fn ended_with(&self) -> Option<ExitStatus> {
        let status = self.zombie_status().or_else(|| self.pidfd().and_then(kept_status))?;
        Some(ExitStatus::from_raw(status))
    }
}

/// The status that the kernel keeps in the pidfd of a process that has been reaped.
fn kept_status(pidfd: BorrowedFd<'_>) -> Option<i32> {
    let asked = u64::from(libc::PIDFD_INFO_EXIT);
    // SAFETY: the structure holds only integers, for which all zeros is valid.
    let mut info: libc::pidfd_info = unsafe { std::mem::zeroed() };
    info.mask = asked;
    // SAFETY: the request encodes the size of the structure that the kernel fills.
    let done = unsafe { libc::ioctl(pidfd.as_raw_fd(), libc::PIDFD_GET_INFO, &raw mut info) };
    (done == 0 && info.mask & asked != 0).then_some(info.exit_code)
}

#[cfg(test)]
mod tests {
    use std::process::Command;

    use rustix::process::{Pid, PidfdFlags, pidfd_open};

    use super::*;
    use crate::system::System;

    /// A waiting child without buffers.
    fn child(script: &str) -> (std::process::Child, Target) {
        let child = Command::new("sh").args(["-c", script]).spawn().unwrap();
        let target = Target::open(&System::default(), child.id() as i32).unwrap();
        (child, target)
    }

    #[test]
    fn a_zombie_tells_how_it_ended() {
        let (mut child, target) = child("exec sleep 600");
        assert_eq!(target.ended_with(), None);
        child.kill().unwrap();
        while !target.ended() {
            std::thread::yield_now();
        }
        let status = target.ended_with();
        assert_eq!(status.and_then(|status| status.signal()), Some(libc::SIGKILL));
        let waited = child.wait().unwrap();
        // A kernel that keeps the status after reaping returns the same one.
        assert!(
            target.ended_with().is_none_or(|found| found == waited),
            "{:?}",
            target.ended_with()
        );
    }

    #[test]
    fn what_is_kept_is_how_it_ended() {
        let mut child = Command::new("sh").args(["-c", "exit 3"]).spawn().unwrap();
        let pidfd = pidfd_open(Pid::from_child(&child), PidfdFlags::empty()).unwrap();
        let waited = child.wait().unwrap();
        let kept = kept_status(std::os::fd::AsFd::as_fd(&pidfd));
        assert!(kept.is_none_or(|kept| ExitStatus::from_raw(kept) == waited), "{kept:?}");
    }
}
