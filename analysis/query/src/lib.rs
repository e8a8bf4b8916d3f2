//! The tables of captures in DataFusion: what is pushed down to the heads of chunks, passes over
//! sorted rows, functions, and output.
//!
//! An [`Engine`] answers SQL over a [`CaptureSet`]. What a table is, `ppt-tables` says; what is added
//! to SQL is one file in `functions/` and one line in its list.

#![forbid(unsafe_code)]

mod bounds;
mod engine;
mod error;
mod exec;
mod functions;
mod output;
mod provider;

pub use engine::{Engine, Options};
pub use error::QueryError;
pub use output::{Format, Output};
pub use ppt_tables::{CaptureSet, SetError, Trouble};

/// What plans and runs queries.
pub use datafusion;
/// What batches of rows are made of.
pub use datafusion::arrow;
