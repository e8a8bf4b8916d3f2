//! Exit codes of ppt and pptc. (`analysis/cli/src/failure.rs` and `hosts/cli/src/failure.rs` have those of ppt-analysis and ppt-lab.)

use std::process::ExitCode;

/// The status of a command.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct ExitStatus(pub(crate) u8);

impl ExitStatus {
    /// The command succeeded.
    pub(crate) const DONE: Self = Self(0);
    /// An error occurred; stderr describes it.
    pub(crate) const FAILED: Self = Self(1);
    /// The command line asks for something that does not exist.
    #[allow(dead_code, reason = "in pptc, only clap exits with 2")]
    pub(crate) const USAGE: Self = Self(2);
    /// `ppt run` itself failed; its command did not.
    #[allow(dead_code, reason = "pptc runs nothing")]
    pub(crate) const RUN_FAILED: Self = Self(125);

    /// Ended by a signal; the status follows the shell's convention.
    #[allow(dead_code, reason = "pptc leaves signals alone")]
    pub(crate) fn of_signal(signal: nix::sys::signal::Signal) -> Self {
        Self(128 + signal as u8)
    }

    /// Success if `ok`.
    pub(crate) fn from_success(ok: bool) -> Self {
        if ok { Self::DONE } else { Self::FAILED }
    }
}

impl From<ExitStatus> for ExitCode {
    fn from(status: ExitStatus) -> Self {
        Self::from(status.0)
    }
}
