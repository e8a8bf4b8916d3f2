//! Signals as a descriptor, and how they were before.

use std::os::fd::{AsFd, BorrowedFd};
use std::sync::atomic::AtomicBool;
use std::sync::atomic::Ordering::Relaxed;

use nix::libc;
use nix::sys::signal::{SigHandler, SigSet, SigmaskHow, Signal, signal, sigprocmask};
use nix::sys::signalfd::{SfdFlags, SignalFd};

use crate::failure::{Failure, failed};

/// Where the caller's arrived.
pub(crate) struct Signals {
    fd: SignalFd,
    before: Before,
}

/// What a program that we start inherits, as if we had not been there.
#[derive(Clone, Copy)]
pub(crate) struct Before {
    mask: SigSet,
    ignored: SigSet,
}

/// Whether SIGPIPE was ignored when we were started, as services' often is: Rust's runtime ignores
/// it before `main`, and takes that back in what it starts.
static PIPE_IGNORED: AtomicBool = AtomicBool::new(false);

/// Whether stdout was closed when we were started: the runtime opens /dev/null in its place, where
/// whatever is written is lost without an error.
static STDOUT_CLOSED: AtomicBool = AtomicBool::new(false);

/// Whether nobody gave us a stdout.
pub(crate) fn stdout_was_closed() -> bool {
    STDOUT_CLOSED.load(Relaxed)
}

#[used]
#[unsafe(link_section = ".init_array")]
static BEFORE_MAIN: extern "C" fn() = {
    extern "C" fn look() {
        // SAFETY: an all-zero sigaction is one, which the call fills; nothing is changed.
        let ignored = unsafe {
            let mut action: libc::sigaction = std::mem::zeroed();
            libc::sigaction(libc::SIGPIPE, std::ptr::null(), &mut action) == 0
                && action.sa_sigaction == libc::SIG_IGN
        };
        PIPE_IGNORED.store(ignored, Relaxed);
        // SAFETY: no pointers; nothing is changed.
        let closed = unsafe { libc::fcntl(libc::STDOUT_FILENO, libc::F_GETFD) } == -1;
        STDOUT_CLOSED.store(closed, Relaxed);
    }
    look
};

/// Whether SIGXFSZ was what it is by default when we were started.
static FILE_SIZE_DEFAULT: AtomicBool = AtomicBool::new(false);

/// A file that is as large as it may be (`ulimit -f`) fails its write; it does not end ppt, whose
/// targets would go on writing for nobody.
pub(crate) fn ignore_file_size() {
    // SAFETY: no handler is installed.
    let before = unsafe { signal(Signal::SIGXFSZ, SigHandler::SigIgn) };
    FILE_SIZE_DEFAULT.store(matches!(before, Ok(SigHandler::SigDfl)), Relaxed);
}

impl Signals {
    /// Takes `wanted` from here on, also where they were inherited as ignored, as in the background
    /// of a script. Ignored hang-ups stay so: nohup(1) asked for that. To be called before any
    /// thread is started: all of them inherit it.
    pub(crate) fn take(wanted: &[Signal]) -> Result<Self, Failure> {
        let fail = failed("set up signals");
        let mut set = SigSet::empty();
        let mut ignored = SigSet::empty();
        if PIPE_IGNORED.load(Relaxed) {
            ignored.add(Signal::SIGPIPE);
        }
        for &it in wanted {
            // SAFETY: no handler is installed, only the default restored.
            let before = unsafe { signal(it, SigHandler::SigDfl) }.map_err(&fail)?;
            if matches!(before, SigHandler::SigIgn) {
                ignored.add(it);
            }
            if it == Signal::SIGHUP && matches!(before, SigHandler::SigIgn) {
                // SAFETY: as it was.
                unsafe { signal(it, before) }.map_err(&fail)?;
            } else {
                set.add(it);
            }
        }
        let mask = set.thread_swap_mask(SigmaskHow::SIG_BLOCK).map_err(failed("block signals"))?;
        let flags = SfdFlags::SFD_CLOEXEC | SfdFlags::SFD_NONBLOCK;
        let fd = SignalFd::with_flags(&set, flags).map_err(failed("wait for signals"))?;
        Ok(Self { fd, before: Before { mask, ignored } })
    }

    /// The next one that waits, and whether a process sent it, not the terminal or the kernel.
    pub(crate) fn next(&self) -> Option<(Signal, bool)> {
        let info = self.fd.read_signal().ok().flatten()?;
        Some((Signal::try_from(info.ssi_signo as i32).ok()?, info.ssi_code <= 0))
    }

    /// How it was before.
    pub(crate) fn before(&self) -> Before {
        self.before
    }
}

impl AsFd for Signals {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.fd.as_fd()
    }
}

impl Before {
    /// Restores it in a child between fork and exec: system calls alone.
    pub(crate) fn restore(&self) -> std::io::Result<()> {
        for it in &self.ignored {
            // SAFETY: no handler is installed.
            unsafe { signal(it, SigHandler::SigIgn) }?;
        }
        if FILE_SIZE_DEFAULT.load(Relaxed) {
            // SAFETY: no handler is installed, only the default restored.
            unsafe { signal(Signal::SIGXFSZ, SigHandler::SigDfl) }?;
        }
        Ok(sigprocmask(SigmaskHow::SIG_SETMASK, Some(&self.mask), None)?)
    }
}
