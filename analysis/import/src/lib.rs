//! Converts recordings of other tools into captures: CSV and pcap files.
//!
//! A frame file describes a row or a packet, and a [`Recording`] writes the frames as a capture.
//! [`csv::import`] matches the headers of a table with the names of columns. [`pcap::import`] fills
//! fields by their names.
//!
//! The capture has the clock of its input. It begins at the first time in the input. Frames count as
//! drained at the largest time before them.

#![forbid(unsafe_code)]

mod cell;
pub mod csv;
mod decimal;
mod error;
mod host;
pub mod pcap;
mod recording;

pub use error::ImportError;
pub use host::ImportHost;
pub use ppt_frame_dsl as frame_dsl;
pub use recording::{Origin, Recording};
