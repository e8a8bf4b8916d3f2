//! Reads signals from a descriptor, and restores their former handling for programs that ppt
//! starts.

use std::os::fd::{AsFd, BorrowedFd};
use std::sync::atomic::AtomicBool;
use std::sync::atomic::Ordering::Relaxed;

use nix::errno::Errno;
use nix::libc;
use nix::sys::signal::{SigHandler, SigSet, SigmaskHow, Signal, raise, signal, sigprocmask};
use nix::sys::signalfd::{SfdFlags, SignalFd};

use crate::code::Code;
use crate::failure::{Failure, failed};

/// A signal that has arrived.
#[derive(Clone, Copy)]
pub(crate) struct ReceivedSignal {
    pub(crate) number: i32,
    /// Its sender, if that is a process rather than the terminal or the kernel.
    pub(crate) sender: Option<i32>,
    /// What sigqueue(3) sent with it.
    value: Option<u64>,
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
    /// A bit for each number.
    ignored: u128,
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
        PIPE_IGNORED.store(is_ignored(libc::SIGPIPE), Relaxed);
        // SAFETY: no pointers; the call changes nothing.
        let closed = unsafe { libc::fcntl(libc::STDOUT_FILENO, libc::F_GETFD) } == -1;
        STDOUT_CLOSED.store(closed, Relaxed);
    }
    look
};

fn is_ignored(number: i32) -> bool {
    // SAFETY: an all-zero sigaction is valid, and the call fills it; it changes nothing.
    unsafe {
        let mut action: libc::sigaction = std::mem::zeroed();
        libc::sigaction(number, std::ptr::null(), &mut action) == 0
            && action.sa_sigaction == libc::SIG_IGN
    }
}

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
        let numbers = wanted.iter().map(|&signal| signal as i32);
        Self::take_numbers(numbers.filter(|&it| it != libc::SIGHUP || !is_ignored(it)))
    }

    /// Takes all signals that may be meant for a command that ppt runs: all that can be taken,
    /// except those that report a fault or a limit of ppt itself.
    pub(crate) fn take_all() -> Result<Self, Failure> {
        let faults = [libc::SIGILL, libc::SIGTRAP, libc::SIGBUS, libc::SIGFPE, libc::SIGSEGV];
        let limits = [libc::SIGSYS, libc::SIGPIPE, libc::SIGXCPU, libc::SIGXFSZ];
        let kept = [&faults[..], &limits, &[libc::SIGKILL, libc::SIGSTOP]].concat();
        let all = (1..32).chain(libc::SIGRTMIN()..=libc::SIGRTMAX());
        Self::take_numbers(all.filter(|number| !kept.contains(number)))
    }

    fn take_numbers(numbers: impl Iterator<Item = i32>) -> Result<Self, Failure> {
        let mut set = *SigSet::empty().as_ref();
        let mut ignored = u128::from(PIPE_IGNORED.load(Relaxed)) << libc::SIGPIPE;
        for number in numbers {
            ignored |= u128::from(is_ignored(number)) << number;
            // SAFETY: the set is ours; no handler is installed.
            let taken = unsafe {
                libc::sigaddset(&mut set, number) == 0
                    && libc::signal(number, libc::SIG_DFL) != libc::SIG_ERR
            };
            if !taken {
                return Err(failed("set up signals")(Errno::last()));
            }
        }
        // SAFETY: a set of signals that exist.
        let set = unsafe { SigSet::from_sigset_t_unchecked(set) };
        let mask = set.thread_swap_mask(SigmaskHow::SIG_BLOCK).map_err(failed("block signals"))?;
        let flags = SfdFlags::SFD_CLOEXEC | SfdFlags::SFD_NONBLOCK;
        let fd = SignalFd::with_flags(&set, flags).map_err(failed("wait for signals"))?;
        Ok(Self { fd, before: Before { mask, ignored } })
    }

    /// The next signal that has arrived, if there is one.
    pub(crate) fn next(&self) -> Option<ReceivedSignal> {
        let info = self.fd.read_signal().ok().flatten()?;
        Some(ReceivedSignal {
            number: info.ssi_signo as i32,
            sender: (info.ssi_code <= 0).then_some(info.ssi_pid as i32),
            value: (info.ssi_code == libc::SI_QUEUE).then_some(info.ssi_ptr),
        })
    }

    /// Takes all signals that have arrived; returns whether one of them asks ppt to end.
    pub(crate) fn ask_to_end(&self) -> bool {
        let mut asked = false;
        while let Some(ReceivedSignal { number, .. }) = self.next() {
            match number {
                libc::SIGHUP => asked |= !self.before.ignores(number),
                libc::SIGINT | libc::SIGQUIT | libc::SIGTERM => asked = true,
                libc::SIGTSTP | libc::SIGTTIN | libc::SIGTTOU => self.stop(number),
                _ => {}
            }
        }
        asked
    }

    /// Stops ppt as this signal would have, had ppt not taken it. Returns after SIGCONT.
    pub(crate) fn stop(&self, number: i32) {
        let Ok(signal) = Signal::try_from(number) else { return };
        let set = SigSet::from(signal);
        if raise(signal).and_then(|()| set.thread_unblock()).is_ok() {
            let _ = set.thread_block();
        }
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

impl ReceivedSignal {
    /// Sends it to a child of ppt, which has not been waited for.
    pub(crate) fn pass_to(self, pid: i32) {
        // SAFETY: the value is not looked at, only passed on.
        let queued = self.value.is_some_and(|value| unsafe {
            let sival_ptr = value as usize as *mut libc::c_void;
            libc::sigqueue(pid, self.number, libc::sigval { sival_ptr }) == 0
        });
        if !queued {
            // SAFETY: no pointers.
            unsafe { libc::kill(pid, self.number) };
        }
    }
}

impl Before {
    fn ignores(&self, number: i32) -> bool {
        self.ignored >> number & 1 != 0
    }

    /// Restores the former handling in a child between fork and exec; makes only system calls.
    pub(crate) fn restore(&self) -> std::io::Result<()> {
        for number in (1..128).filter(|&number| self.ignores(number)) {
            // SAFETY: no handler is installed.
            unsafe { libc::signal(number, libc::SIG_IGN) };
        }
        if FILE_SIZE_DEFAULT.load(Relaxed) {
            // SAFETY: this installs no handler; it restores the default.
            unsafe { signal(Signal::SIGXFSZ, SigHandler::SigDfl) }?;
        }
        Ok(sigprocmask(SigmaskHow::SIG_SETMASK, Some(&self.mask), None)?)
    }
}
