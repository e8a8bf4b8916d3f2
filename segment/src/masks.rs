//! Masks: which frames, counters and histograms a session does not want.
//!
//! Whoever writes a frame loads the mask right before it. A flip takes effect at the next look, and no
//! thread is waited for. So what can be said of a ring is a number, from which on its frames are as the
//! mask says: [`first_enabled`] and [`first_disabled`].

use std::sync::atomic::Ordering::Relaxed;

use crate::abi::{MASK_WORDS, MAX_FRAMES};
use crate::ring::Ring;
use crate::word::Word;

/// What is not wanted, by bits: first one for each frame, then, from [`Self::metric`] on, one for each
/// counter or histogram.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Masks([u64; MASK_WORDS]);

impl Masks {
    /// Everything is wanted.
    pub const NONE: Masks = Masks([0; MASK_WORDS]);
    /// Number of bits.
    pub const BITS: u32 = MASK_WORDS as u32 * 64;

    /// The bit of counter or histogram `index` of a schema. That of a frame is its id.
    pub fn metric(index: u32) -> u32 {
        MAX_FRAMES as u32 + index
    }

    /// Whether `bit` is the one of a frame.
    pub fn is_frame(bit: u32) -> bool {
        (bit as usize) < MAX_FRAMES
    }

    /// Whether what has this bit is wanted.
    pub fn is_enabled(&self, bit: u32) -> bool {
        self.0[bit as usize / 64] >> (bit % 64) & 1 == 0
    }

    /// Says whether what has this bit is wanted.
    pub fn set(&mut self, bit: u32, enabled: bool) {
        let word = &mut self.0[bit as usize / 64];
        *word = *word & !(1 << (bit % 64)) | u64::from(!enabled) << (bit % 64);
    }

    /// The bits of what is not wanted.
    pub fn disabled(&self) -> impl Iterator<Item = u32> + use<> {
        let masks = *self;
        (0..Self::BITS).filter(move |&bit| !masks.is_enabled(bit))
    }

    /// The bits that differ, and whether they are enabled in `self`.
    pub fn changes_from(&self, before: &Masks) -> impl Iterator<Item = (u32, bool)> + use<> {
        let (now, before) = (*self, *before);
        (0..Self::BITS)
            .map(move |bit| (bit, now.is_enabled(bit), before.is_enabled(bit)))
            .filter(|(_, now, before)| now != before)
            .map(|(bit, now, _)| (bit, now))
    }

    /// The words, as a control page has them.
    pub fn words(&self) -> [u64; MASK_WORDS] {
        self.0
    }
}

/// Writes the words of a mask page: frames alone, each enabled by a one. Returns whether that changed
/// any; a word that stays as it is is not touched.
pub fn put<W: Word>(enable: &[W], masks: &Masks) -> bool {
    let mut changed = false;
    for (word, disabled) in enable.iter().zip(masks.0) {
        if word.load(Relaxed) != !disabled {
            word.store(!disabled, Relaxed);
            changed = true;
        }
    }
    changed
}

/// Whether generated code goes on with what has `bit`, after it saw an open gate: `word` is the one of
/// the control page with the bit, `nonce` the name of the claim that it belongs to, and `claim` that of
/// the session.
#[inline(always)]
pub fn is_wanted<W: Word>(word: &W, bit: u32, nonce: &W, claim: &W) -> bool {
    word.load(Relaxed) >> (bit % 64) & 1 == 0 || nonce.load(Relaxed) != claim.load(Relaxed)
}

/// Of a ring whose frames of some kind are about to be enabled: none before this number is one.
pub fn first_enabled<W: Word>(ring: Ring<'_, W>) -> u64 {
    ring.tail().saturating_add(1)
}

/// Of a ring whose frames of some kind were disabled, after a barrier in every thread that runs: no
/// frame from this number on is one. The frame after the cursor may be: its thread may have looked at
/// the mask before.
pub fn first_disabled<W: Word>(ring: Ring<'_, W>) -> u64 {
    ring.tail().saturating_add(2)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::atomic::AtomicU64;

    #[test]
    fn a_bit_is_one_name() {
        let mut masks = Masks::NONE;
        for bit in [0, 63, 64, 255, Masks::metric(0), Masks::metric(255)] {
            masks.set(bit, false);
        }
        assert_eq!(masks.disabled().collect::<Vec<_>>(), [0, 63, 64, 255, 256, 511]);
        assert!(Masks::is_frame(255) && !Masks::is_frame(Masks::metric(0)));
        let before = masks;
        masks.set(64, true);
        masks.set(1, false);
        assert_eq!(masks.changes_from(&before).collect::<Vec<_>>(), [(1, false), (64, true)]);
        let page: [AtomicU64; 4] = Default::default();
        assert!(put(&page, &masks) && !put(&page, &masks));
        let words = page.map(AtomicU64::into_inner);
        assert_eq!(words, [!(1 | 2 | 1 << 63), !0, !0, !(1 << 63)]);
    }

    #[test]
    fn words_of_another_claim_mean_nothing() {
        let [word, nonce, claim] = [1 << 5, 7, 7].map(AtomicU64::new);
        assert!(!is_wanted(&word, 5, &nonce, &claim) && is_wanted(&word, 6, &nonce, &claim));
        claim.store(8, Relaxed);
        assert!(is_wanted(&word, 5, &nonce, &claim));
    }
}
