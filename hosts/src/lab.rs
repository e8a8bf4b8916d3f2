//! Experiments over several hosts: one file says what runs where, and one command runs it.
//!
//! [`plan`] reads the file. [`run`] starts a helper on each host ([`host`]), runs every combination of
//! parameters phase by phase, and leaves a folder with all files and a [`Manifest`]. [`rerun`] repeats
//! what a manifest says, and [`diff`] compares two of them.

mod diff;
mod error;
mod host;
mod manifest;
mod plan;
mod progress;
mod run;
mod wire;

pub use diff::{Difference, Kind, diff};
pub use error::{CellFailure, LabError};
pub use host::{HostError, Own, host};
pub use manifest::{
    CellRecord, CheckRecord, HostRecord, MANIFEST, Manifest, Output, Ran, RanCommand, RanEnd,
    RanPhase, State,
};
pub use plan::{
    Action, Axis, Cell, Clock, Command, Host, Mistake, Plan, PlanError, Ready, Report, Resolved,
    Stop, Value, Via,
};
pub use progress::{Basis, Event, Progress};
pub use run::{Options, Summary, plan, rerun, run};
pub use wire::{End, Ended, Facts, Failure, Identity, Isolation, Problem};
