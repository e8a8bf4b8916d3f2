//! Runs every cell of an experiment in turn.

use std::collections::{BTreeMap, BTreeSet};
use std::fs::{self, DirBuilder};
use std::io::ErrorKind;
use std::os::unix::fs::DirBuilderExt;
use std::path::{Path, PathBuf};
use std::time::Instant;

use super::options::LabOptions;
use super::team::Team;
use super::{cell, check, via};
use crate::lab::error::{CellFailure, LabError};
use crate::lab::manifest::{CellPrograms, CellRecord, CheckRecord, HostRecord, Manifest, RunState};
use crate::lab::plan::{Cell, LabPlan};
use crate::lab::progress::{Basis, LabEvent, Progress};
use crate::lab::wire::FileIdentity;

/// The outcome of an experiment.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Summary {
    /// The folder of the results.
    pub folder: PathBuf,
    /// The number of cells.
    pub cells: usize,
    /// The number of cells that failed after all attempts.
    pub failed: usize,
    /// Whether the report was made, if one was requested.
    pub reported: bool,
    /// Whether the user interrupted it; some cells were then not run.
    pub interrupted: bool,
}

/// Reads an experiment.
///
/// # Errors
/// The file cannot be read, or is not a valid experiment.
pub fn plan(file: &Path) -> Result<LabPlan, LabError> {
    let (text, folder) = text(file)?;
    parsed(file, &text, &folder)
}

/// The text of a file, and the folder that it is in.
fn text(file: &Path) -> Result<(String, PathBuf), LabError> {
    let cannot = |cause| LabError::File { what: "read", path: file.to_owned(), cause };
    let text = fs::read_to_string(file).map_err(cannot)?;
    let folder = file.parent().filter(|path| !path.as_os_str().is_empty());
    let folder = fs::canonicalize(folder.unwrap_or(Path::new("."))).map_err(cannot)?;
    Ok((text, folder))
}

fn parsed(file: &Path, text: &str, folder: &Path) -> Result<LabPlan, LabError> {
    LabPlan::parse(text, folder).map_err(|error| LabError::Plan {
        file: file.to_owned(),
        text: text.to_owned(),
        error: Box::new(error),
    })
}

/// Runs an experiment.
///
/// # Errors
/// The experiment could not start. A cell that fails is not an error; the manifest records it.
pub fn run(
    file: &Path,
    options: &LabOptions,
    progress: &mut dyn Progress,
) -> Result<Summary, LabError> {
    let (text, folder) = text(file)?;
    let plan = parsed(file, &text, &folder)?;
    let manifest = Manifest::begun(&plan.name, plan.seed, &text, &folder);
    Experiment { plan, options, progress, manifest, before: None }.run()
}

/// Runs an experiment again from the manifest in a folder of results.
///
/// # Errors
/// There is no manifest, or the experiment could not start.
pub fn rerun(
    results: &Path,
    options: &LabOptions,
    progress: &mut dyn Progress,
) -> Result<Summary, LabError> {
    let before = Manifest::read(results)?;
    let plan = parsed(Path::new("experiment.toml"), &before.text, &before.folder)?;
    let manifest = Manifest::begun(&plan.name, plan.seed, &before.text, &before.folder);
    Experiment { plan, options, progress, manifest, before: Some(before) }.run()
}

struct Experiment<'a> {
    plan: LabPlan,
    options: &'a LabOptions,
    progress: &'a mut dyn Progress,
    manifest: Manifest,
    /// The run that this one repeats.
    before: Option<Manifest>,
}

impl Experiment<'_> {
    fn run(mut self) -> Result<Summary, LabError> {
        if self.plan.needs_answers() && self.options.answers.is_none() {
            return Err(LabError::NoAnalysis);
        }
        let mut team = Team::start(&self.plan, self.options)
            .map_err(|error| LabError::Host(Box::new(error)))?;
        self.identify(&mut team)?;
        let folder = self.folder()?;
        let text = folder.join("experiment.toml");
        fs::write(&text, &self.manifest.text).map_err(|cause| LabError::File {
            what: "write",
            path: text,
            cause,
        })?;
        self.write_manifest(&folder)?;
        self.progress.report(&LabEvent::Folder(&folder));
        let mut team = Some(team);
        let done = self.cells(&mut team, &folder);
        drop(team);
        let interrupted = self.progress.is_interrupted();
        self.manifest.state = match &done {
            Ok(_) if interrupted => RunState::Interrupted,
            Ok(_) => RunState::Complete,
            Err(_) => RunState::Aborted,
        };
        let reported = interrupted || done.is_err() || self.report(&folder);
        self.write_manifest(&folder)?;
        let failed = done?;
        Ok(Summary { folder, cells: self.plan.cells.len(), failed, reported, interrupted })
    }

    /// Writes the manifest. If that fails, as on a full disk, the existing manifest is marked as
    /// aborted.
    fn write_manifest(&self, folder: &Path) -> Result<(), LabError> {
        let written = self.manifest.write(folder);
        if written.is_err() {
            let _ = Manifest::abort_in_place(folder);
        }
        written
    }

    /// Finds the programs of all cells, and reports those that differ between hosts.
    fn identify(&mut self, team: &mut Team) -> Result<(), LabError> {
        let mut words: Vec<BTreeSet<String>> = vec![BTreeSet::new(); self.plan.hosts.len()];
        for cell in self.plan.cells.iter().filter(|cell| cell.repeat == 1) {
            for (host, action) in
                self.plan.resolve(cell).into_iter().flat_map(|resolved| resolved.actions)
            {
                let Some(command) = action.command else { continue };
                words[host].insert(command.words[0].clone());
                if command.capture {
                    words[host].insert(via::ppt(&self.plan.hosts[host], self.options));
                }
            }
        }
        let asked: Vec<Vec<String>> = self
            .plan
            .hosts
            .iter()
            .zip(&words)
            .map(|(host, words)| words.iter().map(|text| via::program(host, text)).collect())
            .collect();
        let mut found = team.identify(&asked).map_err(|error| LabError::Host(Box::new(error)))?;
        found.sort_by_key(|entry| entry.0);
        let mut same: BTreeMap<String, Vec<(String, String)>> = BTreeMap::new();
        for ((number, found), words) in found.into_iter().zip(words) {
            let host = &self.plan.hosts[number];
            let programs: Vec<(String, FileIdentity)> = words.into_iter().zip(found).collect();
            for (word, identity) in &programs {
                match identity {
                    FileIdentity::Missing { why } => {
                        let (host, why) = (host.name.clone(), why.clone());
                        return Err(LabError::NoProgram { host, why });
                    }
                    FileIdentity::Found { sha256, .. } => {
                        let found = same.entry(word.clone()).or_default();
                        found.push((host.name.clone(), sha256.clone()));
                        if self.is_changed(&host.name, word, sha256) {
                            self.progress
                                .report(&LabEvent::Changed { program: word, host: &host.name });
                        }
                    }
                }
            }
            let facts = team.facts[number].clone();
            self.progress.report(&LabEvent::Host { name: &host.name, facts: &facts });
            self.manifest.hosts.push(HostRecord {
                name: host.name.clone(),
                via: host.via.to_string(),
                addr: host.addr.clone(),
                facts,
                programs,
            });
        }
        for (program, hosts) in &same {
            if hosts.iter().any(|host| host.1 != hosts[0].1) {
                self.progress.report(&LabEvent::Differs { program, hosts });
            }
        }
        let is_same_boot = self
            .manifest
            .hosts
            .windows(2)
            .all(|window| window[0].facts.boot_id == window[1].facts.boot_id);
        let basis = if is_same_boot { Basis::OneClock } else { Basis::Realtime };
        self.progress.report(&LabEvent::Instant(basis));
        self.manifest.instant = Some(basis);
        Ok(())
    }

    fn is_changed(&self, host: &str, word: &str, sha256: &str) -> bool {
        let hosts = self.before.iter().flat_map(|manifest| &manifest.hosts);
        let host = hosts.filter(|record| record.name == host).flat_map(|record| &record.programs);
        host.filter(|entry| entry.0 == word).any(|entry| match &entry.1 {
            FileIdentity::Found { sha256: before, .. } => before != sha256,
            FileIdentity::Missing { .. } => true,
        })
    }

    /// Creates the folder of the results, which must not exist.
    fn folder(&self) -> Result<PathBuf, LabError> {
        let cannot = |path: &Path| {
            let path = path.to_owned();
            move |cause| LabError::File { what: "make", path, cause }
        };
        let make = |path: PathBuf| match private().create(&path) {
            Ok(()) => fs::canonicalize(&path).map(Some).map_err(cannot(&path)),
            Err(error) if error.kind() == ErrorKind::AlreadyExists => Ok(None),
            Err(error) => Err(cannot(&path)(error)),
        };
        if let Some(path) = &self.options.folder {
            return make(path.clone())?.ok_or_else(|| LabError::Exists(path.clone()));
        }
        let mut number = 1u32;
        loop {
            if let Some(made) = make(PathBuf::from(format!("{}-{number}", self.plan.name)))? {
                return Ok(made);
            }
            number += 1;
        }
    }

    /// Runs all cells; returns the number that failed.
    fn cells(&mut self, team: &mut Option<Team>, folder: &Path) -> Result<usize, LabError> {
        let cells = self.plan.cells.clone();
        let mut failed = 0;
        for (number, cell) in cells.iter().enumerate() {
            for attempt in 1..=self.plan.retry + 1 {
                let (number, of) = (number + 1, cells.len());
                self.progress.report(&LabEvent::Cell { number, of, key: &cell.key, attempt });
                let record = self.cell(team, cell, attempt, folder)?;
                let passed = record.passed;
                self.manifest.cells.push(record);
                self.write_manifest(folder)?;
                if self.progress.is_interrupted() {
                    return Ok(failed + usize::from(!passed));
                }
                if passed {
                    break;
                }
                failed += usize::from(attempt == self.plan.retry + 1);
            }
        }
        Ok(failed)
    }

    fn cell(
        &mut self,
        team: &mut Option<Team>,
        cell: &Cell,
        attempt: u32,
        folder: &Path,
    ) -> Result<CellRecord, LabError> {
        let mut name = cell.key.clone();
        if attempt > 1 {
            name += &format!("-try{attempt}");
        }
        let own = folder.join(&name);
        private().create(&own).map_err(|cause| LabError::File {
            what: "make",
            path: own.clone(),
            cause,
        })?;
        let begun = Instant::now();
        let (ran, result) = self.attempt(team, cell, &own);
        if result.as_ref().is_err_and(|error| !error.keeps_helpers()) {
            *team = None;
        }
        let mut checks = Vec::new();
        let result = result.and_then(|()| self.check(cell, &ran, &own, &mut checks));
        let took = begun.elapsed();
        match &result {
            Ok(()) => self.progress.report(&LabEvent::Passed { key: &cell.key, took }),
            Err(failure) => {
                let again = attempt <= self.plan.retry;
                self.progress.report(&LabEvent::Failed { key: &cell.key, failure, again });
            }
        }
        let parameters = self.plan.parameters(cell);
        Ok(CellRecord {
            key: cell.key.clone(),
            parameters: parameters.map(|(name, value)| (name.to_owned(), value.clone())).collect(),
            repeat: cell.repeat,
            attempt,
            folder: name,
            passed: result.is_ok(),
            failure: result.err().map(|err| err.to_string()),
            took_ns: took.as_nanos() as u64,
            ran,
            checks,
        })
    }

    /// Runs a cell, with new helpers if those of the previous cell are gone.
    fn attempt(
        &mut self,
        team: &mut Option<Team>,
        cell: &Cell,
        folder: &Path,
    ) -> (CellPrograms, Result<(), CellFailure>) {
        let team = match team {
            Some(team) => team,
            none => match Team::start(&self.plan, self.options) {
                Ok(new) => none.insert(new),
                Err(failure) => return (CellPrograms::default(), Err(failure)),
            },
        };
        cell::CellRun::new(team, &self.plan, self.options, self.progress, folder).run(cell)
    }

    fn check(
        &self,
        cell: &Cell,
        ran: &CellPrograms,
        folder: &Path,
        records: &mut Vec<CheckRecord>,
    ) -> Result<(), CellFailure> {
        let captures: Vec<PathBuf> = captures(ran).map(|capture| folder.join(capture)).collect();
        for sql in self.plan.checks(cell) {
            let result = check::check(self.options, &captures, &sql, self.plan.timeout);
            let why = result.err();
            records.push(CheckRecord { sql, passed: why.is_none(), why });
        }
        match records.iter().find(|record| !record.passed) {
            None => Ok(()),
            Some(CheckRecord { sql, why, .. }) => {
                let why = why.clone().unwrap_or_default();
                Err(CellFailure::Check { sql: sql.clone(), why })
            }
        }
    }

    /// Makes the report of all cells that passed. Returns whether it was made, if one was
    /// requested.
    fn report(&mut self, folder: &Path) -> bool {
        let Some(report) = &self.plan.report else { return true };
        let passed = self.manifest.cells.iter().filter(|cell| cell.passed);
        if passed.clone().next().is_none() {
            return self.not_reported("no cell passed".to_owned());
        }
        let captures: Vec<PathBuf> = passed
            .flat_map(|cell| {
                captures(&cell.ran).map(|capture| folder.join(&cell.folder).join(capture))
            })
            .collect();
        let limit = self.plan.timeout * 10;
        match check::report(self.options, &captures, report, folder, limit) {
            Ok(()) => true,
            Err(why) => self.not_reported(why),
        }
    }

    fn not_reported(&mut self, why: String) -> bool {
        self.progress.report(&LabEvent::NoReport(&why));
        self.manifest.no_report = Some(why);
        false
    }
}

/// Creates folders that only the user can read, because frames may hold confidential data.
fn private() -> DirBuilder {
    let mut builder = DirBuilder::new();
    builder.mode(0o700);
    builder
}

fn captures(ran: &CellPrograms) -> impl Iterator<Item = &str> {
    ran.outputs.iter().filter(|output| output.capture).map(|output| &*output.name)
}
