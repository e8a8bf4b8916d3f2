//! Processes that fork: `codegen/runtime/c/fork.c` in Rust.
//!
//! A child is off from its first instruction on: a fork empties the control pages. If the kernel does not do
//! that (before Linux 4.14, or in a sandbox), a fork handler does. A child of clone(2), which runs no handlers,
//! finds out at its first frame. A child that shares the memory of its parent, as after vfork(2), does not
//! change the parent's pages.
//!
//! If a ppt follows the forks of the parent, a child announces itself to ppt. If the child waits until ppt has
//! attached to it, it maps its segments at once.

use std::sync::atomic::AtomicBool;
use std::sync::atomic::Ordering::Relaxed;

use ppt_segment::follow::WAITS;

use super::descriptor::Buffer;
use super::errno::{errno, set_errno};
use super::hello::greet;
use super::list::buffers;
use super::slow::map_early;

/// Registers fork handlers at load, because registration may allocate.
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

/// Prepares a buffer in a child.
fn inherit(buffer: &Buffer) {
    let control = buffer.control;
    let follower = buffer.guard.forked(control);
    let waits = follower & WAITS != 0;
    // The child announces itself even if the gate is open: ppt may have attached before the child ran, and
    // would otherwise report it as late.
    if follower != 0 && !greet(follower, waits) {
        buffer.guard.alone();
    }
    // ppt fetches the new segment while the child waits, because the program may close all descriptors later.
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
