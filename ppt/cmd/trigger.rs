//! `ppt trigger PID`: has a flight recorder write a window now.
//!
//! ```text
//! $ ppt trigger 4711 --note "the page was slow"
//! process 4711: ppt with pid 4720 writes a window into /var/tmp/flight
//! ```

use ppt_text::escaped;

use crate::args;
use crate::code::Code;
use crate::exit::ExitStatus;
use crate::failure::{Failure, Outcome};
use crate::report;
use crate::session::{self, Ask, Session};

pub(crate) fn run(args: &args::Trigger) -> Outcome {
    let pid = args.pid();
    let sessions = session::sessions();
    let has = |it: &&Session| it.answer.processes.iter().any(|one| one.pid == pid);
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
    let why = match refusals.is_empty() {
        true => there_is(&sessions),
        false => refusals.join("\n  "),
    };
    let message = format!("no flight recorder has process {pid}\n  {why}");
    Err(Failure::failed(Code::NothingToTrigger, message))
}

/// What there is instead.
fn there_is(sessions: &[Session]) -> String {
    let recorded = sessions.iter().filter(|it| it.answer.flight.is_some());
    let mut there: Vec<String> = recorded
        .flat_map(|it| &it.answer.processes)
        .map(|it| format!("{} ({})", it.pid, escaped(&it.program)))
        .collect();
    there.sort();
    there.dedup();
    match there.is_empty() {
        true => {
            "you have no flight recorder; `ppt attach PID --flight 30s -o FOLDER` starts one".into()
        }
        false => format!("flight recorders of yours have: {}", there.join(", ")),
    }
}
