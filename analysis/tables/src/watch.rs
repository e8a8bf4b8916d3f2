//! Progress and cancellation of the readers of a set.

use std::sync::atomic::{AtomicBool, AtomicU64, Ordering::Relaxed};

/// Progress of the readers of a set, and their cancellation. Usable from any thread.
#[derive(Debug, Default)]
pub struct ScanProgress {
    planned: AtomicU64,
    read: AtomicU64,
    cancelled: AtomicBool,
}

impl ScanProgress {
    /// Bytes that were read, and bytes that the running scans read in total.
    pub fn bytes(&self) -> (u64, u64) {
        let read = self.read.load(Relaxed);
        (read, self.planned.load(Relaxed).max(read))
    }

    /// Makes readers fail with [`TableError::Cancelled`](crate::TableError::Cancelled).
    pub fn cancel(&self) {
        self.cancelled.store(true, Relaxed);
    }

    /// Resets progress and cancellation for the next query.
    pub fn reset(&self) {
        self.planned.store(0, Relaxed);
        self.read.store(0, Relaxed);
        self.cancelled.store(false, Relaxed);
    }

    pub(crate) fn plan(&self, bytes: u64) {
        self.planned.fetch_add(bytes, Relaxed);
    }

    pub(crate) fn count(&self, bytes: u64) {
        self.read.fetch_add(bytes, Relaxed);
    }

    pub(crate) fn is_cancelled(&self) -> bool {
        self.cancelled.load(Relaxed)
    }
}
