//! Progress of a run. The caller shows it.

use std::path::Path;
use std::time::Duration;

use super::error::CellFailure;
use super::wire::Facts;

/// Receives a run's progress, and may interrupt the run.
pub trait Progress {
    /// Reports an event.
    fn report(&mut self, event: &LabEvent<'_>);

    /// Whether the user interrupted the run. The running cell then fails, its programs' output is
    /// fetched, and no other cell runs.
    fn is_interrupted(&self) -> bool {
        false
    }
}

/// An event.
#[derive(Debug)]
#[non_exhaustive]
pub enum LabEvent<'a> {
    /// The folder of the results.
    Folder(&'a Path),
    /// A host is ready.
    Host {
        /// The name of the host.
        name: &'a str,
        /// Facts about it.
        facts: &'a Facts,
    },
    /// The clock by which phases start at the same time.
    Instant(Basis),
    /// Programs of the same name differ between hosts.
    Differs {
        /// The name of the program.
        program: &'a str,
        /// Hosts and their hashes.
        hosts: &'a [(String, String)],
    },
    /// A program has changed since the experiment first ran.
    Changed {
        /// The name of the program.
        program: &'a str,
        /// The host.
        host: &'a str,
    },
    /// A cell begins.
    Cell {
        /// The number of the cell, from 1.
        number: usize,
        /// The number of cells.
        of: usize,
        /// The key of the cell.
        key: &'a str,
        /// The attempt, from 1.
        attempt: u32,
    },
    /// A phase begins.
    Phase(&'a str),
    /// A pattern of `collect` matched no file.
    Unmatched {
        /// The host.
        host: &'a str,
        /// The pattern.
        pattern: &'a str,
    },
    /// A match was not a regular file.
    LeftOut {
        /// The host.
        host: &'a str,
        /// The name of the file.
        name: &'a str,
    },
    /// A program's output exceeded the limit.
    Printed {
        /// The host.
        host: &'a str,
        /// The phase that started it.
        phase: &'a str,
        /// The number of bytes dropped.
        left_out: u64,
    },
    /// A cell passed.
    Passed {
        /// The key of the cell.
        key: &'a str,
        /// The duration of the cell.
        took: Duration,
    },
    /// A cell failed.
    Failed {
        /// The key of the cell.
        key: &'a str,
        /// The reason.
        failure: &'a CellFailure,
        /// Whether it is retried.
        again: bool,
    },
    /// All cells are done, but the report failed.
    NoReport(&'a str),
}

/// The clock by which phases start at the same time.
#[derive(Debug, Clone, Copy, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Basis {
    /// All hosts are one machine.
    OneClock,
    /// The REALTIME clock of each host; the offsets between them are unknown.
    Realtime,
}
