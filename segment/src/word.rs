//! The memory words of the ring protocol.
//!
//! The protocol is generic over its word, so that a model checker runs the production code, and so
//! that a test can weaken one ordering and see the model fail.

use std::sync::atomic::{AtomicU64, Ordering};

/// A 64-bit word that another process or thread may read and write at any time.
pub trait SharedWord {
    /// Atomic load.
    fn load(&self, order: Ordering) -> u64;
    /// Atomic store.
    fn store(&self, value: u64, order: Ordering);
    /// Strong compare-and-swap; `Err` holds the previous value.
    ///
    /// # Errors
    /// The value that was there instead of `current`.
    fn compare_exchange(
        &self,
        current: u64,
        new: u64,
        success: Ordering,
        failure: Ordering,
    ) -> Result<u64, u64>;
    /// Adds with [`Ordering::Relaxed`]; only for counters of refused frames and releases.
    fn add(&self, value: u64);
    /// Thread fence.
    fn fence(order: Ordering);
}

impl SharedWord for AtomicU64 {
    #[inline(always)]
    fn load(&self, order: Ordering) -> u64 {
        AtomicU64::load(self, order)
    }
    #[inline(always)]
    fn store(&self, value: u64, order: Ordering) {
        AtomicU64::store(self, value, order);
    }
    #[inline(always)]
    fn compare_exchange(
        &self,
        current: u64,
        new: u64,
        success: Ordering,
        failure: Ordering,
    ) -> Result<u64, u64> {
        AtomicU64::compare_exchange(self, current, new, success, failure)
    }
    #[inline(always)]
    fn add(&self, value: u64) {
        self.fetch_add(value, Ordering::Relaxed);
    }
    #[inline(always)]
    fn fence(order: Ordering) {
        std::sync::atomic::fence(order);
    }
}

/// The form of a copied word in the reader's memory.
pub trait Copied {
    /// Converts a word of shared memory.
    fn copied(word: u64) -> Self;
}

impl Copied for u64 {
    #[inline(always)]
    fn copied(word: u64) -> Self {
        word
    }
}

/// The byte order of captures.
impl Copied for [u8; 8] {
    #[inline(always)]
    fn copied(word: u64) -> Self {
        word.to_le_bytes()
    }
}
