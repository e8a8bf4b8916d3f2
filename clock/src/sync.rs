//! Readings of the clocks of several hosts in `.sync` files, which hold raw readings, never
//! results.
//!
//! A file is text. Its first line is [`HEADER`]. Each further line is a [`Record`]; its fields are
//! separated by one tab, and its numbers are decimal. Every line ends with `\n`. A last line
//! without it was truncated while it was written, and is ignored. Later versions may add records. A
//! reader ignores records whose first word it does not know, and counts them.

mod error;
mod host;
mod limits;
mod readings;
mod record;
mod record_fields;

pub use error::{RecordError, SyncError};
pub use host::Host;
pub use limits::{MAX_HOSTS, MAX_HZ, MAX_NAME};
pub use readings::ClockReadings;
pub use record::{HEADER, OneWay, Probe, Pulse, Record, TimeSourceReport};
