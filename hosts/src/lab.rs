//! Experiments over several hosts: one file describes what runs where, and one command runs it.
//!
//! [`plan`] reads the file. [`run`] starts a helper on each host ([`host`]), runs every combination of
//! parameters phase by phase, and leaves a folder with all files and a [`Manifest`]. [`rerun`] repeats
//! a run from its manifest, and [`diff`] compares two manifests.

mod diff;
mod error;
mod host;
mod manifest;
mod plan;
mod progress;
mod run;
mod wire;

pub use diff::{Difference, DifferenceKind, diff};
pub use error::{CellFailure, LabError};
pub use host::{HostError, SelfStart, host};
pub use manifest::{
    CellPrograms, CellRecord, CheckRecord, FileRecord, HostRecord, MANIFEST, Manifest, RanCommand,
    RanEnd, RanPhase, RunState,
};
pub use plan::{
    Action, Axis, Cell, ClockCondition, LabPlan, Mistake, ParameterValue, PlanError, PlannedHost,
    Readiness, Report, Resolved, ShellCommand, Stop, Via,
};
pub use progress::{Basis, LabEvent, Progress};
pub use run::{LabOptions, Summary, plan, rerun, run};
pub use wire::{Ended, Facts, FileIdentity, HelperFailure, Isolation, Problem, ProgramEnd};
