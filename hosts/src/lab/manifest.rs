//! `MANIFEST.json`: what ran, where, with which files, and the results. It is complete at any time
//! because it is written to a temporary file and renamed.

use std::fs;
use std::io::{Read, Write};
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};

use super::error::LabError;
use super::plan::ParameterValue;
use super::progress::Basis;
use super::wire::{Ended, Facts, FileIdentity};

/// The name of the file.
pub const MANIFEST: &str = "MANIFEST.json";
const FORMAT: u32 = 1;
/// The most bytes of a manifest that are read.
const MAX_BYTES: u64 = 1 << 30;

/// The content of a manifest.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Manifest {
    /// Version of the format: 1.
    pub format: u32,
    /// Version of ppt.
    pub version: String,
    /// Name of the experiment.
    pub name: String,
    /// Whether all cells have run.
    pub state: RunState,
    /// The begin of the experiment, in UTC.
    pub began: String,
    /// Seed of the order of cells.
    pub seed: u64,
    /// The text of the experiment.
    pub text: String,
    /// The folder that its relative names refer to.
    pub folder: PathBuf,
    /// The clock by which phases start at the same time.
    pub instant: Option<Basis>,
    /// The hosts.
    pub hosts: Vec<HostRecord>,
    /// Cells in the order in which they ran, with every attempt.
    pub cells: Vec<CellRecord>,
    /// Why the requested report is missing.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub no_report: Option<String>,
}

/// The progress of an experiment.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum RunState {
    /// The experiment runs, or was killed.
    Running,
    /// All cells have run.
    Complete,
    /// The experiment ended early.
    Aborted,
    /// The user interrupted it; some cells were not run.
    Interrupted,
}

/// A host.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct HostRecord {
    /// The name of the host.
    pub name: String,
    /// The way to reach the host: `via` of the experiment.
    pub via: String,
    /// The address, as programs on other hosts see it.
    pub addr: Option<String>,
    /// Facts about the host.
    #[serde(flatten)]
    pub facts: Facts,
    /// The files of its programs, by the first words of their commands.
    pub programs: Vec<(String, FileIdentity)>,
}

/// A cell.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct CellRecord {
    /// Parameters and repetition, as a file name.
    pub key: String,
    /// The parameters.
    pub parameters: Vec<(String, ParameterValue)>,
    /// From 1.
    pub repeat: u32,
    /// From 1.
    pub attempt: u32,
    /// The folder of the cell within the results.
    pub folder: String,
    /// Whether it passed.
    pub passed: bool,
    /// The reason, if it failed.
    pub failure: Option<String>,
    /// The duration of the cell, ns.
    pub took_ns: u64,
    /// The programs that ran.
    #[serde(flatten)]
    pub ran: CellPrograms,
    /// The checks of the cell.
    pub checks: Vec<CheckRecord>,
}

/// The programs that ran in a cell.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct CellPrograms {
    /// The phases that ended.
    pub phases: Vec<RanPhase>,
    /// Programs, in the order of the plan.
    pub commands: Vec<RanCommand>,
    /// The ends of the programs.
    pub ends: Vec<RanEnd>,
    /// Fetched files.
    pub outputs: Vec<FileRecord>,
}

/// A completed phase.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct RanPhase {
    /// The name of the phase.
    pub name: String,
    /// The duration of the phase, ns.
    pub took_ns: u64,
    /// The start of each host's program: ns since the epoch by the host's own clock.
    pub started: Vec<(String, i64)>,
    /// For hosts with measured clocks: the start of the phase by each host's clock, and its
    /// uncertainty, in ns.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub began: Option<Vec<(String, i64, i64)>>,
}

/// A program and its arguments.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct RanCommand {
    /// The host.
    pub host: String,
    /// The phase.
    pub phase: String,
    /// The program and its arguments.
    pub words: Vec<String>,
    /// Variables set for this program only.
    pub env: Vec<(String, String)>,
}

/// The end of a program.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct RanEnd {
    /// The host.
    pub host: String,
    /// The program's end.
    #[serde(flatten)]
    pub ended: Ended,
}

/// A fetched file.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct FileRecord {
    /// The name of the file in the cell's folder.
    pub name: String,
    /// The length, bytes.
    pub bytes: u64,
    /// SHA-256 of its content, in hexadecimal.
    pub sha256: String,
    /// Whether it is a capture that ppt lab asked for.
    pub capture: bool,
}

/// A check.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct CheckRecord {
    /// The query.
    pub sql: String,
    /// Whether it passed.
    pub passed: bool,
    /// The reason, if it failed.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub why: Option<String>,
}

impl Manifest {
    /// The manifest of an experiment that starts now.
    pub(super) fn begun(name: &str, seed: u64, text: &str, folder: &Path) -> Self {
        Self {
            format: FORMAT,
            version: env!("CARGO_PKG_VERSION").to_owned(),
            name: name.to_owned(),
            state: RunState::Running,
            began: humantime::format_rfc3339_seconds(std::time::SystemTime::now()).to_string(),
            seed,
            text: text.to_owned(),
            folder: folder.to_owned(),
            instant: None,
            hosts: Vec::new(),
            cells: Vec::new(),
            no_report: None,
        }
    }

    /// Reads the manifest of a folder of results.
    ///
    /// # Errors
    /// The manifest is missing, or is invalid.
    pub fn read(folder: &Path) -> Result<Self, LabError> {
        let path = folder.join(MANIFEST);
        let wrong = |why: String| LabError::Manifest { path: path.clone(), why };
        let length = fs::metadata(&path).map_err(|error| wrong(error.to_string()))?.len();
        if length > MAX_BYTES {
            return Err(wrong(format!("it has {length} bytes")));
        }
        let text = fs::read_to_string(&path).map_err(|error| wrong(error.to_string()))?;
        let read: Self = serde_json::from_str(&text).map_err(|error| wrong(error.to_string()))?;
        if read.format != FORMAT {
            return Err(wrong(format!("its format is {}, this ppt knows {FORMAT}", read.format)));
        }
        Ok(read)
    }

    /// Marks the existing manifest as aborted when the disk has no room for another one, by
    /// overwriting the same number of bytes.
    pub(super) fn abort_in_place(folder: &Path) -> std::io::Result<()> {
        let (running, aborted) = (state(RunState::Running), state(RunState::Aborted));
        assert_eq!(running.len(), aborted.len(), "nothing else in the file moves");
        let file = fs::File::options().read(true).write(true).open(folder.join(MANIFEST))?;
        let mut text = Vec::new();
        (&file).read_to_end(&mut text)?;
        // JSON escapes quotes within a text, so no name and no experiment can look like this.
        let at = text.windows(running.len()).position(|bytes| bytes == running.as_bytes());
        let at = at.ok_or(std::io::ErrorKind::NotFound)?;
        file.write_all_at(aborted.as_bytes(), at as u64)
    }

    /// Writes the manifest into a folder of results.
    pub(super) fn write(&self, folder: &Path) -> Result<(), LabError> {
        let path = folder.join(MANIFEST);
        let write = || -> std::io::Result<()> {
            let mut file = tempfile::Builder::new().prefix(".manifest").tempfile_in(folder)?;
            serde_json::to_writer_pretty(&mut file, self)?;
            file.write_all(b"\n")?;
            file.persist(&path).map(drop).map_err(|error| error.error)
        };
        write().map_err(|cause| LabError::File { what: "write", path: path.clone(), cause })
    }
}

/// A state as written in the file.
fn state(state: RunState) -> String {
    format!("\"state\": {}", serde_json::to_string(&state).unwrap_or_default())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_manifest_is_aborted_without_room() {
        let folder = tempfile::tempdir().unwrap();
        // The text of an experiment may look like the state.
        let text = "# \"state\": \"running\"";
        let mut manifest = Manifest::begun("\"state\": \"running\"", 1, text, folder.path());
        manifest.write(folder.path()).unwrap();
        let before = fs::metadata(folder.path().join(MANIFEST)).unwrap().len();
        Manifest::abort_in_place(folder.path()).unwrap();
        assert_eq!(fs::metadata(folder.path().join(MANIFEST)).unwrap().len(), before);
        manifest.state = RunState::Aborted;
        assert_eq!(Manifest::read(folder.path()).unwrap(), manifest);
        assert!(Manifest::abort_in_place(folder.path()).is_err(), "it does not run any more");
    }
}
