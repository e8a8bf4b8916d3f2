//! Numbers that nobody can guess.

use rustix::rand::{GetRandomFlags, getrandom};

/// A number.
pub(super) fn random() -> u64 {
    let mut bytes = [0; 8];
    // It fails for no length of at most 256 bytes once the system is up.
    while getrandom(&mut bytes, GetRandomFlags::empty()) != Ok(bytes.len()) {}
    u64::from_le_bytes(bytes)
}
