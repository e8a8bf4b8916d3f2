//! Runs an experiment: each cell in turn, in its own folder.

mod cell;
mod check;
mod experiment;
mod link;
mod options;
mod receive;
mod team;
mod via;

pub use experiment::{Summary, plan, rerun, run};
pub use options::LabOptions;
