//! `ppt read-foreign`: the process that ppt starts to read what may be on a file system that never answers.

use std::os::unix::process::CommandExt;
use std::process::Command;

use ppt_foreign::Unanswered;
use ppt_text::escaped;
use ppt_text::exit::ExitStatus;

use crate::code::Code;
use crate::report;

/// Starts this command.
pub(crate) fn command() -> Command {
    let mut command = Command::new("/proc/self/exe");
    command.arg0("ppt").arg("read-foreign");
    command
}

pub(crate) fn run() -> ExitStatus {
    // ps(1) would otherwise show the name `exe`.
    let _ = nix::sys::prctl::set_name(c"ppt-read");
    ppt_foreign::serve();
    ExitStatus::DONE
}

/// Reports the file systems that have not answered since the last call, if any, after `clear`.
pub(crate) fn report_unanswered(clear: impl FnOnce()) {
    let unanswered = ppt_foreign::unanswered();
    if !unanswered.is_empty() {
        clear();
    }
    for Unanswered { subject, mount, asked } in unanswered {
        let (pid, path) = (subject.pid, escaped(&subject.path));
        let mount =
            mount.map(|(kind, point)| format!(" ({} at {})", escaped(&kind), escaped(&point)));
        let mount = mount.unwrap_or_default();
        let why = if asked {
            format!("does not answer{mount}")
        } else {
            format!("was not asked{mount}, because others take too long to answer")
        };
        let message = format!(
            "process {pid} has mapped {path}, whose file system {why}; buffers, functions and probes in files of it \
             may be missing"
        );
        report::warning(Code::NoAnswer, message);
    }
}
