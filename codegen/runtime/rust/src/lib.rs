//! What a Rust program needs to write frames that `ppt attach` can see.
//!
//! A frame file is compiled by the build script, and included where its frames are written:
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
//! Off, a write is one load and one branch. On, it is plain stores into a ring of the thread's own:
//! no lock, no system call, no allocation. `slow` is what happens once a thread and session; it is
//! `codegen/runtime/c/target.c` in Rust, step by step, and the two are held together by their tests.
//!
//! With `--cfg ppt_disable` in RUSTFLAGS, and where ppt does not run, everything compiles to
//! nothing.
//!
//! # The generated code
//! It is safe code: it compiles under `#![forbid(unsafe_code)]`. Its statics are private, so that
//! two crates of one program may include the same frame file (stable Rust has no weak symbols to
//! merge them): each is a buffer of its own, which `ppt` finds by its descriptor's magic and
//! address. What it uses of this crate is public and hidden; it may change with every version, and
//! so a program's `ppt-probe` and `ppt-codegen` must be of the same one.

#[cfg(test)]
#[path = "../../../tests/support/wrong_segments.rs"]
mod wrong_segments;

mod bytes;
mod frame;
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
pub use text::Text;
pub use time::{Timespec, Timeval};

/// Lets every process of this user attach, and debug, where Yama (`kernel.yama.ptrace_scope = 1`)
/// lets ancestors alone; until the process ends. Elsewhere it changes nothing.
pub fn allow_attach() {
    writer::allow_attach();
}

/// Includes the module that `ppt_codegen::compile("STEM.frame")` made: `include_frames!("STEM")`.
///
/// The module is called after the frame file's buffer. Its macros (`write_job!`) look for it at the
/// root of the crate: where it is included elsewhere, import it there.
#[macro_export]
macro_rules! include_frames {
    ($stem:literal) => {
        include!(concat!(env!("OUT_DIR"), "/", $stem, ".rs"));
    };
}

/// What generated code is made of. Not for use by hand.
#[doc(hidden)]
pub mod generated {
    pub use crate::bytes::{array_bytes, f32_word, f64_word};
    pub use crate::frame::{Frame, Put, scope, update, written};
    pub use crate::time::clock;
    pub use crate::writer::{
        Buffer, Control, Descriptor, Layout, Thread, Write, begin, busy, loaded, prepare, stamp,
    };
}
