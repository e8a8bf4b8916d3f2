//! Exit codes of all commands.

use std::process::ExitCode;

/// The status of a command.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ExitStatus(pub u8);

impl ExitStatus {
    /// The command succeeded.
    pub const DONE: Self = Self(0);
    /// An error occurred; stderr describes it.
    pub const FAILED: Self = Self(1);
    /// The command line asks for something that does not exist.
    pub const USAGE: Self = Self(2);
    /// A comparison can neither show a change nor rule one out.
    pub const NOT_JUDGED: Self = Self(3);
    /// `ppt run` itself failed; its command did not.
    pub const RUN_FAILED: Self = Self(125);

    /// Ended by a signal; the status follows the shell's convention.
    pub fn of_signal(signal: i32) -> Self {
        Self(u8::try_from(signal).map_or(u8::MAX, |signal| signal.saturating_add(128)))
    }

    /// Success if `ok`.
    pub fn from_success(ok: bool) -> Self {
        if ok { Self::DONE } else { Self::FAILED }
    }

    /// The status of a failure. `is_usage`: the command line was wrong.
    pub fn of_failure(is_usage: bool) -> Self {
        if is_usage { Self::USAGE } else { Self::FAILED }
    }
}

impl From<ExitStatus> for ExitCode {
    fn from(status: ExitStatus) -> Self {
        Self::from(status.0)
    }
}
