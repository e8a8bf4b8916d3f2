//! `ppt enable PID NAME…` and `ppt disable PID NAME…`: change what a session has a program write.
//!
//! ```text
//! $ ppt disable 4711 'net.*'
//! process 4711: ppt with pid 4720 no longer writes shop.login, shop.bytes_in
//! ```

use ppt_text::escaped;

use crate::args;
use crate::code::Code;
use crate::exit::ExitStatus;
use crate::failure::{Failure, Outcome};
use crate::report;
use crate::session::{self, Ask, Session};

pub(crate) fn run(args: &args::Choose, enabled: bool) -> Outcome {
    let (pid, names) = args.of();
    let sessions = session::sessions();
    let has = |it: &&Session| it.answer.processes.iter().any(|one| one.pid == pid);
    let ask = || match enabled {
        true => Ask::Enable { pid, names: names.clone() },
        false => Ask::Disable { pid, names: names.clone() },
    };
    let (mut done, mut refusals, mut code) = (false, Vec::new(), Code::NoSession);
    for session in sessions.iter().filter(has) {
        let ppt = session.answer.ppt;
        match session.ask(ask()) {
            Ok(answer) if answer.ok => {
                done = true;
                let changed = answer.changed.join(", ");
                let what = match (changed.is_empty(), enabled) {
                    (true, true) => "writes all of that already".into(),
                    (true, false) => "writes none of that already".into(),
                    (false, true) => format!("writes {changed} from now on"),
                    (false, false) => format!("no longer writes {changed}"),
                };
                report::line(format_args!("process {pid}: ppt with pid {ppt} {what}"));
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
    match refusals.is_empty() {
        true => Err(Failure::failed(Code::NoSession, nobody(pid, &sessions))),
        false => Err(Failure::failed(code, refusals.join("\n"))),
    }
}

/// What there is instead of a session that has the process.
fn nobody(pid: i32, sessions: &[Session]) -> String {
    let processes = sessions.iter().flat_map(|it| &it.answer.processes);
    let mut there: Vec<String> =
        processes.map(|it| format!("{} ({})", it.pid, escaped(&it.program))).collect();
    there.sort();
    there.dedup();
    let instead = match there.is_empty() {
        true => format!("`ppt attach {pid}` begins to"),
        false => format!("yours capture: {}", there.join(", ")),
    };
    format!("no ppt of yours captures process {pid}\n  {instead}")
}
