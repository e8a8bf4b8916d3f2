//! `ppt view PID`: a timeline of a process while it runs.
//!
//! ppt attaches and writes a capture, as `ppt attach` does. `ppt-analysis view` follows that file without any
//! privileges. Ctrl-C ends both, and the capture stays. If a ppt captures the process already, `ppt view`
//! shows that capture, which continues.

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

/// Shows a process. For captures, runs `ppt-analysis`.
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
        let own = if view.has_capture_options() {
            ", with its own options: -o, -b, --kernel, --stacks and --allow change nothing"
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
    // Without ppt-analysis there is no view, so ppt does not attach.
    if !other::can_ask() {
        return other::ask(&["view".into()]);
    }
    let args = view.attach();
    let mut shown = Viewer::new(args.capture.output.as_os_str().into(), view.of_view());
    let captured = attach::capture(&args, Some(&mut shown))?;
    Ok(if captured == ExitStatus::DONE { shown.status } else { captured })
}

/// The pid of a ppt that captures a process, and the path of its capture.
fn captured(pid: i32) -> Option<(u32, String)> {
    let sessions = session::sessions();
    let path = |server: &session::SessionServer| {
        let output =
            server.answer.output.clone().filter(|output| Path::new(output).is_absolute())?;
        Some((server.answer.ppt, output))
    };
    sessions.iter().filter(|server| server.answer.has(pid)).find_map(path)
}
