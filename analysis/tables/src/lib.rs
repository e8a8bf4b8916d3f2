//! From captures to Arrow: all tables. `columns.rs` of `ppt-frame-dsl` defines the columns of fields; their Arrow types
//! and all other columns are here.
//!
//! A [`CaptureSet`] is the input of a query: captures, each once. [`Directory::new`] names the tables of a
//! set. A [`CaptureTable`] has columns, and plans a [`Scan`] of the requested ones: batches of rows, in parts
//! that can be read in parallel. A scan skips chunks whose heads rule out wanted rows ([`Bounds`]).
//!
//! A table is one file in `tables/` and one line in `tables::ALL`. The rows of most tables come from chunks
//! (`chunk_scan`) or are few and in memory (`small`). A table whose rows depend on each other adds a
//! [`Pass`].
//!
//! Skipped chunks are not checked, as in `ppt dump --from`; their heads state how many frames they hold.
//! Tables of the account read whole captures once, as `ppt info` does ([`CaptureSet::verify`]). So does
//! opening a capture with damaged heads.

#![forbid(unsafe_code)]

mod align;
mod bounds;
mod builder;
mod capture_names;
mod catalog;
mod causality;
mod chain_pass;
mod chunk_reader;
mod chunk_row_source;
mod chunk_scan;
mod contents;
mod directory;
mod error;
mod gap_times;
mod gather;
mod growing;
mod hosts;
mod joint_scan;
mod kernel;
mod loss_counts;
mod nest;
mod pair_pass;
mod part;
mod processes;
mod readings;
mod rows;
mod set;
mod small;
mod spans_and_chains;
mod standard;
mod table;
mod tables;
mod thread_frames;
mod thread_labels;
mod time_bounds;
mod totals;
mod watch;

pub use bounds::{Bounded, BoundedNumber, BoundedText, Bounds, Range};
pub use contents::{Contents, CounterReading, FrameChunk, MissingFrames, RingOwner};
pub use directory::{Directory, SpansOrChains};
pub use error::{Conflict, SetError, SyncFault, TableError};
pub use growing::{
    GrowingTable, GrowingWholes, SettledWholes, Settling, WaitingGroup, WaitingWholes,
};
pub use hosts::Clocks;
pub use joint_scan::{ChunkTimes, JointScan, ScanBatch, ScannedTable};
pub use loss_counts::{CaptureLoss, dropped_causes};
pub use part::capture_files;
pub use processes::{ProcessRow, Processes};
pub use set::{CaptureSet, Trouble};
pub use standard::{STANDARD, Standard};
pub use table::{Batches, CaptureTable, Chunked, Pass, Planned, Runner, Scan, Start, TableRequest};
pub use tables::SYMBOL;
pub use thread_frames::ThreadFrames;
pub use thread_labels::ThreadLabels;
pub use totals::{Total, TotalValue};
pub use watch::ScanProgress;

/// The function in the name of an address, without the offset.
pub use ppt_symbols::function_part;

/// A position in a capture, for `--from` and similar options.
pub use ppt_capture::{Bound, NoBound};
