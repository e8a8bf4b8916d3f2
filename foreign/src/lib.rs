//! Reads files and memory of other processes. Their file system may never answer: a FUSE daemon that
//! hangs, or a server that is gone.
//!
//! Whoever waits for such a file system sleeps in the kernel, and no signal ends that. So whatever may
//! reach one is done by a [helper process](serve), for which ppt waits only a limited time:
//!
//! * [`find`] looks a file up without opening it. What is known to be on a local file system, ppt reads itself.
//! * [`ReadableFile`] and [`read_memory`] read.
//! * A helper that does not answer is given up, and its file system is not asked again.
//!   [`unanswered`] says what was left out.
//!
//! Without [`enable`], no helper is started: everything is done by the caller.

#![forbid(unsafe_code)]

mod file;
mod helper;
mod memory;
mod mounts;
mod request;
mod stat;
mod subject;

pub use file::{FoundFile, Lookup, ReadableFile, find};
pub use helper::{Unanswered, enable, end, failures, helper, is_local, serve, unanswered};
pub use memory::read_memory;
pub use request::Memory;
pub use stat::{FileStat, Links};
pub use subject::{Device, Subject};
