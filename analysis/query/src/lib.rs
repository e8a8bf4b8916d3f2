//! The tables of captures in DataFusion: push-down of filters to heads of chunks, passes over sorted rows,
//! functions, and output.
//!
//! An [`Engine`] answers SQL over a [`CaptureSet`]; a [`Window`] may limit the visible part. `ppt-tables`
//! defines the tables. A new SQL function is one file in `functions/` and one line in its list.
//! [`statements`] splits a text into statements, and [`Encoder`] writes batches in any [`ResultFormat`].
//! [`summary`] computes the values of `ppt stat`, [`why`] those of `ppt why`, and [`whatif`] loads runs for
//! `ppt whatif`.

#![forbid(unsafe_code)]

mod bounds;
pub mod causality;
mod encode;
mod engine;
mod error;
mod exec;
pub mod flame;
mod functions;
pub mod graph;
mod joint_frame_scan;
mod keep_apart;
mod limits;
mod output;
mod sql_depth;
mod sql_quotes;
mod stacks;
mod statement;
pub mod summary;
mod table_provider;
pub mod text;
mod tracing;
pub mod whatif;
pub mod why;
mod window;

pub use encode::{AnyOutput, Encoder, ParquetOptions};
pub use engine::{BoxedAnswer, Engine, EngineOptions, FrameTable, KERNEL_BUFFER, RowUnit};
pub use error::QueryError;
pub use joint_frame_scan::{FrameColumns, JointFrameScan, ScanBatches};
pub use limits::{MAX_OPERATORS, parsed, prepared, within_limits};
pub use output::{ResultFormat, spelled_numbers};
pub use ppt_stats as stats;
pub use ppt_tables::{
    Bound, Bounded, BoundedNumber, BoundedText, CaptureLoss, CaptureSet, CaptureTable, ChunkTimes,
    NoBound, Processes, SYMBOL, ScanBatch, ScanProgress, SetError, SettledWholes, Settling,
    SpansOrChains, ThreadFrames, ThreadLabels, Total, TotalValue, Trouble, WaitingGroup,
    WaitingWholes, dropped_causes,
};
pub use ppt_text::{escaped as plain, escaped_json as plain_json};
pub use sql_depth::{MAX_NESTING, MAX_QUERIES};
pub use sql_quotes::{sql_identifier, sql_literal};
pub use statement::{Statement, StatementResult, statements};
pub use window::Window;

/// The query engine.
pub use datafusion;
/// The types of batches of rows.
pub use datafusion::arrow;
