//! The plan of an experiment: parses the file, and lists what runs, where, and in which order.

mod action;
mod error;
mod matrix;
mod read;
mod resolve;
mod table;
mod template;
mod types;
mod when;

pub use action::{Action, ClockCondition, Readiness, Resolved, ShellCommand, Stop};
pub use error::{Mistake, PlanError};
pub use matrix::{Axis, Cell, ParameterValue};
pub use types::{LabPlan, PlannedHost, Report, Via};
