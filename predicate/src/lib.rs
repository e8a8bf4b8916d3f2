//! Expressions that select frames, as in `ppt dump --where`.
//!
//! An expression is a subset of SQL's `WHERE` conditions, with additional literals with units
//! (`10ms`, `4KiB`). [`Predicate::parse`] reads the text. [`Predicate::compile`] checks it against
//! kinds of frames and makes a [`CheckedExpression`] for each, which evaluates the bytes of a frame: true,
//! false, or `None` for SQL's NULL. [`to_sql`] converts an expression to standard SQL, and
//! [`without_units`] does so for any other SQL.
//!
//! The fields are the columns of the tables for SQL, with their types and NULLs
//! ([`ppt_capture::columns`] decodes them), and the standard columns `seqno`, `ring`, `tid`, `pid`,
//! `ts` and `drained`.
//!
//! Nothing here trusts the text: its length and the depth of its parentheses are bounded, and time
//! is linear in it.

#![forbid(unsafe_code)]

// The code that pest generates uses this crate if pest is built without std.
extern crate alloc;

mod ast;
mod compile;
mod counts;
mod error;
mod fields;
mod frame_kind;
mod like;
mod literal;
mod number;
mod parse;
mod predicate;
mod program;
mod ranges;
mod row;
mod sieve;
mod sql;
mod text_column;
mod types;
mod units;

pub use counts::Counts;
pub use error::{ExpressionError, Problem};
pub use fields::{NamedField, named_fields};
pub use frame_kind::FrameKind;
pub use parse::{MAX_BYTES, MAX_DEPTH};
pub use predicate::Predicate;
pub use program::CheckedExpression;
pub use row::{Chunk, PredicateRow};
pub use sieve::Sieve;
pub use sql::{to_sql, without_units};
pub use types::Type;
