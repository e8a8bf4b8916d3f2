//! Timelines of captures of any size, also while they are written.
//!
//! A [`View`] reads the heads of chunks. They suffice for [`View::about`]: processes, threads, counters, the
//! number of frames of each thread over time, and losses. [`View::build`] then reads each frame once and
//! makes an *index*: the cells of each row. A cell has the number of consecutive slices, their total length,
//! and the longest one. [`View::window`] answers any zoom from these cells. With [`Phase::Frames`] it reads
//! frames where a cell would be wide.
//!
//! ```no_run
//! # use std::sync::atomic::AtomicBool;
//! # use ppt_view::{Phase, View, WindowRequest};
//! # fn main() -> Result<(), ppt_view::ViewError> {
//! let view = View::open(&["out.bin".into()], None, 256 << 20)?;
//! let cancel = AtomicBool::new(false);
//! view.build(2, &|_| {}, &cancel)?;
//! let about = view.about();
//! let (Some(from), Some(to)) = (about.from, about.to) else { return Ok(()) };
//! let rows = about.rows.iter().map(|row| row.id).collect();
//! let request = WindowRequest { from, to: to + 1, pixels: 1600, rows, phase: Phase::Index };
//! for row in view.window(&request, &cancel) {
//!     let row = row?;
//!     let slices: u64 = row.cells.iter().map(|cell| cell.count).sum();
//! }
//! # Ok(())
//! # }
//! ```
//!
//! # Rows
//! The slices of a thread lie in rows by depth, as in the table `slices`. A slice is one deeper than the
//! innermost slice of its thread, of any buffer, that contains it. Slices of one depth may overlap without
//! nesting. [`OVERLAP`] is then set, and single slices get lanes. Frames without an interval are moments, and
//! each kind of them has a row. Spans and chains belong to no thread and have no rows.
//!
//! # Sums
//! A slice counts in one cell. A cell belongs to the window in which it begins. Other windows that it
//! overlaps have it with [`BEGINS_BEFORE`]. Without these cells, the sums of adjacent windows are the sums of
//! all slices.
//!
//! # Folder of indexes
//! A block of the index depends only on the bytes of its chunk, the clocks of its capture, and the slices of
//! other chunks that begin or end in it (`block.rs`, `reach.rs`). [`View::save`] writes blocks into a folder,
//! and [`View::open`] uses those that are still valid.
//!
//! This library prints nothing and does not read the environment. It does not escape texts of targets.
#![forbid(unsafe_code)]

mod about;
mod block;
mod block_bytes;
mod build;
mod cell;
mod chunk_reader;
mod counters;
mod error;
mod filter;
mod frame_fields;
mod fuzz_entry;
mod index;
mod index_files;
mod layout;
mod payload;
mod reach;
mod row;
mod slice;
mod thread_share;
mod tree;
mod view;
mod window_rows;

pub use about::{About, AboutCapture, AboutRow};
pub use build::{BuildCost, Progress};
pub use cell::{
    BACKWARD, BEGINS_BEFORE, BUCKETS, Cell, FramePlace, HEADS, NO_NAME, OVERLAP, SINGLE,
};
pub use counters::CounterCell;
pub use error::ViewError;
pub use filter::{SliceFilter, WantedSlices};
pub use frame_fields::{Content, FieldContent, FrameFields, FrameName};
#[doc(hidden)]
pub use fuzz_entry::{read_index, sealed_index};
pub use index_files::INDEX_VERSION;
pub use layout::{LostFrames, SliceName};
pub use ppt_capture::Cause;
pub use ppt_tables::{CaptureSet, ProcessRow, SetError, Trouble};
pub use row::RowId;
pub use view::View;
pub use window_rows::{Phase, WIDE, WindowRequest, WindowRow, begins_within, give_lanes};
