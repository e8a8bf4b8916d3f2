//! Text for people: untrusted names made safe to show, short numbers, and what parsers expect.
//!
//! [`is_unsafe`] is the only definition of the characters that no output contains unescaped.
//! [`escaped`] is for people, [`escape_cell`] for tables that a program reads back,
//! [`escaped_json`] for JSON. [`nearest`] finds the intended name for a misspelt one. Only binaries
//! enable the features `messages`, with `message` for output to stderr, and `arguments`, with
//! `argument` for the values of a command line. [`exit`] has their exit codes.
#![forbid(unsafe_code)]

#[cfg(feature = "arguments")]
pub mod argument;
mod csv;
mod escape;
pub mod exit;
mod expected;
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
pub use expected::{alternatives, quoted_char};
pub use nearest::{did_you_mean, nearest};
pub use numbers::{bucket, counted_up, duration, grouped, measured, three};
pub use spreadsheet::{begins_formula, unguarded};
