//! `ppt detach PID`: switches buffers off, also those that a killed ppt left on.

use ppt_agent::{AgentError, Detached};
use ppt_text::exit::ExitStatus;

use crate::args::{self, ProcessChoice};
use crate::cmd::select::{self, Chosen};
use crate::failure::{CommandResult, Failure};
use crate::live::allowed;
use crate::{report, weights};

pub(crate) fn run(args: &args::Detach) -> CommandResult {
    let which = args.processes.choice();
    let mut refused = Vec::new();
    for Chosen { target, buffers } in select::processes(which, &args.buffers, false)? {
        let prefix = match which {
            ProcessChoice::All => format!("process {}: ", target.pid()),
            _ => String::new(),
        };
        // A failure does not keep ppt from switching off the other buffers.
        match detach_one(args, &prefix, &Chosen { target, buffers }) {
            Err(error) if matches!(which, ProcessChoice::All) => refused.push(error),
            result => result?,
        }
    }
    if refused.is_empty() { Ok(ExitStatus::DONE) } else { Err(Failure::all(&refused)) }
}

fn detach_one(
    args: &args::Detach,
    prefix: &str,
    Chosen { target, buffers }: &Chosen,
) -> Result<(), AgentError> {
    for buffer in buffers {
        let name = format!("{prefix}{}", buffer.name);
        match ppt_agent::detach(target, buffer, allowed(&args.allow))? {
            Detached::WasOff => report::line(format_args!("{name}: nobody was attached")),
            Detached::Asked(holder) => {
                report::line(format_args!("{name}: switched off; {holder} ends its capture"));
            }
            Detached::Cleared(None) => report::line(format_args!("{name}: switched off")),
            Detached::Cleared(Some(holder)) => {
                report::line(format_args!(
                    "{name}: switched off, and cleared what {holder} left when it died"
                ));
                weights::restore_left(target.pid());
            }
        }
    }
    Ok(())
}
