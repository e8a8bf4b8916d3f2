//! How far readers are, and whether anybody still waits for them.

use std::sync::atomic::{AtomicBool, AtomicU64, Ordering::Relaxed};

/// How far readers of a set are, and whether anybody still waits for them. Any thread may ask.
#[derive(Debug, Default)]
pub struct ScanProgress {
    planned: AtomicU64,
    read: AtomicU64,
    cancelled: AtomicBool,
}

impl ScanProgress {
    /// Bytes of captures that were read, and that are to be read by what has begun.
    pub fn bytes(&self) -> (u64, u64) {
        let read = self.read.load(Relaxed);
        (read, self.planned.load(Relaxed).max(read))
    }

    /// Has readers stop: they fail with [`TableError::Cancelled`](crate::TableError::Cancelled).
    pub fn cancel(&self) {
        self.cancelled.store(true, Relaxed);
    }

    /// The next question begins.
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
