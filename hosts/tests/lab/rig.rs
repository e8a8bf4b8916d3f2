//! Shared by the tests: an experiment in its own folder, and its progress.

use std::fs;
use std::path::{Path, PathBuf};

use libtest_mimic::{Failed, Trial};
use ppt_hosts::lab::{
    self, LabError, LabEvent, LabOptions, Manifest, Progress, SelfStart, Summary,
};

pub(crate) type RigResult = Result<(), Failed>;

pub(crate) fn trial(name: &str, test: fn() -> RigResult) -> Trial {
    Trial::test(name, test)
}

/// This program.
pub(crate) fn own() -> PathBuf {
    std::env::current_exe().unwrap()
}

/// Skips a test that cannot run here.
pub(crate) fn skip(why: &str) -> RigResult {
    eprintln!("skipped: {why}");
    Ok(())
}

pub(crate) fn is_root() -> bool {
    succeeds(&["true"])
}

/// Whether hosts may have networks of their own, which ip joins.
pub(crate) fn has_networks() -> bool {
    succeeds(&["ip", "link"])
}

/// Whether a command succeeds in a namespace, which root makes.
fn succeeds(words: &[&str]) -> bool {
    let mut command = std::process::Command::new("unshare");
    command.arg("--net").args(words).output().is_ok_and(|output| output.status.success())
}

/// An experiment in a folder.
pub(crate) struct Rig {
    pub(crate) folder: tempfile::TempDir,
    pub(crate) options: LabOptions,
    pub(crate) messages: RigMessages,
}

/// The progress of a run, one event per line.
#[derive(Default)]
pub(crate) struct RigMessages(pub(crate) Vec<String>);

impl Progress for RigMessages {
    fn report(&mut self, event: &LabEvent<'_>) {
        self.0.push(match event {
            LabEvent::Failed { key, failure, again } => format!("failed {key} {again}: {failure}"),
            LabEvent::Passed { key, .. } => format!("passed {key}"),
            LabEvent::Phase(name) => format!("phase {name}"),
            LabEvent::Cell { key, attempt, .. } => format!("cell {key} {attempt}"),
            LabEvent::Host { name, .. } => format!("host {name}"),
            other => format!("{other:?}"),
        });
    }
}

impl Rig {
    pub(crate) fn new(text: &str) -> Rig {
        let folder = tempfile::tempdir().unwrap();
        fs::write(folder.path().join("exp.toml"), text.replace("OWN", own().to_str().unwrap()))
            .unwrap();
        let results = folder.path().join("results");
        Rig { options: options(Some(results)), folder, messages: RigMessages::default() }
    }

    pub(crate) fn file(&self) -> PathBuf {
        self.folder.path().join("exp.toml")
    }

    pub(crate) fn results(&self) -> PathBuf {
        self.folder.path().join("results")
    }

    pub(crate) fn run(&mut self) -> Result<Summary, LabError> {
        lab::run(&self.file(), &self.options, &mut self.messages)
    }

    /// Runs an experiment that must pass, and returns its manifest.
    pub(crate) fn passes(&mut self) -> Manifest {
        let summary = self.run().unwrap_or_else(|error| panic!("{error}"));
        let manifest = self.manifest();
        let failures: Vec<_> =
            manifest.cells.iter().filter_map(|cell| cell.failure.clone()).collect();
        assert_eq!(summary.failed, 0, "{}\n{:#?}", failures.join("\n"), self.messages.0);
        manifest
    }

    /// Runs an experiment that must fail, and returns why its last cell failed.
    pub(crate) fn fails(&mut self) -> String {
        let summary = self.run().unwrap_or_else(|error| panic!("{error}"));
        assert!(summary.failed > 0, "{:#?}", self.messages.0);
        self.manifest().cells.pop().unwrap().failure.unwrap()
    }

    pub(crate) fn manifest(&self) -> Manifest {
        Manifest::read(&self.results()).unwrap()
    }

    /// A file of a cell.
    pub(crate) fn read(&self, name: &str) -> String {
        let path = self.results().join(name);
        fs::read_to_string(&path).unwrap_or_else(|error| panic!("{}: {error}", path.display()))
    }
}

pub(crate) fn options(folder: Option<PathBuf>) -> LabOptions {
    LabOptions {
        own: SelfStart { program: own(), words: vec!["lab".into(), "host".into()] },
        answers: Some(own()),
        ppt: Path::new("ppt").to_owned(),
        ssh: vec!["ssh".into()],
        invoker: None,
        folder,
    }
}

/// Compares two texts.
pub(crate) fn same(found: &str, expected: &str) -> RigResult {
    if found == expected {
        return Ok(());
    }
    Err(format!("found:\n{found}\nexpected:\n{expected}").into())
}

pub(crate) fn contains(found: &str, part: &str) -> RigResult {
    if found.contains(part) {
        return Ok(());
    }
    Err(format!("found:\n{found}\nwithout:\n{part}").into())
}
