//! Exit codes: the same for both binaries.

use std::process::ExitCode;

/// Done.
pub(crate) const DONE: ExitCode = ExitCode::SUCCESS;

/// Something went wrong; stderr says what.
pub(crate) const FAILED: ExitCode = ExitCode::FAILURE;

/// `ppt run` failed, not its command.
#[allow(dead_code, reason = "pptc runs nothing")]
pub(crate) fn run_failed() -> ExitCode {
    ExitCode::from(125)
}

/// The command line asks for something that is not there.
#[allow(dead_code, reason = "clap exits with 2 by itself; pptc has no other use of it")]
pub(crate) fn usage() -> ExitCode {
    ExitCode::from(2)
}
