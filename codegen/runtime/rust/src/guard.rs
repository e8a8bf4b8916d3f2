//! Keeps a forked child from using the control page of its parent.

use std::ptr;
use std::sync::atomic::Ordering::Relaxed;
use std::sync::atomic::{AtomicBool, AtomicPtr, AtomicU64};

use ppt_segment::follow::FollowWords;

use super::control::{Control, word};
use super::errno::errno;

const PAGE: usize = ppt_segment::abi::PAGE as usize;

/// The guard of a buffer in forked children.
#[derive(Debug)]
pub(super) struct Guard {
    /// A fork empties the control page.
    emptied: AtomicBool,
    /// A page that forks omit, if the kernel does not empty the control page. A process with this page shares
    /// the memory of this one.
    witness: AtomicPtr<libc::c_void>,
    /// The word that a process leaves to its children: the socket of the ppt that follows it, or 0.
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

    /// Has forks empty the page. Returns whether they will.
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

    /// Makes the witness.
    pub fn call_witness(&self) {
        let (none, private) = (libc::PROT_NONE, libc::MAP_PRIVATE | libc::MAP_ANONYMOUS);
        // SAFETY: a new page, which nobody looks into.
        let marked = unsafe {
            let page = libc::mmap(ptr::null_mut(), PAGE, none, private, -1, 0);
            let made = page != libc::MAP_FAILED;
            (made && libc::madvise(page, PAGE, libc::MADV_DONTFORK) == 0).then_some(page)
        };
        self.witness.store(marked.unwrap_or(ptr::null_mut()), Relaxed);
    }

    /// Whether the control page is a copy from another process, made by a fork.
    pub fn copied(&self) -> bool {
        let witness = self.witness.load(Relaxed);
        let mut there = 0;
        !self.emptied.load(Relaxed)
            && !witness.is_null()
            // SAFETY: asks about an address, and answers with a byte.
            && unsafe { libc::mincore(witness, 1, &mut there) } != 0
            && errno() == libc::ENOMEM
    }

    /// Empties a copy, as the fork should have done.
    pub fn empty(&self, control: &Control) {
        control.empty();
        self.call_witness();
    }

    /// Stores the word for children.
    pub fn before_fork(&self, control: &Control) {
        // A process that ppt never attached to passes on the word that its parent left to it. So does
        // one that ppt attaches to just now: the claim is there, and the socket is not.
        if word!(control, generation).load(Relaxed) == 0 {
            return;
        }
        let words = FollowWords {
            socket: word!(control, follow_socket),
            claim: word!(control, follow_claim),
            holder: word!(control, claim.nonce),
        };
        let socket = words.follower().map_or(0, |(_, socket)| socket);
        if socket != 0 || words.holder.load(Relaxed) == 0 {
            self.follower.store(socket, Relaxed);
        }
    }

    /// Empties the control page in a child. Returns the word of its parent.
    pub fn forked(&self, control: &Control) -> u64 {
        if !self.emptied.load(Relaxed) {
            self.empty(control);
        }
        self.follower.load(Relaxed)
    }

    /// Notes in a child that no ppt follows it.
    pub fn alone(&self) {
        self.follower.store(0, Relaxed);
    }

    /// Removes the witness before the code is unloaded.
    pub fn dismiss(&self) {
        let witness = self.witness.swap(ptr::null_mut(), Relaxed);
        if !witness.is_null() {
            // SAFETY: a page of our own, which nobody looks into.
            unsafe { libc::munmap(witness, PAGE) };
        }
    }
}
