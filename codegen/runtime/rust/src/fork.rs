//! Processes that fork: `codegen/runtime/c/fork.c` in Rust.
//!
//! A child is off from its first instruction on: a fork empties the control pages. Where the kernel
//! does not do that (before Linux 4.14, or in a sandbox), a fork handler does, and what forks
//! without handlers, by clone(2) alone, finds out at its first frame. What shares our memory, as
//! a child of vfork(2) does, leaves the pages alone: they are its parent's.
//!
//! Where a ppt follows its parent's forks, a child tells it that it is there. If it waits until it
//! has been attached to, it maps its segments at once.

use std::ptr;
use std::sync::atomic::Ordering::Relaxed;
use std::sync::atomic::{AtomicBool, AtomicPtr, AtomicU64};

use ppt_segment::follow::{WAITS, Words};

use super::control::{Control, word};
use super::descriptor::Buffer;
use super::hello::greet;
use super::loaded::buffers;
use super::slow::map_early;
use super::table::{errno, set_errno};

const PAGE: usize = ppt_segment::abi::PAGE as usize;

/// What becomes of a buffer in a forked child.
#[derive(Debug)]
pub(super) struct Guard {
    /// A fork empties the control page.
    emptied: AtomicBool,
    /// Where it does not: a page that a fork leaves out. Who has it shares our memory.
    witness: AtomicPtr<libc::c_void>,
    /// What a process leaves to its children: the socket of the ppt that follows it, or 0.
    follower: AtomicU64,
}

impl Guard {
    pub const fn new() -> Self {
        Self {
            emptied: AtomicBool::new(false),
            witness: AtomicPtr::new(ptr::null_mut()),
            follower: AtomicU64::new(0),
        }
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

    /// When loaded: later, a fork handler could not be registered, for that may allocate.
    pub fn protect(&self, control: &Control) {
        static HANDLED: AtomicBool = AtomicBool::new(false);
        if !self.empty_on_fork(control) {
            self.call_witness();
        }
        if !HANDLED.swap(true, Relaxed) {
            // SAFETY: what the handlers look at is there as long as this code is, and a library's
            // handlers go when it is unloaded.
            unsafe { libc::pthread_atfork(Some(before_fork), None, Some(in_child)) };
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

    fn before_fork(&self, control: &Control) {
        // Who was never attached to leaves what was left to it.
        if word!(control, generation).load(Relaxed) != 0 {
            let words = Words {
                socket: word!(control, follow_socket),
                claim: word!(control, follow_claim),
                holder: word!(control, claim.nonce),
            };
            self.follower.store(words.follower().map_or(0, |(_, socket)| socket), Relaxed);
        }
    }

    fn in_child(&self, buffer: &Buffer) {
        let control = buffer.control;
        if !self.emptied.load(Relaxed) {
            self.empty(control);
        }
        let follower = self.follower.load(Relaxed);
        let waits = follower & WAITS != 0;
        // Where the gate is open, another buffer's hello was enough.
        if follower != 0 && !control.on() && !greet(follower, waits) {
            self.follower.store(0, Relaxed);
        }
        // What we have made is fetched while we wait: the program may close every descriptor.
        if waits && map_early(buffer) {
            greet(follower, true);
        }
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

unsafe extern "C" fn before_fork() {
    buffers().for_each(|it| it.guard.before_fork(it.control));
}

unsafe extern "C" fn in_child() {
    let saved = errno();
    buffers().for_each(|it| it.guard.in_child(it));
    set_errno(saved);
}
