//! Tables from captures, and what there is to say about a capture as a whole.
//!
//! [`dump`] writes one row per frame, in capture order: `seqno`, `ring`, `tid`, then the fields in
//! declared order. Where several buffers are shown a `buffer` column follows `tid`, where several
//! kinds of frames are shown a `frame` column follows that, and then the union of the columns,
//! empty where a frame has no such field. [`Options::gaps`] asks for the missing frames instead.
//!
//! [`Options::from`] and [`Options::to`] bound the rows; of a file, little else is read.
//!
//! What every format has in common: a time that was not taken (0) is an empty cell; enums go by
//! name, unknown values by number; bools are 0 and 1, another byte is its number; bytes are hex;
//! floats are the shortest text that reads back the same; text ends at its first NUL. Nothing that
//! a terminal would obey gets through: control characters, DEL and C1 included, are escaped.
//!
//! [`Info`] is the account of a capture: what is in it, what was lost, dropped or damaged.
//!
//! All processors make the rows of a file, in order; memory does not grow with the capture.

#![forbid(unsafe_code)]

mod cell;
mod csv;
mod dump;
mod error;
mod escape;
mod gaps;
pub mod info;
mod info_read;
mod info_text;
mod jsonl;
mod options;
mod ordered;
mod plan;
mod rows;
mod select;
mod table;
mod tsv;
mod window;

pub use dump::{Outcome, dump, dump_stream};
pub use error::DumpError;
pub use escape::escape;
pub use info::Info;
pub use options::{Format, Options};
pub use ppt_capture::Bound;
pub use table::{TableWriter, Value};
