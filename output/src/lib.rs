//! The files that commands write. What is there already is never lost.
//!
//! * [`Output::open`] looks whether a file may be had under a name: a new one, or in the place of
//!   one's own where that was asked for (`--force`); never through a link, never the file that is
//!   read, never one that somebody else writes.
//! * What is written goes into a file without a name. [`Output::publish`] gives it the name, in one
//!   step, once it is worth having. Whoever is refused, interrupted or killed before that leaves
//!   everything as it was, and nothing beside it (where the file system has no files without names:
//!   a hidden one, which the next output in that folder removes).
//! * It is locked until it is closed: a second writer is refused.
//! * A file that is written for long may be truncated or removed meanwhile. A [`Guarded`] writer
//!   notices that before it makes a hole of it; [`Output::check`] says in the end whether the name
//!   still leads to what was written.
//! * [`Series`] gives the names of files that come one after the other.
//!
//! ```no_run
//! use std::io::Write;
//! # fn main() -> Result<(), Box<dyn std::error::Error>> {
//! let rules = ppt_output::Rules::default();
//! let mut table = ppt_output::Output::open("table.tsv".as_ref(), &rules)?;
//! table.file().write_all(b"seqno\n")?;
//! table.publish()?;
//! # Ok(())
//! # }
//! ```
#![forbid(unsafe_code)]

mod beside;
mod error;
mod folder;
mod guard;
mod identity;
mod lock;
mod name;
mod output;
mod rules;
mod series;

pub use error::OutputError;
pub use guard::{Displaced, Guarded};
pub use identity::FileId;
pub use output::{Output, Whereabouts};
pub use rules::{Invoker, Readers, Rules};
pub use series::Series;
