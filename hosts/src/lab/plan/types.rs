//! The data of an experiment.

use std::path::PathBuf;
use std::time::Duration;

use super::action::{ClockCondition, Stop};
use super::matrix::{Axis, Cell, ParameterValue};
use super::template::Template;
use super::when::When;

/// An experiment.
#[derive(Debug, Clone, PartialEq)]
pub struct LabPlan {
    /// The name of the experiment.
    pub name: String,
    /// Seed of the order of cells.
    pub seed: u64,
    /// The number of retries of a failed cell.
    pub retry: u32,
    /// The time limit of a phase.
    pub timeout: Duration,
    /// The hosts, in the order of the text.
    pub hosts: Vec<PlannedHost>,
    /// The parameters.
    pub matrix: Vec<Axis>,
    /// The phases, in order.
    pub cells: Vec<Cell>,
    /// The report over all captures.
    pub report: Option<Report>,
    pub(super) phases: Vec<Phase>,
    pub(super) checks: Vec<Template>,
}

/// A host.
#[derive(Debug, Clone, PartialEq)]
pub struct PlannedHost {
    /// The name of the host.
    pub name: String,
    /// The way to reach the host.
    pub via: Via,
    /// The address, as programs on other hosts see it.
    pub addr: Option<String>,
    /// The folder that its relative programs refer to.
    pub dir: Option<PathBuf>,
    /// The `ppt` that captures on the host.
    pub ppt: Option<String>,
    /// The `ppt` that runs as helper on the host.
    pub helper: Option<String>,
    /// Whether its programs have their own namespaces and see no other process.
    pub isolate: bool,
}

/// A way to reach a host.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Via {
    /// This machine.
    Local,
    /// A network namespace of this machine, created for the experiment.
    Made,
    /// An existing network namespace of this machine.
    Named(String),
    /// A host reached by OpenSSH.
    Ssh(String),
}

/// The report over all captures.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Report {
    /// An SQL file.
    pub sql: Option<PathBuf>,
    /// The name of a page.
    pub html: Option<String>,
}

#[derive(Debug, Clone, PartialEq)]
pub(super) struct Phase {
    pub(super) name: String,
    pub(super) when: Option<When>,
    pub(super) timeout: Option<Duration>,
    /// By host.
    pub(super) steps: Vec<(usize, PlanStep)>,
}

#[derive(Debug, Clone, PartialEq, Default)]
pub(super) struct PlanStep {
    pub(super) program: Option<ProgramEntry>,
    pub(super) stop: Option<Stop>,
    pub(super) collect: Vec<Template>,
    pub(super) clock: Option<ClockCondition>,
}

#[derive(Debug, Clone, PartialEq)]
pub(super) struct ProgramEntry {
    pub(super) words: Vec<Template>,
    pub(super) env: Vec<(String, Template)>,
    /// Whether the phase waits for its end.
    pub(super) ends: bool,
    pub(super) output: Option<Template>,
    pub(super) tcp: Option<Template>,
    pub(super) udp: Option<Template>,
    pub(super) file: Option<Template>,
    pub(super) capture: bool,
}

impl LabPlan {
    /// The name of a cell's parameters and their values.
    pub fn parameters<'a>(
        &'a self,
        cell: &'a Cell,
    ) -> impl Iterator<Item = (&'a str, &'a ParameterValue)> {
        self.matrix.iter().map(|axis| &*axis.name).zip(&cell.parameters)
    }
}

impl std::fmt::Display for Via {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Via::Local => f.write_str("local"),
            Via::Made => f.write_str("netns"),
            Via::Named(name) => write!(f, "netns:{name}"),
            Via::Ssh(to) => write!(f, "ssh:{to}"),
        }
    }
}
