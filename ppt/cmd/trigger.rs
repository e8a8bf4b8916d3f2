//! `ppt trigger PID`: makes a flight recorder write a window now.
//!
//! ```text
//! $ ppt trigger 4711 --note "the page was slow"
//! process 4711: ppt with pid 4720 writes a window into /var/tmp/flight
//! ```

use ppt_text::escaped;
use ppt_text::exit::ExitStatus;

use crate::args;
use crate::code::Code;
use crate::failure::{CommandResult, Failure};
use crate::report;
use crate::session::{self, Ask, SessionServer};

pub(crate) fn run(args: &args::Trigger) -> CommandResult {
    let pid = args.pid();
    let sessions = session::sessions();
    let has = |server: &&SessionServer| server.answer.has(pid);
    let (mut triggered, mut refusals) = (false, Vec::new());
    for session in sessions.iter().filter(has) {
        let ppt = session.answer.ppt;
        let Some(flight) = &session.answer.flight else { continue };
        match session.ask(Ask::Trigger { pid, note: args.note.clone() }) {
            Ok(answer) if answer.ok => {
                triggered = true;
                report::line(format_args!(
                    "process {pid}: ppt with pid {ppt} writes a window into {}",
                    flight.folder
                ));
            }
            Ok(answer) => refusals.push(format!("ppt with pid {ppt}: {}", answer.error)),
            Err(_) => refusals.push(format!("ppt with pid {ppt} has just ended")),
        }
    }
    if triggered {
        return Ok(ExitStatus::DONE);
    }
    let why = if refusals.is_empty() { recorded(&sessions) } else { refusals.join("\n  ") };
    let message = format!("no flight recorder has process {pid}\n  {why}");
    Err(Failure::failed(Code::NothingToTrigger, message))
}

/// The processes that flight recorders have, as advice.
fn recorded(sessions: &[SessionServer]) -> String {
    let recorders = sessions.iter().filter(|session| session.answer.flight.is_some());
    let mut recorded: Vec<String> = recorders
        .flat_map(|server| &server.answer.processes)
        .map(|captured| format!("{} ({})", captured.pid, escaped(&captured.program)))
        .collect();
    recorded.sort();
    recorded.dedup();
    if recorded.is_empty() {
        "you have no flight recorder; `ppt attach PID --flight 30s -o FOLDER` starts one".into()
    } else {
        format!("flight recorders of yours have: {}", recorded.join(", "))
    }
}
