//! How `ppt` learns of the children that a process forks.
//!
//! In the control page of a process whose forks it follows, an agent leaves the name of a socket,
//! under its claim. Before a fork, the parent's fork handler keeps it where the child finds it (the
//! control page is empty in a child), and the child's connects to that socket. That is all it says:
//! who it is the kernel tells, and what it is `ppt` finds out.

use std::sync::atomic::Ordering::{Acquire, Relaxed};

use crate::word::Word;

/// Set in the name of a socket: who says hello waits until the connection is closed.
pub const WAITS: u64 = 1;

/// The name of a socket in the abstract namespace.
pub fn name(socket: u64) -> [u8; 20] {
    let mut name = *b"ppt-0000000000000000";
    for (at, digit) in name[4..].iter_mut().enumerate() {
        *digit = b"0123456789abcdef"[(socket >> (60 - 4 * at)) as usize & 15];
    }
    name
}

/// The words of a control page that say who follows a process.
#[derive(Debug)]
pub struct Words<'a, W> {
    /// [`crate::abi::Control::follow_socket`]
    pub socket: &'a W,
    /// [`crate::abi::Control::follow_claim`]
    pub claim: &'a W,
    /// The nonce of [`crate::abi::Control::claim`].
    pub holder: &'a W,
}

impl<W: Word> Words<'_, W> {
    /// Whoever follows this process: their claim and their socket.
    ///
    /// An agent writes `holder`, `socket`, and `claim`, each by a system call of its own.
    pub fn follower(&self) -> Option<(u64, u64)> {
        let claim = self.claim.load(Relaxed);
        // Who saw this claim sees the socket that was written before it.
        W::fence(Acquire);
        let socket = self.socket.load(Relaxed);
        // Who saw the next socket sees the next holder.
        W::fence(Acquire);
        (claim != 0 && self.holder.load(Relaxed) == claim).then_some((claim, socket))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_hexadecimal() {
        assert_eq!(&name(0), b"ppt-0000000000000000");
        assert_eq!(&name(0x0123_4567_89ab_cdef), b"ppt-0123456789abcdef");
        assert_eq!(&name(u64::MAX), b"ppt-ffffffffffffffff");
    }
}
