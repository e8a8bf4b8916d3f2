//! The list of buffers.

use std::iter;
use std::ptr;
use std::sync::atomic::AtomicPtr;
use std::sync::atomic::Ordering::{AcqRel, Acquire, Relaxed};

use super::descriptor::Buffer;

/// The first buffer; each leads to the next.
static BUFFERS: AtomicPtr<Buffer> = AtomicPtr::new(ptr::null_mut());

/// Adds a buffer, which is not in the list.
pub(super) fn add(buffer: &'static Buffer) {
    let me = (&raw const *buffer).cast_mut();
    let mut first = BUFFERS.load(Relaxed);
    loop {
        buffer.next.store(first, Relaxed);
        match BUFFERS.compare_exchange(first, me, AcqRel, Relaxed) {
            Ok(_) => return,
            Err(other) => first = other,
        }
    }
}

/// All loaded buffers.
pub(super) fn buffers() -> impl Iterator<Item = &'static Buffer> {
    // SAFETY: the list is of statics (`add` takes nothing else), which are there as long as this
    // code is.
    let at = |next: &AtomicPtr<Buffer>| unsafe { next.load(Acquire).as_ref() };
    iter::successors(at(&BUFFERS), move |buffer: &&'static Buffer| at(&buffer.next))
}
