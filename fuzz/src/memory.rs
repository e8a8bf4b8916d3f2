//! An allocator that refuses what goes beyond a bound.

use std::alloc::{GlobalAlloc, Layout, System};
use std::sync::atomic::{AtomicUsize, Ordering::Relaxed};

/// The system's allocator, counting; for `#[global_allocator]`.
#[derive(Debug)]
pub struct Bounded;

static LIVE: AtomicUsize = AtomicUsize::new(0);
static LIMIT: AtomicUsize = AtomicUsize::new(usize::MAX);

/// Runs `work`, which may allocate `bytes` more than is allocated now, on all threads together.
pub(crate) fn limited(bytes: usize, work: impl FnOnce()) {
    LIMIT.store(LIVE.load(Relaxed).saturating_add(bytes), Relaxed);
    work();
    LIMIT.store(usize::MAX, Relaxed);
}

// SAFETY: every call goes to the system's allocator with the arguments that it came with. A null
// pointer says that there is no memory, as the trait allows.
unsafe impl GlobalAlloc for Bounded {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        let before = LIVE.fetch_add(layout.size(), Relaxed);
        if before.saturating_add(layout.size()) > LIMIT.load(Relaxed) {
            // Room for the message that there is none.
            LIMIT.store(usize::MAX, Relaxed);
            LIVE.fetch_sub(layout.size(), Relaxed);
            return std::ptr::null_mut();
        }
        // SAFETY: as the caller guarantees.
        unsafe { System.alloc(layout) }
    }

    unsafe fn dealloc(&self, memory: *mut u8, layout: Layout) {
        LIVE.fetch_sub(layout.size(), Relaxed);
        // SAFETY: as the caller guarantees; it came from `System`.
        unsafe { System.dealloc(memory, layout) }
    }
}
