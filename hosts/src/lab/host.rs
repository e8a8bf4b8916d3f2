//! The helper on a host. One program plays several roles by starting itself:
//!
//! * the *keeper* (`keep`) sets up the isolation of all programs, starts the worker in it,
//!   and cleans up after it, however it ends;
//! * the *worker* (`work`) talks to the controller, and starts and stops programs;
//! * `answer` and `ask` run `ppt sync` in the isolation: they answer other hosts, and ask them (`clock.rs`);
//! * the *guard* makes the kernel end a program with the worker, and becomes that program;
//! * the *reader* is a guard that first gives up root's privileges except the one that opens files: it
//!   becomes the program that reads captures for a check.
//!
//! The worker reads a pipe whose other end only the keeper has, so neither survives the other. There
//! is no daemon, no port, and no right that the caller does not have.

mod clock;
mod error;
mod facts;
mod files;
mod isolation;
mod keeper;
mod mounts;
mod output;
mod programs;
mod reader;
mod ready;
mod role;
mod self_start;
mod tree;
mod worker;

pub use error::HostError;
pub(super) use isolation::{HUB, ISOLATED, NETWORK, PLAIN};
pub use role::host;
pub use self_start::SelfStart;
