//! Progress of an experiment.

use ppt_hosts::lab::{Basis, LabEvent, Progress};
use ppt_text::duration;
use ppt_text::message::{self, StatusLine};

/// Writes progress to stderr: phases in one line that is rewritten, everything else line by line.
#[derive(Default)]
pub(super) struct ProgressMessages {
    status: StatusLine,
    /// The running cell: its number, the number of cells, and its key.
    cell: String,
}

impl Progress for ProgressMessages {
    fn report(&mut self, event: &LabEvent<'_>) {
        if let LabEvent::Phase(name) = event {
            return self.status.show(format_args!("ppt: {}: {name}", self.cell));
        }
        self.status.clear();
        match event {
            LabEvent::Folder(path) => message::note(format_args!("results: {}", path.display())),
            LabEvent::Host { name, facts } => message::note(format_args!(
                "host {name}: Linux {}, {}, {} CPUs",
                facts.kernel, facts.cpu, facts.cpus
            )),
            LabEvent::Instant(Basis::Realtime) => message::note(
                "hosts have clocks of their own: without a phase that measures them, phases begin by \
                 CLOCK_REALTIME of each",
            ),
            LabEvent::Differs { program, hosts } => {
                let mut text = format!("{program} is not the same file everywhere:");
                for (host, sha256) in *hosts {
                    let short = sha256.get(..12).unwrap_or(sha256);
                    text.push_str(&format!("\n  host {host}: sha256 {short}…"));
                }
                message::warning("lab-programs", text);
            }
            LabEvent::Changed { program, host } => message::warning(
                "lab-programs",
                format_args!("{program} of host {host} is not what it was when this ran first"),
            ),
            LabEvent::Cell { number, of, key, attempt } => {
                self.cell = format!("cell {number} of {of}, {key}");
                if *attempt > 1 {
                    self.cell.push_str(&format!(", attempt {attempt}"));
                }
            }
            LabEvent::Unmatched { host, pattern } => message::warning(
                "lab-collect",
                format_args!("{}: host {host} has no file {pattern}", self.cell),
            ),
            LabEvent::LeftOut { host, name } => message::warning(
                "lab-collect",
                format_args!(
                    "{}: {name} of host {host} is no plain file: it was not fetched",
                    self.cell
                ),
            ),
            LabEvent::Printed { host, phase, left_out } => message::warning(
                "lab-output",
                format_args!(
                    "{}: the program of phase {phase} on host {host} printed more than 64 MiB: \
                     {left_out} bytes are left out",
                    self.cell
                ),
            ),
            LabEvent::Passed { took, .. } => {
                let took = duration(took.as_nanos() as f64);
                message::note(format_args!("{}: passed, {took}", self.cell));
            }
            LabEvent::Failed { failure, again, .. } => {
                let again = if *again { "; it is tried again" } else { "" };
                let text = format_args!("{}: failed{again}: {failure}", self.cell);
                message::error("lab-failed", text);
            }
            LabEvent::NoReport(why) => {
                message::error("lab-failed", format_args!("no report could be made: {why}"));
            }
            _ => {}
        }
    }

    fn is_interrupted(&self) -> bool {
        ppt_signals::came()
    }
}
