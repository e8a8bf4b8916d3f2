//! How a target reads the words that an agent wrote into its control page.
//!
//! An agent writes from outside, in steps: it sets the gate to 0 if it was open, writes the
//! description of a segment, and writes the gate. Each step is a separate system call. So a reader
//! that sees a store of one step also sees those of earlier steps after an acquire. Within a step,
//! words arrive in any order.

use std::sync::atomic::Ordering::{Acquire, Relaxed};

use crate::word::SharedWord;

/// Returns the result of `read`, which reads the control page, if it belongs to `seen`, a value of
/// the gate that the caller has read relaxed. Returns `None` if the gate has changed since.
#[inline]
pub fn under<W: SharedWord, T>(gate: &W, seen: u64, read: impl FnOnce() -> T) -> Option<T> {
    // A reader that saw this gate also sees everything that was written before it.
    W::fence(Acquire);
    let read = read();
    // A reader that saw a word written later also sees that the gate has changed.
    W::fence(Acquire);
    (gate.load(Relaxed) == seen).then_some(read)
}
