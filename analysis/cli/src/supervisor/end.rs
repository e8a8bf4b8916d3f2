//! The end of a question's process, and the message for it.

use std::os::unix::process::ExitStatusExt;
use std::process;

use ppt_text::exit::ExitStatus;
use signal_hook::consts::{SIGABRT, SIGBUS, SIGILL, SIGKILL, SIGSEGV};

use crate::heap;
use crate::memory::Memory;
use crate::message;

/// The end of the process of a question.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum ChildEnd {
    /// By itself, with an exit status. It has printed its own messages.
    Exited(u8),
    /// The process reached its memory limit.
    OutOfMemory,
    /// By a signal that ends commands.
    Stopped(i32),
    /// By another signal.
    Killed(i32),
}

impl ChildEnd {
    /// `stopping` is the signal by which it was asked to end.
    pub(crate) fn new(status: process::ExitStatus, stopping: Option<i32>) -> ChildEnd {
        match (status.code(), status.signal(), stopping) {
            (Some(code), _, _) if code == i32::from(heap::OVER) => ChildEnd::OutOfMemory,
            (Some(code), _, _) => ChildEnd::Exited(u8::try_from(code).unwrap_or(1)),
            (None, Some(_), Some(signal)) => ChildEnd::Stopped(signal),
            (None, Some(signal), None) if ppt_signals::STOPS.contains(&signal) => {
                ChildEnd::Stopped(signal)
            }
            (None, signal, _) => ChildEnd::Killed(signal.unwrap_or_default()),
        }
    }

    /// Whether the process could not tidy up.
    pub(crate) fn is_violent(self) -> bool {
        !matches!(self, ChildEnd::Exited(_))
    }

    /// Prints why it ended, and returns the exit status.
    pub(crate) fn report(self, memory: Memory) -> ExitStatus {
        self.print(memory);
        match self {
            ChildEnd::Exited(status) => ExitStatus(status),
            ChildEnd::Stopped(signal) => ppt_signals::end_by(signal),
            ChildEnd::OutOfMemory | ChildEnd::Killed(_) => ExitStatus::FAILED,
        }
    }

    /// Prints why it ended, unless the process has done so.
    pub(crate) fn print(self, memory: Memory) {
        if self.is_violent() {
            message::StatusLine::shown().clear();
        }
        match self {
            ChildEnd::Exited(_) | ChildEnd::Stopped(_) => {}
            ChildEnd::OutOfMemory => message::error("query-memory", memory.exceeded()),
            ChildEnd::Killed(SIGKILL) => message::error(
                "question-killed",
                "something killed the question (SIGKILL); if the machine or the container has no memory \
                 left, the kernel does",
            ),
            ChildEnd::Killed(signal) if [SIGSEGV, SIGABRT, SIGBUS, SIGILL].contains(&signal) => {
                let text = format_args!(
                    "a bug ended the question (signal {signal}): please report it, with the command line"
                );
                message::error("bug", text);
            }
            ChildEnd::Killed(signal) => {
                let text = format_args!("something killed the question (signal {signal})");
                message::error("question-killed", text);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_end_is_told_from_its_status() {
        let exited = |code: i32| process::ExitStatus::from_raw(code << 8);
        let killed = process::ExitStatus::from_raw;
        assert_eq!(ChildEnd::new(exited(0), None), ChildEnd::Exited(0));
        assert_eq!(ChildEnd::new(exited(2), Some(2)), ChildEnd::Exited(2));
        assert_eq!(ChildEnd::new(exited(113), None), ChildEnd::OutOfMemory);
        assert_eq!(ChildEnd::new(killed(9), None), ChildEnd::Killed(9));
        assert_eq!(ChildEnd::new(killed(9), Some(15)), ChildEnd::Stopped(15));
        assert_eq!(ChildEnd::new(killed(2), None), ChildEnd::Stopped(2));
        assert_eq!(ChildEnd::new(killed(11), None), ChildEnd::Killed(11));
    }
}
