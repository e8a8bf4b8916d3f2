//! Text as people read it: names of strangers made safe to show, and numbers in short.
//!
//! [`is_unsafe`] is the one set of characters that no output contains unescaped. [`escaped`] is for
//! people, [`escape_cell`] for tables that a program reads back, [`escaped_json`] for JSON. [`nearest`]
//! finds what a misspelt name was meant to be. Binaries alone enable the features `messages`, by which
//! `message` writes to stderr, and `arguments`, by which `argument` reads the values of a command line.
#![forbid(unsafe_code)]

#[cfg(feature = "arguments")]
pub mod argument;
mod csv;
mod escape;
#[cfg(feature = "messages")]
pub mod message;
mod nearest;
mod numbers;
mod spreadsheet;

pub use csv::csv_cell;
pub use escape::{
    escape_cell, escaped, escaped_json, escaped_lines, is_unsafe, json_string, masked,
    masked_in_place, shortened, unescape_cell,
};
pub use nearest::{did_you_mean, nearest};
pub use numbers::{bucket, counted_up, duration, grouped, measured, three};
pub use spreadsheet::{begins_formula, unguarded};
