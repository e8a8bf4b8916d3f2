//! `ppt lab`: experiments over several hosts.

mod progress;
mod text;

use std::io::{Write, stdout};

use ppt_hosts::lab::{self, DifferenceKind, LabOptions, SelfStart, Summary};
use ppt_output::Invoker;
use ppt_text::message;

use crate::args::{Lab, LabCommand, LabRun};
use crate::failure::LabFailure;
use crate::signals;
use ppt_text::exit::ExitStatus;
use progress::ProgressMessages;

pub(crate) fn run(args: &Lab, answers: bool) -> Result<ExitStatus, LabFailure> {
    match &args.command {
        LabCommand::Plan { file } => {
            let plan = lab::plan(file).map_err(LabFailure::lab)?;
            print(&text::plan(&plan))
        }
        LabCommand::Run { file, how } => {
            signals::end_the_work();
            let outcome = lab::run(file, &options(how, answers)?, &mut ProgressMessages::default());
            ended(&outcome.map_err(LabFailure::lab)?)
        }
        LabCommand::Rerun { folder, how } => {
            signals::end_the_work();
            let outcome =
                lab::rerun(folder, &options(how, answers)?, &mut ProgressMessages::default());
            ended(&outcome.map_err(LabFailure::lab)?)
        }
        LabCommand::Diff { a, b } => {
            let differences = lab::diff(a, b).map_err(LabFailure::lab)?;
            print(&text::differences(&differences))?;
            let differs =
                differences.iter().any(|difference| difference.kind != DifferenceKind::Content);
            Ok(ExitStatus::from_success(!differs))
        }
        LabCommand::Host { arguments } => {
            lab::host(&self_start()?, arguments).map_err(LabFailure::no_lab)
        }
    }
}

/// Prints how many cells passed.
fn ended(summary: &Summary) -> Result<ExitStatus, LabFailure> {
    let folder = summary.folder.display();
    if summary.interrupted {
        message::note(format_args!("interrupted; what ran until then is there: {folder}"));
        return Ok(signals::interrupted());
    }
    if summary.failed > 0 {
        let text = format!("{} of {} cells failed: {folder}", summary.failed, summary.cells);
        return Err(LabFailure::lab_failed(text));
    }
    match summary.cells {
        1 => message::note(format_args!("the cell passed: {folder}")),
        cells => message::note(format_args!("all {cells} cells passed: {folder}")),
    }
    if summary.reported {
        Ok(ExitStatus::DONE)
    } else {
        Err(LabFailure::lab_failed(format!("there is no report: {folder}")))
    }
}

fn options(how: &LabRun, answers: bool) -> Result<LabOptions, LabFailure> {
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
fn self_start() -> Result<SelfStart, LabFailure> {
    let program = std::env::current_exe();
    let program = program.map_err(|error| LabFailure::System("find this program", error))?;
    Ok(SelfStart { program, words: vec!["lab".into(), "host".into()] })
}

fn print(text: &str) -> Result<ExitStatus, LabFailure> {
    stdout()
        .write_all(text.as_bytes())
        .map_err(|error| LabFailure::Write("stdout".to_owned(), error))?;
    Ok(ExitStatus::DONE)
}
