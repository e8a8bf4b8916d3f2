//! The tables of captures in DataFusion: what is pushed down to the heads of chunks, passes over
//! sorted rows, functions, and output.
//!
//! An [`Engine`] answers SQL over a [`CaptureSet`], of which a [`Window`] may be all that is seen. What
//! a table is, `ppt-tables` says; what is added to SQL is one file in `functions/` and one line in its
//! list. [`statements`] takes a text apart, [`Encoder`] writes batches in any [`ResultFormat`], and
//! [`summary`] says what `ppt stat` shows, typed: for reports and live views, too. So does [`why`] for
//! `ppt why`; [`whatif`] reads what `ppt whatif` times again.

#![forbid(unsafe_code)]

mod apart;
mod bounds;
pub mod causality;
mod encode;
mod engine;
mod error;
mod exec;
pub mod flame;
mod functions;
pub mod graph;
mod joint_scan;
mod limits;
mod nesting;
mod output;
mod provider;
mod stacks;
mod statement;
pub mod summary;
pub mod text;
mod tracing;
pub mod whatif;
pub mod why;
mod window;

pub use encode::{Encoder, Parquet};
pub use engine::{Engine, EngineOptions, FrameTable, KERNEL_BUFFER, RowUnit};
pub use error::QueryError;
pub use joint_scan::{FrameColumns, JointFrameScan, ScanBatches};
pub use limits::{MAX_OPERATORS, parsed, prepared, within_limits};
pub use nesting::{MAX_NESTING, MAX_QUERIES};
pub use output::{ResultFormat, spelled_numbers};
pub use ppt_stats as stats;
pub use ppt_tables::{
    Bound, Bounded, BoundedNumber, BoundedText, CaptureLoss, CaptureSet, CaptureTable, ChunkTimes,
    NoBound, Processes, SYMBOL, ScanBatch, ScanProgress, SetError, SettledWholes, Settling,
    SpansOrChains, ThreadFrames, ThreadLabels, Total, TotalValue, Trouble, WaitingGroup,
    WaitingWholes, dropped_causes,
};
pub use ppt_text::{escaped as plain, escaped_json as plain_json};
pub use statement::{Statement, StatementResult, statements};
pub use window::Window;

/// What plans and runs queries.
pub use datafusion;
/// What batches of rows are made of.
pub use datafusion::arrow;
