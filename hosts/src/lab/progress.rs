//! What a run tells while it goes on. Who shows it, and how, is not decided here.

use std::path::Path;
use std::time::Duration;

use super::error::CellFailure;
use super::wire::Facts;

/// Takes what a run tells, and may end it.
pub trait Progress {
    /// Something happened.
    fn tell(&mut self, event: &Event<'_>);

    /// Whether somebody wants it to end. Then the cell that runs fails, what its programs wrote is fetched,
    /// and no other cell runs.
    fn is_interrupted(&self) -> bool {
        false
    }
}

/// What happened.
#[derive(Debug)]
#[non_exhaustive]
pub enum Event<'a> {
    /// The results go here.
    Folder(&'a Path),
    /// A host can be used.
    Host {
        /// Its name.
        name: &'a str,
        /// What it is.
        facts: &'a Facts,
    },
    /// By which clock phases begin at one time.
    Instant(Basis),
    /// A program of one name is not the same file everywhere.
    Differs {
        /// Its name.
        program: &'a str,
        /// Hosts and hashes.
        hosts: &'a [(String, String)],
    },
    /// A program is not what it was when the experiment ran first.
    Changed {
        /// Its name.
        program: &'a str,
        /// The host.
        host: &'a str,
    },
    /// A cell begins.
    Cell {
        /// Its number, from 1.
        number: usize,
        /// Of so many.
        of: usize,
        /// Its key.
        key: &'a str,
        /// From 1.
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
    /// Something that matched was no plain file.
    LeftOut {
        /// The host.
        host: &'a str,
        /// Its name.
        name: &'a str,
    },
    /// A program printed more than is kept.
    Printed {
        /// The host.
        host: &'a str,
        /// The phase that started it.
        phase: &'a str,
        /// Bytes that are not kept.
        left_out: u64,
    },
    /// A cell ended as it should.
    Passed {
        /// Its key.
        key: &'a str,
        /// How long it took.
        took: Duration,
    },
    /// A cell failed.
    Failed {
        /// Its key.
        key: &'a str,
        /// Why.
        failure: &'a CellFailure,
        /// Whether it is tried again.
        again: bool,
    },
    /// All cells are done, and the report is not.
    NoReport(&'a str),
}

/// By which clock phases begin at one time.
#[derive(Debug, Clone, Copy, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Basis {
    /// All hosts are one machine.
    OneClock,
    /// The REALTIME clock of each host: how far these are apart is not known.
    Realtime,
}
