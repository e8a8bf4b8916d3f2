//! Processes that fork: `codegen/runtime/c/fork.c` in Rust.
//!
//! A child is off from its first instruction on: a fork empties the control pages. Where the kernel
//! does not do that (before Linux 4.14, or in a sandbox), a fork handler does, and what forks
//! without handlers, by clone(2) alone, finds out at its first frame. What shares our memory, as
//! a child of vfork(2) does, leaves the pages alone: they are its parent's.

use std::ptr;
use std::sync::atomic::Ordering::Relaxed;
use std::sync::atomic::{AtomicBool, AtomicPtr};

use super::control::Control;
use super::descriptor::Buffer;
use super::loaded;
use super::table::{errno, set_errno};

const PAGE: usize = ppt_segment::abi::PAGE as usize;

/// What keeps a control page from being copied.
#[derive(Debug)]
pub(super) struct Guard {
    /// A fork empties the control page.
    emptied: AtomicBool,
    /// Where it does not: a page that a fork leaves out. Who has it shares our memory.
    witness: AtomicPtr<libc::c_void>,
}

impl Guard {
    pub const fn new() -> Self {
        Self { emptied: AtomicBool::new(false), witness: AtomicPtr::new(ptr::null_mut()) }
    }

    /// Has a fork empty the page; whether it will.
    pub fn empty_on_fork(&self, control: &Control) -> bool {
        if self.emptied.load(Relaxed) {
            return true;
        }
        // SAFETY: a page of our own; what the advice changes is what a fork copies.
        let marked = unsafe { libc::madvise(control.address(), PAGE, libc::MADV_WIPEONFORK) } == 0;
        if marked {
            self.emptied.store(true, Relaxed);
        }
        marked
    }

    /// When loaded.
    pub fn protect(&self, control: &Control) {
        static HANDLED: AtomicBool = AtomicBool::new(false);
        if self.empty_on_fork(control) {
            return;
        }
        self.call_witness();
        if !HANDLED.swap(true, Relaxed) {
            // SAFETY: what the handler looks at is there as long as this code is, and a library's
            // handlers go when it is unloaded.
            unsafe { libc::pthread_atfork(None, None, Some(empty_all)) };
        }
    }

    fn call_witness(&self) {
        let (none, private) = (libc::PROT_NONE, libc::MAP_PRIVATE | libc::MAP_ANONYMOUS);
        // SAFETY: a new page, which nobody looks into.
        let marked = unsafe {
            let page = libc::mmap(ptr::null_mut(), PAGE, none, private, -1, 0);
            let made = page != libc::MAP_FAILED;
            (made && libc::madvise(page, PAGE, libc::MADV_DONTFORK) == 0).then_some(page)
        };
        self.witness.store(marked.unwrap_or(ptr::null_mut()), Relaxed);
    }

    /// Whether the control page is a copy of another process's, made by a fork.
    pub fn copied(&self) -> bool {
        let witness = self.witness.load(Relaxed);
        let mut there = 0;
        !self.emptied.load(Relaxed)
            && !witness.is_null()
            // SAFETY: asks about an address, and answers with a byte.
            && unsafe { libc::mincore(witness, 1, &mut there) } != 0
            && errno() == libc::ENOMEM
    }

    /// Makes of a copy what a fork should have.
    pub fn empty(&self, control: &Control) {
        control.empty();
        self.call_witness();
    }

    /// Before the code goes.
    pub fn dismiss(&self) {
        let witness = self.witness.swap(ptr::null_mut(), Relaxed);
        if !witness.is_null() {
            // SAFETY: a page of our own, which nobody looks into.
            unsafe { libc::munmap(witness, PAGE) };
        }
    }
}

/// In a forked child.
unsafe extern "C" fn empty_all() {
    let saved = errno();
    loaded::buffers().for_each(|it: &Buffer| it.guard.empty(it.control));
    set_errno(saved);
}
