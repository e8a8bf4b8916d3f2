//! Reads signals from a descriptor, and restores their former handling for programs that ppt
//! starts.

use std::os::fd::{AsFd, BorrowedFd};
use std::sync::atomic::AtomicBool;
use std::sync::atomic::Ordering::Relaxed;

use nix::libc;
use nix::sys::signal::{SigHandler, SigSet, SigmaskHow, Signal, signal, sigprocmask};
use nix::sys::signalfd::{SfdFlags, SignalFd};

use crate::code::Code;
use crate::failure::{Failure, failed};

/// A signal that has arrived.
pub(crate) struct ReceivedSignal {
    pub(crate) signal: Signal,
    /// Whether a process sent it, rather than the terminal or the kernel.
    pub(crate) is_sent: bool,
}

/// The signals that ppt waits for.
pub(crate) struct Signals {
    fd: SignalFd,
    before: Before,
}

/// The earlier handling of signals, which a program that ppt starts inherits.
#[derive(Clone, Copy)]
pub(crate) struct Before {
    mask: SigSet,
    ignored: SigSet,
}

/// Whether SIGPIPE was ignored at the start, as it often is for services. Rust's runtime ignores it
/// before `main`, and restores the default in the programs that it starts.
static PIPE_IGNORED: AtomicBool = AtomicBool::new(false);

/// Whether stdout was closed at the start. Rust's runtime then opens /dev/null as stdout, which
/// swallows everything without an error.
static STDOUT_CLOSED: AtomicBool = AtomicBool::new(false);

/// Whether ppt was started without stdout.
pub(crate) fn stdout_was_closed() -> bool {
    STDOUT_CLOSED.load(Relaxed)
}

/// Fails if printed text would be lost. A user who wants only the exit code uses `> /dev/null`.
pub(crate) fn needs_stdout() -> Result<(), Failure> {
    if stdout_was_closed() {
        let message = "stdout is closed; redirect it to a file, or to /dev/null";
        Err(Failure::usage(Code::StdoutTaken, message))
    } else {
        Ok(())
    }
}

#[used]
#[unsafe(link_section = ".init_array")]
static BEFORE_MAIN: extern "C" fn() = {
    extern "C" fn look() {
        // SAFETY: an all-zero sigaction is valid, and the call fills it; it changes nothing.
        let ignored = unsafe {
            let mut action: libc::sigaction = std::mem::zeroed();
            libc::sigaction(libc::SIGPIPE, std::ptr::null(), &mut action) == 0
                && action.sa_sigaction == libc::SIG_IGN
        };
        PIPE_IGNORED.store(ignored, Relaxed);
        // SAFETY: no pointers; the call changes nothing.
        let closed = unsafe { libc::fcntl(libc::STDOUT_FILENO, libc::F_GETFD) } == -1;
        STDOUT_CLOSED.store(closed, Relaxed);
    }
    look
};

/// Whether SIGXFSZ had its default action at the start.
static FILE_SIZE_DEFAULT: AtomicBool = AtomicBool::new(false);

/// A write beyond the limit of the file's size (`ulimit -f`) fails instead of ending ppt. Otherwise
/// the targets would write frames that are never drained.
pub(crate) fn ignore_file_size() {
    // SAFETY: no handler is installed.
    let before = unsafe { signal(Signal::SIGXFSZ, SigHandler::SigIgn) };
    FILE_SIZE_DEFAULT.store(matches!(before, Ok(SigHandler::SigDfl)), Relaxed);
}

impl Signals {
    /// Takes the signals `wanted` from now on, also those that were inherited as ignored, as in the
    /// background of a script. An ignored SIGHUP stays ignored, because nohup(1) asked for that.
    /// Call this before any thread is started, because threads inherit the mask.
    pub(crate) fn take(wanted: &[Signal]) -> Result<Self, Failure> {
        let fail = failed("set up signals");
        let mut set = SigSet::empty();
        let mut ignored = SigSet::empty();
        if PIPE_IGNORED.load(Relaxed) {
            ignored.add(Signal::SIGPIPE);
        }
        for &number in wanted {
            // SAFETY: this installs no handler; it restores the default.
            let before = unsafe { signal(number, SigHandler::SigDfl) }.map_err(&fail)?;
            if matches!(before, SigHandler::SigIgn) {
                ignored.add(number);
            }
            if number == Signal::SIGHUP && matches!(before, SigHandler::SigIgn) {
                // SAFETY: this restores the former action.
                unsafe { signal(number, before) }.map_err(&fail)?;
            } else {
                set.add(number);
            }
        }
        let mask = set.thread_swap_mask(SigmaskHow::SIG_BLOCK).map_err(failed("block signals"))?;
        let flags = SfdFlags::SFD_CLOEXEC | SfdFlags::SFD_NONBLOCK;
        let fd = SignalFd::with_flags(&set, flags).map_err(failed("wait for signals"))?;
        Ok(Self { fd, before: Before { mask, ignored } })
    }

    /// The next signal that has arrived, if there is one.
    pub(crate) fn next(&self) -> Option<ReceivedSignal> {
        let info = self.fd.read_signal().ok().flatten()?;
        let signal = Signal::try_from(info.ssi_signo as i32).ok()?;
        Some(ReceivedSignal { signal, is_sent: info.ssi_code <= 0 })
    }

    /// Takes all signals that have arrived; returns whether one of them, other than SIGCHLD, asks
    /// ppt to end.
    pub(crate) fn ask_to_end(&self) -> bool {
        let mut asked = false;
        while let Some(ReceivedSignal { signal, .. }) = self.next() {
            asked |= signal != Signal::SIGCHLD;
        }
        asked
    }

    /// The earlier handling of signals.
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
    /// Restores the former handling in a child between fork and exec; makes only system calls.
    pub(crate) fn restore(&self) -> std::io::Result<()> {
        for ignored in &self.ignored {
            // SAFETY: no handler is installed.
            unsafe { signal(ignored, SigHandler::SigIgn) }?;
        }
        if FILE_SIZE_DEFAULT.load(Relaxed) {
            // SAFETY: this installs no handler; it restores the default.
            unsafe { signal(Signal::SIGXFSZ, SigHandler::SigDfl) }?;
        }
        Ok(sigprocmask(SigmaskHow::SIG_SETMASK, Some(&self.mask), None)?)
    }
}
