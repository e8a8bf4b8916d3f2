//! Unpredictable random numbers.

use rustix::rand::{GetRandomFlags, getrandom};

/// An unpredictable number.
pub(super) fn random() -> u64 {
    let mut bytes = [0; 8];
    // Up to 256 bytes, getrandom(2) does not fail once the system is up.
    while getrandom(&mut bytes, GetRandomFlags::empty()) != Ok(bytes.len()) {}
    u64::from_le_bytes(bytes)
}
