//! How a target reads what an agent wrote into its control page.
//!
//! An agent writes from outside, in steps: the gate to 0, where it was open; the description of a
//! segment; the gate. Each step is a system call of its own, and so whoever sees a store of one
//! also sees those of the steps before it, once it asks for that by an acquire. Within a step words
//! arrive in any order.

use std::sync::atomic::Ordering::{Acquire, Relaxed};

use crate::word::Word;

/// Returns what `read` finds in the control page, if that belongs to `seen`, a value of the gate
/// that the caller has read relaxed. Returns `None` if the gate has changed since.
#[inline]
pub fn under<W: Word, T>(gate: &W, seen: u64, read: impl FnOnce() -> T) -> Option<T> {
    // A reader that saw this gate also sees all that was written before it.
    W::fence(Acquire);
    let read = read();
    // A reader that saw a word that was written later also sees that the gate has changed.
    W::fence(Acquire);
    (gate.load(Relaxed) == seen).then_some(read)
}
