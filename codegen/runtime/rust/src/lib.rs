//! The runtime of Rust programs that write frames for `ppt attach`.
//!
//! The build script compiles a frame file, and the program includes the result:
//!
//! ```ignore
//! // build.rs
//! fn main() {
//!     ppt_codegen::compile("job.frame").unwrap();
//! }
//!
//! // src/main.rs
//! ppt_probe::include_frames!("job"); // mod job { … }
//! use job::{Job, Kind};
//!
//! fn serve(user: i32) {
//!     let _handle = Job::scope(|f| f.who = user); // stamps start, and end when dropped
//!     Job::write(|f| {                            // runs only while somebody is attached
//!         f.kind = Kind::Login;
//!         f.name.set("rust");
//!     });
//!     job::write_job!(kind = Kind::Update);       // other fields keep their last value
//! }
//! ```
//!
//! While nobody is attached, a write is one load and one branch. While ppt is attached, it is plain
//! stores into a ring of the thread's own, without locks, system calls or allocation. `slow` runs
//! once per thread and session. It is `codegen/runtime/c/target.c` in Rust, step by step, and tests
//! keep the two equal.
//!
//! With `--cfg ppt_disable` in RUSTFLAGS, and on systems without ppt, everything compiles to
//! nothing.
//!
//! # The generated code
//! The generated code is safe and compiles under `#![forbid(unsafe_code)]`. Its statics are
//! private, so two crates of one program may include the same frame file. Each has a buffer of its
//! own, because stable Rust has no weak symbols to merge them. `ppt` finds the buffers by the magic
//! and address of their descriptors. The generated code uses hidden public items of this crate,
//! which may change with every version. So a program's `ppt-probe` and `ppt-codegen` must have the
//! same version.

#[cfg(test)]
#[path = "../../../tests/all/support/wrong_segments.rs"]
mod wrong_segments;

mod bytes;
mod frame;
#[doc(hidden)]
pub mod generated;
mod hash;
mod now;
mod text;
mod time;

// Linux on x86-64 or little-endian AArch64, unless it is switched off.
#[cfg_attr(
    all(
        not(ppt_disable),
        target_os = "linux",
        target_pointer_width = "64",
        target_endian = "little",
        any(target_arch = "x86_64", target_arch = "aarch64")
    ),
    path = "enabled.rs"
)]
#[cfg_attr(
    not(all(
        not(ppt_disable),
        target_os = "linux",
        target_pointer_width = "64",
        target_endian = "little",
        any(target_arch = "x86_64", target_arch = "aarch64")
    )),
    path = "disabled.rs"
)]
mod writer;

pub use frame::Scope;
pub use hash::{hash, hash_u64, hash128};
pub use text::Text;
pub use time::{Timespec, Timeval};
pub use writer::allow_attach;

/// Includes the module that `ppt_codegen::compile("STEM.frame")` made: `include_frames!("STEM")`.
///
/// The module has the name of the frame file's buffer. Its macros (`write_job!`) expect it at the
/// root of the crate. If you include it elsewhere, import it at the root.
#[macro_export]
macro_rules! include_frames {
    ($stem:literal) => {
        include!(concat!(env!("OUT_DIR"), "/", $stem, ".rs"));
    };
}
