//! `ppt lab`: experiments over several hosts.

mod progress;
mod text;

use std::ffi::OsStr;
use std::io::{Write, stdout};
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use ppt_hosts::lab::{self, DifferenceKind, LabOptions, SelfStart, Summary};
use ppt_output::Invoker;
use ppt_text::message;

use crate::args::{Lab, LabCommand, LabRun};
use crate::failure::LabFailure;
use crate::signals;
use progress::ProgressMessages;

pub(crate) fn run(args: &Lab) -> Result<ExitCode, LabFailure> {
    match &args.command {
        LabCommand::Plan { file } => {
            let plan = lab::plan(file).map_err(LabFailure::lab)?;
            print(&text::plan(&plan))
        }
        LabCommand::Run { file, how } => {
            signals::end_the_work();
            let outcome = lab::run(file, &options(how)?, &mut ProgressMessages::default());
            ended(&outcome.map_err(LabFailure::lab)?)
        }
        LabCommand::Rerun { folder, how } => {
            signals::end_the_work();
            let outcome = lab::rerun(folder, &options(how)?, &mut ProgressMessages::default());
            ended(&outcome.map_err(LabFailure::lab)?)
        }
        LabCommand::Diff { a, b } => {
            let differences = lab::diff(a, b).map_err(LabFailure::lab)?;
            print(&text::differences(&differences))?;
            let differs =
                differences.iter().any(|difference| difference.kind != DifferenceKind::Content);
            Ok(ExitCode::from(u8::from(differs)))
        }
        LabCommand::Host { arguments } => {
            lab::host(&self_start()?, arguments).map_err(LabFailure::no_lab)
        }
    }
}

/// Prints how many cells passed.
fn ended(summary: &Summary) -> Result<ExitCode, LabFailure> {
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
        Ok(ExitCode::SUCCESS)
    } else {
        Err(LabFailure::lab_failed(format!("there is no report: {folder}")))
    }
}

fn options(how: &LabRun) -> Result<LabOptions, LabFailure> {
    let own = self_start()?;
    let beside = own.program.with_file_name("ppt");
    Ok(LabOptions {
        analysis: analysis(&own.program),
        own,
        ppt: if beside.is_file() { beside } else { PathBuf::from("ppt") },
        ssh: std::iter::once("ssh".into()).chain(how.ssh.iter().cloned()).collect(),
        invoker: invoker(),
        folder: how.output.clone(),
    })
}

/// The program that runs checks: next to this one, or in PATH, which root does not trust.
fn analysis(own: &Path) -> Option<PathBuf> {
    let paths = std::env::var_os("PATH").filter(|_| !is_root());
    find_analysis(own, paths.as_deref())
}

/// Looks next to `own`, then in the folders of `paths`. Skips folders that depend on the current
/// directory, such as an empty entry of PATH.
fn find_analysis(own: &Path, paths: Option<&OsStr>) -> Option<PathBuf> {
    const NAME: &str = "ppt-analysis";
    let folders = paths.into_iter().flat_map(std::env::split_paths);
    let in_path = folders.filter(|folder| folder.is_absolute()).map(|folder| folder.join(NAME));
    let is_program = |path: &PathBuf| {
        path.metadata().is_ok_and(|file| file.is_file() && file.mode() & 0o111 != 0)
    };
    std::iter::once(own.with_file_name(NAME)).chain(in_path).find(is_program)
}

/// Whether this process runs as root.
fn is_root() -> bool {
    std::fs::metadata("/proc/self").is_ok_and(|process| process.uid() == 0)
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

fn print(text: &str) -> Result<ExitCode, LabFailure> {
    stdout()
        .write_all(text.as_bytes())
        .map_err(|error| LabFailure::Write("stdout".to_owned(), error))?;
    Ok(ExitCode::SUCCESS)
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::PermissionsExt;

    use super::*;

    #[test]
    fn checks_are_answered_by_a_program_of_an_absolute_folder() {
        let folder = tempfile::tempdir().unwrap();
        let (own, other) = (folder.path().join("own"), folder.path().join("other"));
        [&own, &other].iter().for_each(|path| std::fs::create_dir(path).unwrap());
        let found = |paths: Option<&OsStr>| find_analysis(&own.join("ppt-lab"), paths);
        let program = other.join("ppt-analysis");
        std::fs::write(&program, "").unwrap();
        assert_eq!(found(Some(other.as_os_str())), None, "it is no program");
        std::fs::set_permissions(&program, PermissionsExt::from_mode(0o755)).unwrap();
        assert_eq!(found(Some(other.as_os_str())), Some(program.clone()));
        assert_eq!(found(None), None, "root's PATH is not asked");
        // The folder in which cargo runs this test, below which `target` is.
        let here = std::env::current_dir().unwrap();
        let up: PathBuf = here.components().skip(1).map(|_| "..").collect();
        let relative = up.join(other.strip_prefix("/").unwrap());
        assert!(relative.join("ppt-analysis").is_file());
        assert_eq!(found(Some(relative.as_os_str())), None, "it depends on the folder");
        assert_eq!(found(Some(OsStr::new(""))), None);
        let beside = own.join("ppt-analysis");
        std::fs::copy(&program, &beside).unwrap();
        assert_eq!(found(Some(other.as_os_str())), Some(beside));
    }
}
