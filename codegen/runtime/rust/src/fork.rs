//! Processes that fork: `codegen/runtime/c/fork.c` in Rust.
//!
//! A child is off from its first instruction on: a fork empties the control pages. Where the kernel
//! does not do that (before Linux 4.14, or in a sandbox), a fork handler does, and what forks
//! without handlers, by clone(2) alone, finds out at its first frame. What shares our memory, as
//! a child of vfork(2) does, leaves the pages alone: they are its parent's.
//!
//! If a ppt follows the forks of the parent, a child announces itself to ppt. If the child waits
//! until ppt has attached to it, it maps its segments at once.

use std::sync::atomic::AtomicBool;
use std::sync::atomic::Ordering::Relaxed;

use ppt_segment::follow::WAITS;

use super::descriptor::Buffer;
use super::errno::{errno, set_errno};
use super::hello::greet;
use super::list::buffers;
use super::slow::map_early;

/// When loaded: later, a fork handler could not be registered, for that may allocate.
pub(super) fn protect(buffer: &Buffer) {
    static HANDLED: AtomicBool = AtomicBool::new(false);
    if !buffer.guard.empty_on_fork(buffer.control) {
        buffer.guard.call_witness();
    }
    if !HANDLED.swap(true, Relaxed) {
        // SAFETY: what the handlers look at is there as long as this code is, and a library's
        // handlers go when it is unloaded.
        unsafe { libc::pthread_atfork(Some(before_fork), None, Some(in_child)) };
    }
}

/// The work of a child on a buffer.
fn inherit(buffer: &Buffer) {
    let control = buffer.control;
    let follower = buffer.guard.forked(control);
    let waits = follower & WAITS != 0;
    // If the gate is open, we say hello, too: ppt may have found us before we ran, and would report
    // that we were late.
    if follower != 0 && !greet(follower, waits) {
        buffer.guard.alone();
    }
    // ppt fetches the new segment while we wait, because the program may close every descriptor
    // later.
    if waits && map_early(buffer) {
        greet(follower, true);
    }
}

unsafe extern "C" fn before_fork() {
    buffers().for_each(|buffer| buffer.guard.before_fork(buffer.control));
}

unsafe extern "C" fn in_child() {
    let saved = errno();
    buffers().for_each(inherit);
    set_errno(saved);
}
