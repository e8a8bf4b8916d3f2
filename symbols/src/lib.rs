//! Names of code addresses: `processCommand+0x12 (redis-server)`.
//!
//! A capture states the files that each process had mapped as code ([`ppt_capture::Modules`]). This
//! crate finds those files on this machine, reads their symbol tables, and names addresses.
//!
//! * [`Symbols`] has the modules of a capture. It loads files when an address needs them.
//! * [`Namer`] names the addresses of one process, with a cache.
//! * [`NameRemark`] states why a file could not be used.
//! * [`CodeFile`] works in the other direction: from names to file offsets of functions and USDT
//!   probes.
//!
//! # Trust
//! This crate trusts no input. It uses a file only if the file has the build id that the capture
//! states. Paths come from the target, so it opens only regular files. Tables come from untrusted
//! files: all reads are bounded by the length of the file and by [`limits`], and no content makes
//! this crate panic. Names may be any text that may not be safe to show on a terminal, so escape
//! them.

#![forbid(unsafe_code)]

mod code_file;
mod demangle;
mod elf;
mod files;
mod finder;
mod functions;
pub mod limits;
mod namer;
mod perf_map;
mod program;
mod remark;
mod symbols;
mod usdt;

pub use code_file::{CodeAddresses, CodeFile, FunctionEntry, ReturnDanger, UnwindTable, UsdtSite};
pub use demangle::demangled;
pub use elf::functions_of;
pub use finder::{CaptureHost, SearchPaths};
pub use functions::FunctionTable;
pub use namer::{Namer, function_part};
pub use perf_map::parsed as functions_of_map;
pub use remark::{NameRemark, UnnamedCause};
pub use symbols::Symbols;
pub use usdt::{Operand, UsdtArgument, UsdtNote};
