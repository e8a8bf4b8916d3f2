//! Why an experiment or a cell has no result.

use std::fmt::Write as _;
use std::io;
use std::path::PathBuf;
use std::time::Duration;

use thiserror::Error;

use crate::lab::plan::PlanError;
use crate::lab::wire::HelperFailure;

/// Why an experiment did not run.
#[derive(Debug, Error)]
pub enum LabError {
    /// A file or folder cannot be used.
    #[error("cannot {what} {}: {cause}", path.display())]
    File {
        /// The operation.
        what: &'static str,
        /// The file.
        path: PathBuf,
        /// Why it failed.
        cause: io::Error,
    },
    /// The text is not an experiment. The text is included to show the location.
    #[error("{}", error.drawn(&file.to_string_lossy(), text))]
    Plan {
        /// The file.
        file: PathBuf,
        /// The text of the file.
        text: String,
        /// The mistake.
        error: Box<PlanError>,
    },
    /// The folder of the results already exists.
    #[error("{} exists: results are never written over others; choose another folder", .0.display())]
    Exists(PathBuf),
    /// A host cannot be used.
    #[error("{0}")]
    Host(Box<CellFailure>),
    /// A host lacks a program.
    #[error("host {host}: {why}")]
    NoProgram {
        /// The host.
        host: String,
        /// Why.
        why: String,
    },
    /// No program runs checks or makes the report.
    #[error("the experiment has checks or a report, and this ppt was built without answers")]
    NoAnalysis,
    /// The manifest cannot be read.
    #[error("{} is no manifest of ppt lab: {why}", path.display())]
    Manifest {
        /// The file.
        path: PathBuf,
        /// Why.
        why: String,
    },
}

/// Why a cell failed.
#[derive(Debug, Error)]
pub enum CellFailure {
    /// A program failed.
    #[error("phase {phase}: host {host}: {}", program(.phase, .failure))]
    Program {
        /// The phase in which the failure was seen.
        phase: String,
        /// The host.
        host: String,
        /// The failure.
        failure: Box<HelperFailure>,
    },
    /// The phase took too long.
    #[error("phase {phase} has not ended after {timeout:?}{}", late(.phase, .unfinished, .silent))]
    Late {
        /// The phase.
        phase: String,
        /// The time limit.
        timeout: Duration,
        /// The programs that are not done, by host.
        unfinished: Vec<(String, HelperFailure)>,
        /// The hosts that do not answer.
        silent: Vec<String>,
    },
    /// The user interrupted the experiment.
    #[error("phase {phase} was interrupted")]
    Interrupted {
        /// The phase.
        phase: String,
    },
    /// A helper is gone.
    #[error("phase {phase}: host {host} has gone: {why}")]
    Gone {
        /// The phase.
        phase: String,
        /// The host.
        host: String,
        /// The last message of the helper.
        why: String,
    },
    /// A helper sent an invalid message.
    #[error("phase {phase}: host {host} is not trusted any more: {why}")]
    Distrust {
        /// The phase.
        phase: String,
        /// The host.
        host: String,
        /// Why.
        why: String,
    },
    /// Data from a helper cannot be written.
    #[error("phase {phase}: cannot write {}: {cause}", path.display())]
    Write {
        /// The phase.
        phase: String,
        /// The file.
        path: PathBuf,
        /// Why.
        cause: io::Error,
    },
    /// A system tool failed to set up a host.
    #[error("host {host}: cannot set up the network: {message}")]
    Network {
        /// The host.
        host: String,
        /// The tool's message.
        message: String,
    },
    /// A check failed.
    #[error("check `{sql}`: {why}")]
    Check {
        /// The query.
        sql: String,
        /// The query's result.
        why: String,
    },
}

impl CellFailure {
    /// Whether the helpers can still be used.
    pub(super) fn keeps_helpers(&self) -> bool {
        match self {
            CellFailure::Program { .. }
            | CellFailure::Check { .. }
            | CellFailure::Interrupted { .. } => true,
            CellFailure::Late { silent, .. } => silent.is_empty(),
            _ => false,
        }
    }

    /// The hosts that no longer answer or are no longer trusted.
    pub(super) fn lost_hosts(&self) -> Vec<&str> {
        match self {
            CellFailure::Gone { host, .. } | CellFailure::Distrust { host, .. } => vec![host],
            CellFailure::Late { silent, .. } => silent.iter().map(String::as_str).collect(),
            _ => Vec::new(),
        }
    }
}

fn program(phase: &str, failure: &HelperFailure) -> String {
    let mut text = format!("`{}`", failure.words.join(" "));
    if failure.phase != phase {
        let _ = write!(text, " of phase {}", failure.phase);
    }
    let _ = write!(text, " {}", failure.problem);
    for line in failure.tail.lines() {
        let _ = write!(text, "\n  | {line}");
    }
    text
}

fn late(phase: &str, unfinished: &[(String, HelperFailure)], silent: &[String]) -> String {
    let mut text = String::new();
    for (host, failure) in unfinished {
        let _ = write!(text, "\nhost {host}: {}", program(phase, failure));
    }
    for host in silent {
        let _ = write!(text, "\nhost {host} does not answer");
    }
    text
}
