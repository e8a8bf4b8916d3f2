//! `ppt view PID`: a timeline of a process while it runs.
//!
//! ppt attaches and writes a capture, as `ppt attach` does. `ppt-analysis view` follows that file without any
//! privileges. Ctrl-C ends both, and the capture stays. If a ppt captures the process already, its capture is
//! shown instead, and goes on.

use std::ffi::OsString;
use std::path::Path;

use nix::sys::signal::SigSet;
use ppt_text::escaped;

use crate::args::ProcessView;
use crate::cmd::{attach, other};
use crate::exit::ExitStatus;
use crate::failure::CommandResult;
use crate::viewer::Viewer;
use crate::{report, session, usage};

/// Shows a process, or has captures shown.
pub(crate) fn run(words: &[OsString]) -> CommandResult {
    match ProcessView::asked(words) {
        Ok(Some(process)) => show(&process),
        Ok(None) => {
            // The `ppt view PID` that starts this one has blocked signals, because it waits for them.
            let _ = SigSet::empty().thread_set_mask();
            other::ask(words)
        }
        Err(error) => {
            usage::print(&error);
            Ok(ExitStatus::USAGE)
        }
    }
}

/// Shows a process.
fn show(view: &ProcessView) -> CommandResult {
    let pid = view.pid;
    if let Some((ppt, output)) = captured(pid) {
        let own = if view.is_particular() {
            ", as it was told: -o, -b, --kernel, --stacks and --allow change nothing"
        } else {
            ""
        };
        let name = escaped(&output);
        report::note(format_args!(
            "process {pid} is captured into {name} by ppt with pid {ppt}{own}"
        ));
        let mut words: Vec<OsString> = vec!["view".into(), output.into()];
        words.extend(view.of_view());
        return other::ask(&words);
    }
    // Nobody is attached to for a view that cannot be had.
    if !other::can_ask() {
        return other::ask(&["view".into()]);
    }
    let args = view.attach();
    let mut shown = Viewer::new(args.capture.output.as_os_str().into(), view.of_view());
    let captured = attach::capture(&args, Some(&mut shown))?;
    Ok(if captured == ExitStatus::DONE { shown.status } else { captured })
}

/// The capture that a ppt writes of a process, and the pid of that ppt.
fn captured(pid: i32) -> Option<(u32, String)> {
    let sessions = session::sessions();
    let has =
        |server: &&session::SessionServer| server.answer.processes.iter().any(|one| one.pid == pid);
    let there = |server: &session::SessionServer| {
        let output =
            server.answer.output.clone().filter(|output| Path::new(output).is_absolute())?;
        Some((server.answer.ppt, output))
    };
    sessions.iter().filter(has).find_map(there)
}
