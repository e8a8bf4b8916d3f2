//! Runs an experiment: every cell, one after the other, into a folder of its own.

mod cell;
mod check;
mod experiment;
mod link;
mod options;
mod receive;
mod team;
mod via;

pub use experiment::{Summary, plan, rerun, run};
pub use options::Options;
