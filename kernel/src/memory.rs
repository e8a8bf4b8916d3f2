//! The memory that rings of records take, which the kernel locks: all processes share a bound.

use std::io;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};

use crate::perf::{PerfEvent, PerfRing, page_size};

/// Bytes of a ring of records, if there is so much memory, and the least.
const RING_BYTES: u64 = 4 << 20;
const LEAST_RING_BYTES: u64 = 64 << 10;
/// A process gets one part in this many of what is left, so that there is some for those that come later.
const PART: u64 = 4;

/// Bytes that the rings of all processes may take.
#[derive(Debug, Clone)]
pub(crate) struct Memory {
    limit: u64,
    used: Arc<AtomicU64>,
}

/// What the rings of a process take, until this is dropped.
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

    /// Bytes for each of `rings` rings of another process, a power of two: the least if there is no
    /// memory left.
    pub fn ring_bytes(&self, rings: usize) -> usize {
        let left = self.limit.saturating_sub(self.used.load(Relaxed));
        let most = (left / PART / rings.max(1) as u64).clamp(least(), RING_BYTES);
        1 << most.ilog2()
    }

    /// Counts rings of `bytes` bytes.
    pub fn take(&self, bytes: u64) -> Share {
        self.used.fetch_add(bytes, Relaxed);
        Share { bytes, used: self.used.clone() }
    }
}

/// Bytes of the smallest ring.
pub(crate) fn least() -> u64 {
    LEAST_RING_BYTES.max(page_size() as u64)
}

/// The error of a ring that the kernel does not let ppt map. It is not about the right to the event.
pub(crate) fn no_memory(error: io::Error) -> io::Error {
    io::Error::other(format!("no memory for its records: {error}"))
}

/// The ring of an event: the largest, up to `bytes`, that the kernel lets ppt lock.
pub(crate) fn map_ring(event: &PerfEvent, mut bytes: usize) -> io::Result<PerfRing> {
    loop {
        match PerfRing::map(event, bytes) {
            Err(error)
                if error.kind() == io::ErrorKind::PermissionDenied && bytes as u64 > least() =>
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
            assert_eq!(bytes == RING_BYTES, process < 29, "the first ones have large rings");
            shares.push(memory.take(2 * bytes));
        }
        let used = memory.used.load(Relaxed);
        assert!(used <= (256 << 20) + 1000 * 2 * least(), "{used}");
        assert_eq!(memory.ring_bytes(2) as u64, least());
        shares.clear();
        assert_eq!(memory.ring_bytes(2) as u64, RING_BYTES, "what has ended takes none");
        assert_eq!(memory.ring_bytes(1024) as u64, 64 << 10, "one for each CPU of a large machine");
    }
}
