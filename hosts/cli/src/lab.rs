//! `ppt lab`: experiments over several hosts.

mod progress;
mod text;

use std::io::{Write, stdout};

use ppt_hosts::lab::{self, DifferenceKind, LabOptions, SelfStart, Summary};
use ppt_output::Invoker;
use ppt_text::exit::ExitStatus;
use ppt_text::message;

use crate::args::{Lab, LabCommand, LabRun};
use crate::error::HostsError;
use progress::ProgressMessages;

pub(crate) fn run(args: &Lab, answers: bool) -> Result<ExitStatus, HostsError> {
    match &args.command {
        LabCommand::Plan { file } => {
            let plan = lab::plan(file).map_err(HostsError::lab)?;
            print(&text::plan(&plan))
        }
        LabCommand::Run { file, how } => {
            ppt_signals::end_work();
            let outcome = lab::run(file, &options(how, answers)?, &mut ProgressMessages::default());
            ended(&outcome.map_err(HostsError::lab)?)
        }
        LabCommand::Rerun { folder, how } => {
            ppt_signals::end_work();
            let outcome =
                lab::rerun(folder, &options(how, answers)?, &mut ProgressMessages::default());
            ended(&outcome.map_err(HostsError::lab)?)
        }
        LabCommand::Diff { a, b } => {
            let differences = lab::diff(a, b).map_err(HostsError::lab)?;
            print(&text::differences(&differences))?;
            let differs =
                differences.iter().any(|difference| difference.kind != DifferenceKind::Content);
            Ok(ExitStatus::from_success(!differs))
        }
        LabCommand::Host { arguments } => {
            lab::host(&self_start()?, arguments).map_err(HostsError::no_lab)
        }
    }
}

/// Prints how many cells passed.
fn ended(summary: &Summary) -> Result<ExitStatus, HostsError> {
    let folder = summary.folder.display();
    if summary.interrupted {
        message::note(format_args!("interrupted; what ran until then is there: {folder}"));
        return Ok(ppt_signals::interrupted());
    }
    if summary.failed > 0 {
        let text = format!("{} of {} cells failed: {folder}", summary.failed, summary.cells);
        return Err(HostsError::lab_failed(text));
    }
    match summary.cells {
        1 => message::note(format_args!("the cell passed: {folder}")),
        cells => message::note(format_args!("all {cells} cells passed: {folder}")),
    }
    if summary.reported {
        Ok(ExitStatus::DONE)
    } else {
        Err(HostsError::lab_failed(format!("there is no report: {folder}")))
    }
}

fn options(how: &LabRun, answers: bool) -> Result<LabOptions, HostsError> {
    let own = self_start()?;
    Ok(LabOptions {
        ppt: own.program.clone(),
        answers: answers.then(|| own.program.clone()),
        own,
        ssh: std::iter::once("ssh".into()).chain(how.ssh.iter().cloned()).collect(),
        invoker: invoker(),
        folder: how.output.clone(),
    })
}

/// The user who called sudo.
fn invoker() -> Option<Invoker> {
    let number = |name| std::env::var(name).ok()?.parse().ok();
    Some(Invoker { uid: number("SUDO_UID")?, gid: number("SUDO_GID") })
}

/// The command by which this program starts itself on a host.
fn self_start() -> Result<SelfStart, HostsError> {
    let program = std::env::current_exe();
    let program = program.map_err(|error| HostsError::System("find this program", error))?;
    Ok(SelfStart { program, words: vec!["lab".into(), "host".into()] })
}

fn print(text: &str) -> Result<ExitStatus, HostsError> {
    stdout()
        .write_all(text.as_bytes())
        .map_err(|error| HostsError::Write("stdout".to_owned(), error))?;
    Ok(ExitStatus::DONE)
}
