//! How `ppt` finds the children that a process forks.
//!
//! An agent that follows the forks of a process stores the name of a socket in its control page,
//! under its claim. Before a fork, the parent's fork handler copies that name to a location that
//! the child can read, because the control page is empty in a child. The child's handler connects
//! to the socket and sends nothing. The kernel reports the child's pid, and `ppt` examines that
//! process.

use std::sync::atomic::Ordering::{Acquire, Relaxed};

use crate::word::SharedWord;

/// A bit of a socket's name: a child that connects waits until the connection is closed.
pub const WAITS: u64 = 1;

/// The name of a socket in the abstract namespace.
pub fn name(socket: u64) -> [u8; 20] {
    let mut name = *b"ppt-0000000000000000";
    for (at, digit) in name[4..].iter_mut().enumerate() {
        *digit = b"0123456789abcdef"[(socket >> (60 - 4 * at)) as usize & 15];
    }
    name
}

/// The words of a control page that state which agent follows a process.
#[derive(Debug)]
pub struct FollowWords<'a, W> {
    /// [`crate::abi::Control::follow_socket`]
    pub socket: &'a W,
    /// [`crate::abi::Control::follow_claim`]
    pub claim: &'a W,
    /// The nonce of [`crate::abi::Control::claim`].
    pub holder: &'a W,
}

impl<W: SharedWord> FollowWords<'_, W> {
    /// Returns the claim and the socket of the agent that follows this process.
    ///
    /// An agent writes `holder`, `socket`, and `claim`, each by a separate system call.
    pub fn follower(&self) -> Option<(u64, u64)> {
        let claim = self.claim.load(Relaxed);
        // A reader that saw this claim also sees the socket, which was written before it.
        W::fence(Acquire);
        let socket = self.socket.load(Relaxed);
        // A reader that saw the next socket also sees the next holder.
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
