//! `ppt completion SHELL`: prints the script that completes the arguments of `ppt`.

use ppt_text::exit::ExitStatus;

use crate::args;
use crate::complete;
use crate::failure::{CommandResult, Failure};
use crate::stdout;

pub(crate) fn run(args: &args::Completion) -> CommandResult {
    stdout::by(|out| complete::script(args.shell, out)).map_err(Failure::stdout)?;
    Ok(ExitStatus::DONE)
}
