//! Why there is no result, and why a cell has none.

use std::fmt::Write as _;
use std::io;
use std::path::PathBuf;
use std::time::Duration;

use thiserror::Error;

use crate::lab::plan::PlanError;
use crate::lab::wire::Failure;

/// Why an experiment did not run.
#[derive(Debug, Error)]
pub enum LabError {
    /// A file or folder.
    #[error("cannot {what} {}: {cause}", path.display())]
    File {
        /// What was tried.
        what: &'static str,
        /// With which file.
        path: PathBuf,
        /// Why it failed.
        cause: io::Error,
    },
    /// The text is no experiment. The text is here, to show the place.
    #[error("{}", error.drawn(&file.to_string_lossy(), text))]
    Plan {
        /// The file.
        file: PathBuf,
        /// Its text.
        text: String,
        /// What is wrong.
        error: Box<PlanError>,
    },
    /// The folder of the results is there.
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
    /// Nothing answers checks or makes the report.
    #[error(
        "the experiment has checks or a report, and ppt-analysis, which answers them, is not there: \
         install it beside ppt-lab"
    )]
    NoAnalysis,
    /// No manifest can be read.
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
    /// A program did not do what it should.
    #[error("phase {phase}: host {host}: {}", program(.phase, .failure))]
    Program {
        /// The phase in which that was seen.
        phase: String,
        /// The host.
        host: String,
        /// What happened.
        failure: Box<Failure>,
    },
    /// Time is up.
    #[error("phase {phase} has not ended after {timeout:?}{}", late(.phase, .unfinished, .silent))]
    Late {
        /// The phase.
        phase: String,
        /// So long it may take.
        timeout: Duration,
        /// Which programs are not done, by host.
        unfinished: Vec<(String, Failure)>,
        /// Which hosts do not answer.
        silent: Vec<String>,
    },
    /// Somebody wanted the experiment to end.
    #[error("phase {phase} was interrupted")]
    Interrupted {
        /// The phase.
        phase: String,
    },
    /// A helper has gone.
    #[error("phase {phase}: host {host} has gone: {why}")]
    Gone {
        /// The phase.
        phase: String,
        /// The host.
        host: String,
        /// What was last heard.
        why: String,
    },
    /// A helper says what none says.
    #[error("phase {phase}: host {host} is not trusted any more: {why}")]
    Distrust {
        /// The phase.
        phase: String,
        /// The host.
        host: String,
        /// Why.
        why: String,
    },
    /// What a helper sent cannot be written.
    #[error("phase {phase}: cannot write {}: {cause}", path.display())]
    Write {
        /// The phase.
        phase: String,
        /// The file.
        path: PathBuf,
        /// Why.
        cause: io::Error,
    },
    /// A tool of the system refused to set a host up.
    #[error("host {host}: cannot set up the network: {said}")]
    Network {
        /// The host.
        host: String,
        /// What the tool said.
        said: String,
    },
    /// A check is not true.
    #[error("check `{sql}`: {why}")]
    Check {
        /// The query.
        sql: String,
        /// What it said.
        why: String,
    },
}

impl CellFailure {
    /// Whether the helpers are still to be used.
    pub(super) fn keeps_helpers(&self) -> bool {
        match self {
            CellFailure::Program { .. }
            | CellFailure::Check { .. }
            | CellFailure::Interrupted { .. } => true,
            CellFailure::Late { silent, .. } => silent.is_empty(),
            _ => false,
        }
    }

    /// The hosts that do not answer any more, or are not trusted.
    pub(super) fn lost_hosts(&self) -> Vec<&str> {
        match self {
            CellFailure::Gone { host, .. } | CellFailure::Distrust { host, .. } => vec![host],
            CellFailure::Late { silent, .. } => silent.iter().map(String::as_str).collect(),
            _ => Vec::new(),
        }
    }
}

fn program(phase: &str, failure: &Failure) -> String {
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

fn late(phase: &str, unfinished: &[(String, Failure)], silent: &[String]) -> String {
    let mut text = String::new();
    for (host, failure) in unfinished {
        let _ = write!(text, "\nhost {host}: {}", program(phase, failure));
    }
    for host in silent {
        let _ = write!(text, "\nhost {host} does not answer");
    }
    text
}
