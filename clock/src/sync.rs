//! Readings of the clocks of several hosts, as `.sync` files keep them: raw, never as results.
//!
//! A file is text. Its first line is [`HEADER`]. Each further line is a [`Record`]; its fields are
//! separated by one tab, and its numbers are decimal. Every line ends with `\n`: a last one without
//! was cut off while it was written, and is left out. Later versions may add records. A reader
//! leaves out those whose first word it does not know, and counts them.

mod error;
mod host;
mod limits;
mod readings;
mod record;
mod record_fields;

pub use error::{RecordError, SyncError};
pub use host::Host;
pub use limits::{MAX_HOSTS, MAX_HZ, MAX_NAME};
pub use readings::Readings;
pub use record::{HEADER, OneWay, Probe, Pulse, Record, TimeSourceReport};
