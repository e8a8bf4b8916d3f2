//! The writer on systems with ppt.

mod cells;
mod claim;
mod clock;
mod control;
mod descriptor;
mod errno;
mod exit;
mod fork;
mod guard;
mod hello;
mod list;
mod loaded;
mod made;
mod mapped;
mod place;
#[cfg(test)]
mod refuses;
mod shape;
mod slow;
mod table;
mod thread;
mod ticks;

pub use cells::{add, observe};
pub use clock::clock;
pub use control::Control;
pub use descriptor::{Buffer, Descriptor, Layout};
pub use loaded::loaded;
pub use thread::{Thread, Write, begin, busy, prepare};
pub use ticks::{ns_between, stamp};

/// Allows every process of this user to attach, and to debug, until the process ends, even if Yama
/// (`kernel.yama.ptrace_scope = 1`) allows only ancestors. Without Yama it changes nothing.
pub fn allow_attach() {
    // SAFETY: it takes numbers alone. Kernels without Yama refuse it, and need it not.
    unsafe { libc::prctl(libc::PR_SET_PTRACER, libc::PR_SET_PTRACER_ANY, 0, 0, 0) };
}
