//! The bound of the memory that the kernel locks for rings of records, which all processes share.

use std::io;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};

use crate::perf::{PerfEvent, PerfRing, page_size};

/// The largest and the smallest ring of records, in bytes.
const MAX_RING_BYTES: u64 = 4 << 20;
const MIN_RING_BYTES: u64 = 64 << 10;
/// A process gets the remaining memory divided by this, so that some is left for later ones.
const DIVISOR: u64 = 4;

/// The memory for the rings of all processes.
#[derive(Debug, Clone)]
pub(crate) struct Memory {
    limit: u64,
    used: Arc<AtomicU64>,
}

/// The memory of the rings of a process, returned when this is dropped.
#[derive(Debug)]
pub(crate) struct Share {
    bytes: u64,
    used: Arc<AtomicU64>,
}

impl Drop for Share {
    fn drop(&mut self) {
        self.used.fetch_sub(self.bytes, Relaxed);
    }
}

impl Memory {
    pub fn new(limit: u64) -> Self {
        Self { limit, used: Arc::default() }
    }

    /// The size of each of `rings` rings of another process in bytes, a power of two: the smallest if no memory
    /// is left.
    pub fn ring_bytes(&self, rings: usize) -> usize {
        let left = self.limit.saturating_sub(self.used.load(Relaxed));
        let most = (left / DIVISOR / rings.max(1) as u64).clamp(min_ring_bytes(), MAX_RING_BYTES);
        1 << most.ilog2()
    }

    /// Takes `bytes` for rings.
    pub fn take(&self, bytes: u64) -> Share {
        self.used.fetch_add(bytes, Relaxed);
        Share { bytes, used: self.used.clone() }
    }
}

/// The size of the smallest ring in bytes.
pub(crate) fn min_ring_bytes() -> u64 {
    MIN_RING_BYTES.max(page_size() as u64)
}

/// Marks that an error is not about rights to the event, but about the memory of its ring.
pub(crate) fn no_memory(error: io::Error) -> io::Error {
    io::Error::other(format!("no memory for its records: {error}"))
}

/// Maps the ring of an event: the largest up to `bytes` that the kernel allows ppt to lock.
pub(crate) fn map_ring(event: &PerfEvent, mut bytes: usize) -> io::Result<PerfRing> {
    loop {
        match PerfRing::map(event, bytes) {
            Err(error)
                if error.kind() == io::ErrorKind::PermissionDenied
                    && bytes as u64 > min_ring_bytes() =>
            {
                bytes /= 2;
            }
            done => return done,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn many_processes_share_a_bound() {
        let memory = Memory::new(256 << 20);
        let mut shares = Vec::new();
        for process in 0..1000 {
            let bytes = memory.ring_bytes(2) as u64;
            assert!(bytes.is_power_of_two());
            assert_eq!(bytes == MAX_RING_BYTES, process < 29, "the first ones have large rings");
            shares.push(memory.take(2 * bytes));
        }
        let used = memory.used.load(Relaxed);
        assert!(used <= (256 << 20) + 1000 * 2 * min_ring_bytes(), "{used}");
        assert_eq!(memory.ring_bytes(2) as u64, min_ring_bytes());
        shares.clear();
        assert_eq!(memory.ring_bytes(2) as u64, MAX_RING_BYTES, "what has ended takes none");
        assert_eq!(memory.ring_bytes(1024) as u64, 64 << 10, "one for each CPU of a large machine");
    }
}
