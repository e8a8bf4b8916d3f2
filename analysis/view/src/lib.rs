//! Timelines of captures of any size, also while they are written.
//!
//! A [`View`] reads the heads of chunks, and says at once what there is ([`View::about`]): processes,
//! threads, counters, how many frames each thread wrote and when, and what is missing. [`View::build`] then
//! reads each frame once and makes an *index*: for each row, cells that say how many slices follow each
//! other in a stretch of time, how long they took, and which one was the longest. [`View::window`] answers
//! any zoom from these cells; with [`Phase::Frames`] it reads frames where a cell would be wide.
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
//! The slices of a thread lie in rows by depth, as the table `slices` says: a slice is one deeper than the
//! innermost slice of its thread, of any buffer, that contains it. Slices of one depth may overlap without
//! one being in the other; then [`OVERLAP`] is set, and single slices get lanes. Frames without an interval
//! are moments: a row for each kind of them. Spans and chains, which are in no thread, have no rows.
//!
//! # Sums
//! A slice counts in one cell. A cell belongs to the window in which it begins; one that only reaches into
//! a window has [`BEGINS_BEFORE`]. Without those, the sums of windows side by side are the sums of all.
//!
//! # What is kept
//! A block of the index follows from the bytes of its chunk, from the clocks of its capture, and from the
//! slices of other chunks that begin or end in it: see `block.rs` and `reach.rs`. [`View::save`] keeps
//! blocks in a folder, and [`View::open`] takes those that are still right.
//!
//! This library prints nothing, and reads nothing of the environment. It takes texts of targets as they are.
#![forbid(unsafe_code)]

mod about;
mod block;
mod build;
mod cache;
mod cell;
mod chunks;
mod counters;
mod error;
mod filter;
mod frame;
mod hostile;
mod index;
mod layout;
mod payload;
mod reach;
mod record;
mod row;
mod share;
mod slice;
mod tree;
mod view;
mod window;

pub use about::{About, AboutCapture, AboutRow};
pub use build::{BuildCost, Progress};
pub use cache::INDEX_VERSION;
pub use cell::{
    BACKWARD, BEGINS_BEFORE, BUCKETS, Cell, FramePlace, HEADS, NO_NAME, OVERLAP, SINGLE,
};
pub use counters::CounterCell;
pub use error::ViewError;
pub use filter::{SliceFilter, WantedSlices};
pub use frame::{Content, FieldContent, FrameFields, FrameName};
#[doc(hidden)]
pub use hostile::{read_index, sealed_index};
pub use layout::{LostFrames, SliceName};
pub use ppt_capture::Cause;
pub use ppt_tables::{CaptureSet, ProcessRow, SetError, Trouble};
pub use row::RowId;
pub use view::View;
pub use window::{Phase, WIDE, WindowRequest, WindowRow, begins_within, give_lanes};
