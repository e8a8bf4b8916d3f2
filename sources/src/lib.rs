//! `libppt-with.so`: a library that is preloaded into programs, and writes frames about what they do.
//!
//! ```text
//! net.frame, hops.frame, locks.frame, files.frame ─ pptc ─→ net.c, … ┐
//!                                              c/*.c, written by hand ┴ cc ─→ libppt-with.so
//! ```
//!
//! The functions in `c/calls.c`, `c/lock_calls.c` and `c/file_calls.c` replace those of the C library, and call
//! them. While ppt is not attached, they do nothing else. While ppt is attached, `c/connection.c` follows the
//! requests on each connection, and `c/write.c` writes their frames; `c/lock_calls.c` writes a frame for each
//! wait, and `c/file.c` one for each operation on a file.
//!
//! The build script makes the library. This crate holds its bytes, so that a `ppt` that was installed alone
//! has it, too.

#![forbid(unsafe_code)]

/// The name of the library's file.
pub const FILE_NAME: &str = "libppt-with.so";

/// The bytes of the library, for the same architecture as this program.
pub static LIBRARY: &[u8] = include_bytes!(concat!(env!("OUT_DIR"), "/libppt-with.so"));

/// The values of `--with`, and the buffers that the library writes for each.
pub const SOURCES: &[(&str, &[&str])] =
    &[("net", &["net", "hops"]), ("locks", &["locks"]), ("files", &["files"])];
