//! The ownership of a ring: claim, release, and the history of owners, which shows which thread
//! wrote which frames.
//!
//! A claim changes `{epoch, state}` by one compare-and-swap, then fills history entry
//! `epoch % 4`. The history is a cursor ring of its own: its cursor is the epoch.

use std::sync::atomic::Ordering::{AcqRel, Acquire, Relaxed, Release};

use crate::abi::{OWNER_HISTORY, ring_state, ring_word};
use crate::ring::Ring;
use crate::word::SharedWord;

/// The owner word of a ring.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct OwnerWord {
    /// Number of claims so far.
    pub epoch: u32,
    /// One of [`ring_state`].
    pub state: u32,
}

impl OwnerWord {
    fn word(self) -> u64 {
        (self.epoch as u64) << 32 | self.state as u64
    }
    fn from_word(word: u64) -> Self {
        Self { epoch: (word >> 32) as u32, state: word as u32 }
    }
}

/// A thread that owned, or owns, a ring.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Tenure {
    /// First sequence number that the thread may have written.
    pub first_seq: u64,
    /// The thread id in the target's pid namespace.
    pub tid: u32,
}

impl<W: SharedWord> Ring<'_, W> {
    /// The owner word.
    pub fn owner(&self) -> OwnerWord {
        OwnerWord::from_word(self.header(ring_word::OWNER).load(Acquire))
    }

    /// Makes the calling thread the owner, if the ring is free.
    pub fn claim(&self, tid: u32) -> bool {
        let word = self.header(ring_word::OWNER);
        let free = OwnerWord::from_word(word.load(Relaxed));
        let epoch = free.epoch.wrapping_add(1);
        let active = OwnerWord { epoch, state: ring_state::ACTIVE };
        if free.state != ring_state::FREE
            || word.compare_exchange(free.word(), active.word(), AcqRel, Relaxed).is_err()
        {
            return false;
        }
        // A reader of an entry of this epoch also reads an owner word of at least this epoch.
        W::fence(Release);
        let first_seq = self.header(ring_word::TAIL).load(Relaxed).wrapping_add(1);
        self.history(epoch, 0).store(first_seq, Relaxed);
        self.history(epoch, 1).store((epoch as u64) << 32 | tid as u64, Release);
        true
    }

    /// Releases the ring. `epoch` is the claim to release. Returns false if it was not held.
    pub fn release(&self, epoch: u32) -> bool {
        let active = OwnerWord { epoch, state: ring_state::ACTIVE };
        let free = OwnerWord { epoch, state: ring_state::FREE };
        self.header(ring_word::OWNER)
            .compare_exchange(active.word(), free.word(), Release, Relaxed)
            .is_ok()
    }

    /// The thread of claim `epoch`. `None` if four other claims followed, or the thread is not
    /// known yet.
    pub fn tenure(&self, epoch: u32) -> Option<Tenure> {
        let identity = self.history(epoch, 1).load(Acquire);
        let first_seq = self.history(epoch, 0).load(Relaxed);
        W::fence(Acquire);
        let now = OwnerWord::from_word(self.header(ring_word::OWNER).load(Relaxed)).epoch;
        let whole = now.wrapping_sub(epoch) < OWNER_HISTORY as u32;
        (whole && (identity >> 32) as u32 == epoch && epoch != 0)
            .then_some(Tenure { first_seq, tid: identity as u32 })
    }

    fn history(&self, epoch: u32, word: usize) -> &W {
        let entry = epoch as usize % OWNER_HISTORY;
        self.header(ring_word::HISTORY + entry * ring_word::OWNER_WORDS + word)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ring::RingWriter;
    use std::sync::atomic::AtomicU64;

    #[test]
    fn owners_follow_each_other() {
        let header: Vec<_> = (0..ring_word::COUNT).map(|_| AtomicU64::new(0)).collect();
        let slots: Vec<_> = (0..8).map(|_| AtomicU64::new(0)).collect();
        let ring = Ring::new(&header, &slots, 2);
        assert_eq!(ring.tenure(0), None);
        for epoch in 1..=6u32 {
            assert!(ring.claim(100 + epoch));
            assert!(!ring.claim(999), "an owned ring is not free");
            RingWriter::new(ring).write([0]);
            assert!(!ring.release(epoch + 1));
            assert!(ring.release(epoch));
        }
        assert_eq!(ring.tenure(2), None, "forgotten");
        for epoch in 3..=6 {
            let tenure = Tenure { first_seq: epoch as u64, tid: 100 + epoch };
            assert_eq!(ring.tenure(epoch), Some(tenure));
        }
        assert_eq!(ring.tenure(7), None, "not claimed yet");
    }
}
