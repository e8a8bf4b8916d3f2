//! The signals that end a command: Ctrl-C (SIGINT), SIGTERM, SIGHUP and SIGQUIT. Their handlers set flags.
//!
//! A command with work that can stop early polls [`came`] ([`take`]). The process of a question ends the
//! question, and itself if that takes too long ([`take_in_question`]). The supervisor of a question waits for
//! signals and for its child ([`SignalPipe`]). What records waits for signals by a descriptor instead
//! (`ppt/signals.rs`).

#![forbid(unsafe_code)]

use std::fs;
use std::io::{self, Read};
use std::os::fd::{AsFd, BorrowedFd};
use std::os::unix::net::UnixStream;
use std::sync::atomic::{AtomicBool, AtomicU8, AtomicUsize, Ordering::Relaxed};
use std::sync::{Arc, OnceLock};
use std::thread;
use std::time::{Duration, Instant};

use ppt_text::exit::ExitStatus;
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use signal_hook::consts::{SIGCHLD, SIGHUP, SIGINT, SIGQUIT, SIGTERM, SIGXFSZ};

/// Signals that end a command.
pub const STOPS: [i32; 4] = [SIGINT, SIGTERM, SIGHUP, SIGQUIT];

/// Time that the process of a question gives the question to end by itself. The supervisor waits less.
const GRACE: Duration = Duration::from_millis(900);
/// Interval at which the process of a question checks whether the question has ended.
const POLL_INTERVAL: Duration = Duration::from_millis(20);

/// A signal ends the program.
const PROGRAM: u8 = 0;
/// A signal ends the current work.
const WORK: u8 = 1;
/// A signal ends nothing: there is no question.
const IDLE: u8 = 2;

/// What the next signal ends: [`PROGRAM`], [`WORK`] or [`IDLE`].
static ENDING: AtomicU8 = AtomicU8::new(PROGRAM);

/// True if the next signal ends the program. The first signal during work sets it.
fn ends() -> &'static Arc<AtomicBool> {
    static ENDS: OnceLock<Arc<AtomicBool>> = OnceLock::new();
    ENDS.get_or_init(|| Arc::new(AtomicBool::new(true)))
}

/// The number of the last signal; 0 before the first.
fn last() -> &'static Arc<AtomicUsize> {
    static LAST: OnceLock<Arc<AtomicUsize>> = OnceLock::new();
    LAST.get_or_init(Arc::default)
}

fn last_signal() -> i32 {
    i32::try_from(last().load(Relaxed)).unwrap_or_default()
}

/// Makes a file-size limit an error of the command that writes, like a full disk.
fn take_full_files() -> io::Result<()> {
    signal_hook::flag::register(SIGXFSZ, Arc::default())?;
    Ok(())
}

/// Records the arrival of a signal.
fn note(signal: i32) -> io::Result<()> {
    let number = usize::try_from(signal).unwrap_or_default();
    signal_hook::flag::register_usize(signal, last().clone(), number)?;
    Ok(())
}

/// Handles SIGINT and SIGTERM: they end the program, until [`end_work`].
///
/// # Errors
/// A handler could not be set.
pub fn take() -> io::Result<()> {
    for signal in [SIGINT, SIGTERM] {
        // The order matters: the default action reads the flag before the next handler sets it.
        signal_hook::flag::register_conditional_default(signal, ends().clone())?;
        signal_hook::flag::register(signal, ends().clone())?;
        note(signal)?;
    }
    take_full_files()
}

/// Handles signals in the process of a question. If a question does not end in time, the process calls
/// `tidy`, and ends by the signal.
///
/// # Errors
/// A handler could not be set.
pub fn take_in_question(tidy: impl Fn() + Send + 'static) -> io::Result<()> {
    let (mut woken, wakes) = UnixStream::pair()?;
    for signal in stops() {
        signal_hook::flag::register(signal, ends().clone())?;
        note(signal)?;
        signal_hook::low_level::pipe::register(signal, wakes.try_clone()?)?;
    }
    take_full_files()?;
    let watch = move || {
        let mut byte = [0];
        while woken.read_exact(&mut byte).is_ok() {
            let since = Instant::now();
            while ENDING.load(Relaxed) == WORK && came() && since.elapsed() < GRACE {
                thread::sleep(POLL_INTERVAL);
            }
            let is_over = ENDING.load(Relaxed) == WORK && came();
            if is_over || ENDING.load(Relaxed) == PROGRAM {
                tidy();
                let _ = interrupted();
                signal_hook::low_level::exit(130);
            }
        }
    };
    thread::Builder::new().name("signals".into()).spawn(watch).map(drop)
}

/// The signals that end a command, except those that its parent ignores, as nohup does.
fn stops() -> impl Iterator<Item = i32> {
    let status = fs::read_to_string("/proc/self/status").unwrap_or_default();
    let mask = status.lines().find_map(|line| line.strip_prefix("SigIgn:"));
    let mask = mask.and_then(|mask| u64::from_str_radix(mask.trim(), 16).ok()).unwrap_or_default();
    let is_ignored = move |signal: &i32| mask >> (signal - 1) & 1 == 1;
    STOPS
        .into_iter()
        .filter(move |signal| [SIGINT, SIGTERM].contains(signal) || !is_ignored(signal))
}

/// From now on, the first signal ends the current work, which polls [`came`].
pub fn end_work() {
    ENDING.store(WORK, Relaxed);
    ends().store(false, Relaxed);
}

/// From now on, a signal ends the program: it waits, and there is nothing to tidy up.
pub fn end_the_program() {
    ENDING.store(PROGRAM, Relaxed);
    ends().store(true, Relaxed);
}

/// From now on, a signal ends nothing: the process waits for a question.
pub fn end_nothing() {
    ENDING.store(IDLE, Relaxed);
}

/// Whether a signal arrived that ends the work.
pub fn came() -> bool {
    ends().load(Relaxed)
}

/// Ends by the signal that arrived, so that a shell's loop ends, too.
pub fn interrupted() -> ExitStatus {
    let signal = match last_signal() {
        0 => SIGINT,
        signal => signal,
    };
    end_by(signal)
}

/// Ends by a signal.
pub fn end_by(signal: i32) -> ExitStatus {
    let _ = signal_hook::low_level::emulate_default_handler(signal);
    ExitStatus::of_signal(signal)
}

/// Wakes a supervisor at signals and at SIGCHLD.
#[derive(Debug)]
pub struct SignalPipe {
    woken: UnixStream,
}

impl SignalPipe {
    /// Handles the signals. From now on, no signal ends the program, until [`end_the_program`].
    ///
    /// # Errors
    /// A handler could not be set.
    pub fn take() -> io::Result<SignalPipe> {
        let (woken, wakes) = UnixStream::pair()?;
        woken.set_nonblocking(true)?;
        end_work();
        for signal in stops() {
            signal_hook::flag::register_conditional_default(signal, ends().clone())?;
            note(signal)?;
            signal_hook::low_level::pipe::register(signal, wakes.try_clone()?)?;
        }
        signal_hook::low_level::pipe::register(SIGCHLD, wakes)?;
        Ok(SignalPipe { woken })
    }

    /// The signal that arrived since the last call.
    pub fn stop(&self) -> Option<i32> {
        i32::try_from(last().swap(0, Relaxed)).ok().filter(|signal| *signal != 0)
    }

    /// Waits for a signal, or until `input` is readable, for at most `most`. Returns whether `input` is
    /// readable.
    pub fn wait(&self, input: Option<BorrowedFd<'_>>, most: Option<Duration>) -> bool {
        let mut fds = vec![PollFd::from_borrowed_fd(self.woken.as_fd(), PollFlags::IN)];
        fds.extend(input.map(|input| PollFd::from_borrowed_fd(input, PollFlags::IN)));
        let most = most.and_then(|most| Timespec::try_from(most).ok());
        // A signal that interrupts the call has also written a byte.
        let _ = poll(&mut fds, most.as_ref());
        let can_read = fds.get(1).is_some_and(|input| !input.revents().is_empty());
        let mut bytes = [0; 64];
        while (&self.woken).read(&mut bytes).is_ok_and(|count| count == bytes.len()) {}
        can_read
    }
}
