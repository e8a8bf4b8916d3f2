//! The commands that answer questions about captures. The libraries do the work, in a process that can
//! neither trace nor write into another one: captures may come from anybody.

use std::ffi::OsString;
use std::os::unix::process::CommandExt;
use std::path::Path;
use std::process::Command;

use nix::sys::signal::SigSet;
use ppt_analysis::{Question, TopOptions, ViewArgs};

use crate::code::Code;
use crate::failure::{CommandResult, Failure};
use crate::privileges;

/// Answers a question.
pub(crate) fn ask(question: &Question) -> CommandResult {
    privileges::step_down()?;
    Ok(ppt_analysis::ask(question)?)
}

/// Shows what happens in a capture while it is written.
pub(crate) fn top(capture: &Path, options: &TopOptions) -> CommandResult {
    privileges::step_down()?;
    Ok(ppt_analysis::top(capture, options)?)
}

/// Shows captures in a browser.
pub(crate) fn view(args: &ViewArgs) -> CommandResult {
    privileges::step_down()?;
    Ok(ppt_analysis::view(args)?)
}

/// Replaces this process, which may have threads and has captured, by a `ppt` with these arguments.
pub(crate) fn become_answer(words: &[OsString]) -> CommandResult {
    privileges::step_down()?;
    // While it captured, it waited for signals.
    let _ = SigSet::empty().thread_set_mask();
    let error = Command::new("/proc/self/exe").arg0("ppt").args(words).exec();
    Err(Failure::failed(Code::CannotRun, format!("cannot run ppt again: {error}")))
}
