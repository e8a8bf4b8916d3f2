//! Random numbers, which serve as unique names.

use rustix::rand::GetRandomFlags;

/// A random number.
pub fn random() -> u64 {
    let mut bytes = [0; 8];
    if rustix::rand::getrandom(&mut bytes, GetRandomFlags::empty()) == Ok(bytes.len()) {
        u64::from_le_bytes(bytes)
    } else {
        // Only before Linux 3.17, or where a filter forbids the call. The number only has to be
        // unique.
        let now = rustix::time::clock_gettime(rustix::time::ClockId::Monotonic);
        (now.tv_nsec as u64) << 32 ^ now.tv_sec as u64 ^ u64::from(std::process::id()) << 16
    }
}

pub(crate) fn random_nonzero() -> u64 {
    random().max(1)
}
