//! Tables from captures, and accounts of captures.
//!
//! [`dump`] writes one row per frame, in capture order: `seqno`, `ring`, `tid`, then the fields in
//! declared order. With several buffers, a `buffer` column follows `tid`. With several kinds of
//! frames, a `frame` column follows, then the union of the columns; a cell is empty if the frame
//! has no such field. [`DumpRequest::gaps`] requests the missing frames instead.
//!
//! [`DumpRequest::matching`] selects frames by their content.
//!
//! [`DumpRequest::from`] and [`DumpRequest::to`] bound the rows. Most of a file outside of the bounds is
//! not read.
//!
//! All formats use the same cells. A time that was not recorded (0) is an empty cell. An enum value
//! is its name, or its number if it has no name. A bool is 0 or 1; any other byte is its number.
//! Bytes are hex. A float is the shortest text that reads back the same. Text ends at its first
//! NUL. Control characters, including DEL and C1, are escaped, so that no cell can control a
//! terminal.
//!
//! [`Info`] is the account of a capture: its content, and the lost, dropped and damaged frames.
//! [`SyncInfo`] describes the hosts in clock readings.
//!
//! All processors make the rows of a file, and the rows stay in order. Memory does not grow with
//! the capture, even if [`DumpRequest::order`] asks for rows in chronological order.
//!
//! [`DumpRequest::addresses`] determines whether code addresses are shown as function names.
//!
//! [`DumpRequest::time`] determines the format of points in time.

#![forbid(unsafe_code)]

mod cell;
mod csv;
mod dump;
mod error;
mod gaps;
pub mod info;
mod info_read;
mod info_set;
mod info_text;
mod jsonl;
mod matching;
mod options;
mod ordered;
mod plan;
mod rows;
mod select;
mod sorter;
mod spill;
pub mod sync_info;
mod sync_text;
mod table;
mod time_cells;
mod tsv;
mod window;

pub use dump::{DumpOutcome, dump, dump_stream};
pub use error::DumpError;
pub use info::Info;
pub use info_set::Unreadable;
pub use options::{DumpRequest, RowOrder, SortLimits, TableFormat, TimeFormat};
pub use ppt_capture::Bound;
pub use ppt_predicate::{ExpressionError as PredicateError, Predicate};
pub use ppt_symbols::{NameRemark, SearchPaths};
pub use sync_info::{SyncInfo, SyncInfoError};
pub use table::{CellValue, TableWriter};
