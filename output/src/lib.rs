//! The files that commands write. Existing files are never lost.
//!
//! * [`Output::open`] checks whether a name may be used: a free name, or with `--force` the name of
//!   the user's own file. It refuses links, the input, and files that another process writes.
//! * Data goes into a file without a name. [`Output::publish`] gives it the name in one step, as
//!   soon as the content is worth keeping. A command that is refused, interrupted or killed before
//!   that changes nothing. If the file system does not support files without names, it leaves a
//!   hidden file, which the next output in that folder removes.
//! * An output is locked until it is closed, so a second writer is refused.
//! * Another program may truncate or remove a file while it is written. A [`Guarded`] writer
//!   notices that before it leaves a hole. [`Output::whereabouts`] reports at the end whether the
//!   name still belongs to the file.
//! * [`Series`] names consecutive files.
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

mod error;
mod folder;
mod folder_lock;
mod guard;
mod identity;
mod lock;
mod name;
mod output;
mod rules;
mod series;
mod unpublished;

pub use error::OutputError;
pub use folder_lock::lock_folder;
pub use guard::{Displaced, Guarded};
pub use identity::FileId;
pub use lock::is_written;
pub use output::{Output, Whereabouts};
pub use rules::{Invoker, Readers, Rules};
pub use series::Series;
