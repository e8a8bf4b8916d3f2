//! `ppt detach PID`: off, for sure.

use std::process::ExitCode;

use ppt_agent::{AgentError, Detached, System, Target};

use crate::args;
use crate::cmd::attach::allowed;
use crate::{exit, report};

pub(crate) fn run(args: &args::Detach) -> ExitCode {
    match detach(args) {
        Ok(()) => exit::DONE,
        Err(error @ AgentError::NoSuchBuffer { .. }) => {
            report::error(error);
            exit::usage()
        }
        Err(error) => {
            report::error(error);
            exit::FAILED
        }
    }
}

fn detach(args: &args::Detach) -> Result<(), AgentError> {
    let target = Target::open(&System::default(), args.process.pid())?;
    let found = target.buffers()?;
    for buffer in target.choose(found, &args.buffers)? {
        let name = &buffer.name;
        match ppt_agent::detach(&target, &buffer, allowed(&args.allow))? {
            Detached::WasOff => report::line(format_args!("{name}: nobody was attached")),
            Detached::Asked(holder) => {
                report::line(format_args!("{name}: switched off; {holder} ends its capture"));
            }
            Detached::Cleared(None) => report::line(format_args!("{name}: switched off")),
            Detached::Cleared(Some(holder)) => report::line(format_args!(
                "{name}: switched off, and cleared what {holder} left when it died"
            )),
        }
    }
    Ok(())
}
