//! `ppt view`: a timeline of captures, or of a process while it runs.
//!
//! ppt attaches to the process and writes a capture, as `ppt attach` does. Another `ppt view`, without any
//! privileges, follows that file. Ctrl-C ends both, and the capture stays. If a ppt captures the process
//! already, `ppt view` shows that capture, which continues.

use std::path::Path;

use clap::error::ErrorKind;
use nix::sys::signal::SigSet;
use ppt_text::escaped;
use ppt_text::exit::ExitStatus;

use crate::args::View;
use crate::cmd::attach;
use crate::failure::CommandResult;
use crate::viewer::Viewer;
use crate::{answers, help, report, session};

pub(crate) fn run(mut args: View) -> CommandResult {
    if let Some(pid) = args.shown.process() {
        let Some((ppt, output)) = captured(pid) else { return show(&args, pid) };
        let own = if args.has_capture_options() {
            ", with its own options: -o, -b, --kernel, --stacks and --allow change nothing"
        } else {
            ""
        };
        let name = escaped(&output);
        report::note(format_args!(
            "process {pid} is captured into {name} by ppt with pid {ppt}{own}"
        ));
        args.shown.show(output.into());
    } else if args.has_capture_options() && !args.shown.is_written() {
        let text =
            "-o, -b, --kernel, --stacks and --allow are for a process, alone: `ppt view PID`";
        return Ok(help::wrong("view", ErrorKind::ArgumentConflict, text));
    }
    // The `ppt view PID` that starts this one has blocked signals, because it waits for them.
    let _ = SigSet::empty().thread_set_mask();
    answers::view(&args.shown)
}

/// Shows a process.
fn show(args: &View, pid: i32) -> CommandResult {
    let args = args.attach(pid);
    let mut shown = Viewer::new(&args.capture.output);
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
