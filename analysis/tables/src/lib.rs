//! From captures to Arrow: the one place that says which tables and columns there are.
//!
//! A [`CaptureSet`] is what a query sees: captures, each once. [`Directory::new`] names the tables of a
//! set; a [`CaptureTable`] has columns, and plans a [`Scan`] of those that are asked for: batches of rows,
//! in parts that can be read side by side. What can be ruled out by the heads of chunks is not read
//! ([`Bounds`]).
//!
//! A table is one file in `tables/` and one line in `tables::ALL`. Most are rows of
//! chunks (`of_chunks`) or a few rows in memory (`small`); one whose rows depend on each other,
//! in order, adds a [`Pass`].
//!
//! What is not read is not checked, as in `ppt dump --from`: heads say how many frames a chunk
//! holds. Tables of the account read captures as a whole once, as `ppt info` does
//! ([`CaptureSet::verify`]), and so does opening one whose heads are damaged.

#![forbid(unsafe_code)]

mod align;
mod bounds;
mod builder;
mod catalog;
mod causality;
mod chunk_reader;
mod chunk_table;
mod contents;
mod directory;
mod error;
mod follow;
mod gap_times;
mod gather;
mod growing;
mod hosts;
mod joint_scan;
mod kernel;
mod loss;
mod nest;
mod of_chunks;
mod pair;
mod part;
mod paths;
mod processes;
mod readings;
mod rows;
mod set;
mod small;
mod standard;
mod table;
mod tables;
mod thread_frames;
mod thread_labels;
mod time_bounds;
mod totals;
mod watch;
mod whole;

pub use bounds::{Bounded, BoundedNumber, BoundedText, Bounds, Range};
pub use contents::{Contents, CounterReading, FrameChunk, MissingFrames, RingOwner};
pub use directory::{Directory, SpansOrChains};
pub use error::{Conflict, SetError, SyncFault, TableError};
pub use growing::{
    GrowingTable, GrowingWholes, SettledWholes, Settling, WaitingGroup, WaitingWholes,
};
pub use hosts::Clocks;
pub use joint_scan::{ChunkTimes, JointScan, ScanBatch, ScannedTable};
pub use loss::{CaptureLoss, dropped_causes};
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

/// The function of a name of an address, without the place in it.
pub use ppt_symbols::function_part;

/// A place in a capture.
pub use ppt_capture::{Bound, NoBound};
