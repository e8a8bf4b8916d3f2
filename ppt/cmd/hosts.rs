//! `ppt lab` and `ppt sync`: commands about several hosts.

use ppt_lab::HostsCommand;

use crate::failure::CommandResult;
use crate::privileges;

pub(crate) fn run(command: &HostsCommand) -> CommandResult {
    // `ppt lab` isolates programs, which root alone may.
    if matches!(command, HostsCommand::Sync(_)) {
        privileges::step_down()?;
    }
    Ok(ppt_lab::run(command, cfg!(feature = "answers"))?)
}
