//! `ppt enable PID NAME…` and `ppt disable PID NAME…`: change what a session has a program write.
//!
//! ```text
//! $ ppt disable 4711 'net.*'
//! process 4711: ppt with pid 4720 no longer writes shop.login, shop.bytes_in
//! ```

use ppt_text::escaped;
use ppt_text::exit::ExitStatus;

use crate::args;
use crate::code::Code;
use crate::failure::{CommandResult, Failure};
use crate::report;
use crate::session::{self, Ask, SessionServer};

pub(crate) fn run(args: &args::Choose, enabled: bool) -> CommandResult {
    let (pid, names) = args.process_and_names();
    let sessions = session::sessions();
    let has = |server: &&SessionServer| server.answer.has(pid);
    let ask = || {
        if enabled {
            Ask::Enable { pid, names: names.clone() }
        } else {
            Ask::Disable { pid, names: names.clone() }
        }
    };
    let (mut done, mut refusals, mut code) = (false, Vec::new(), Code::NoSession);
    for session in sessions.iter().filter(has) {
        let ppt = session.answer.ppt;
        match session.ask(ask()) {
            Ok(answer) if answer.ok => {
                done = true;
                let changed = answer.changed.join(", ");
                let change = match (changed.is_empty(), enabled) {
                    (true, true) => "writes all of that already".into(),
                    (true, false) => "writes none of that already".into(),
                    (false, true) => format!("writes {changed} from now on"),
                    (false, false) => format!("no longer writes {changed}"),
                };
                report::line(format_args!("process {pid}: ppt with pid {ppt} {change}"));
            }
            Ok(answer) if answer.experiment => {
                code = Code::ExperimentRuns;
                let why = answer.error;
                refusals
                    .push(format!("ppt with pid {ppt} runs an experiment (whatif --live): {why}"));
            }
            Ok(answer) => {
                code = Code::NothingCalled;
                refusals.push(answer.error);
            }
            Err(error) => refusals.push(format!("ppt with pid {ppt} does not answer: {error}")),
        }
    }
    if done {
        return Ok(ExitStatus::DONE);
    }
    if refusals.is_empty() {
        Err(Failure::failed(Code::NoSession, no_session(pid, &sessions)))
    } else {
        Err(Failure::failed(code, refusals.join("\n")))
    }
}

/// The message that no session captures the process, with the processes that are captured.
fn no_session(pid: i32, sessions: &[SessionServer]) -> String {
    let processes = sessions.iter().flat_map(|session| &session.answer.processes);
    let mut captured: Vec<String> = processes
        .map(|process| format!("{} ({})", process.pid, escaped(&process.program)))
        .collect();
    captured.sort();
    captured.dedup();
    let instead = if captured.is_empty() {
        format!("`ppt attach {pid}` begins to")
    } else {
        format!("yours capture: {}", captured.join(", "))
    };
    format!("no ppt of yours captures process {pid}\n  {instead}")
}
