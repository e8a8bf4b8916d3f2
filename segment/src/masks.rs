//! Masks: the frames, counters and histograms that a session has disabled.
//!
//! A thread that writes a frame loads the mask right before it. A flip takes effect at the next
//! load, and does not wait for any thread. So the effect on a ring is stated as a sequence number,
//! from which on its frames follow the mask: [`first_enabled`] and [`first_disabled`].

use std::sync::atomic::Ordering::Relaxed;

use crate::abi::{MASK_WORDS, MAX_FRAMES};
use crate::ring::Ring;
use crate::word::SharedWord;

/// The disabled bits: first one for each frame, then, from [`Self::metric`] on, one for each
/// counter or histogram.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Masks([u64; MASK_WORDS]);

impl Masks {
    /// No bit is disabled.
    pub const ALL_ENABLED: Masks = Masks([0; MASK_WORDS]);
    /// Number of bits.
    pub const BITS: u32 = MASK_WORDS as u32 * 64;

    /// The bit of counter or histogram `index` of a schema. The bit of a frame is its id.
    pub fn metric(index: u32) -> u32 {
        MAX_FRAMES as u32 + index
    }

    /// Whether `bit` belongs to a frame.
    pub fn is_frame(bit: u32) -> bool {
        (bit as usize) < MAX_FRAMES
    }

    /// Whether `bit` is enabled.
    pub fn is_enabled(&self, bit: u32) -> bool {
        self.0[bit as usize / 64] >> (bit % 64) & 1 == 0
    }

    /// Enables or disables `bit`.
    pub fn set(&mut self, bit: u32, enabled: bool) {
        let word = &mut self.0[bit as usize / 64];
        *word = *word & !(1 << (bit % 64)) | u64::from(!enabled) << (bit % 64);
    }

    /// The disabled bits.
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

    /// The words as in a control page.
    pub fn words(&self) -> [u64; MASK_WORDS] {
        self.0
    }
}

/// Writes the words of a mask page, which has only frames; a one enables. Returns whether a word
/// changed. Unchanged words are not written.
pub fn put<W: SharedWord>(enable: &[W], masks: &Masks) -> bool {
    let mut changed = false;
    for (word, disabled) in enable.iter().zip(masks.0) {
        if word.load(Relaxed) != !disabled {
            word.store(!disabled, Relaxed);
            changed = true;
        }
    }
    changed
}

/// Whether generated code continues with `bit` after it saw an open gate: `word` is the word of the
/// control page with the bit, `nonce` the claim that it belongs to, and `claim` that of the
/// session.
#[inline(always)]
pub fn is_wanted<W: SharedWord>(word: &W, bit: u32, nonce: &W, claim: &W) -> bool {
    word.load(Relaxed) >> (bit % 64) & 1 == 0 || nonce.load(Relaxed) != claim.load(Relaxed)
}

/// For frames that are about to be enabled: no such frame in the ring comes before this sequence
/// number.
pub fn first_enabled<W: SharedWord>(ring: Ring<'_, W>) -> u64 {
    ring.tail().saturating_add(1)
}

/// For frames that were disabled, after a barrier in every running thread: no such frame in the
/// ring has this sequence number or a later one. The frame after the cursor may be one: its thread
/// may have read the mask before.
pub fn first_disabled<W: SharedWord>(ring: Ring<'_, W>) -> u64 {
    ring.tail().saturating_add(2)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::atomic::AtomicU64;

    #[test]
    fn a_bit_is_one_name() {
        let mut masks = Masks::ALL_ENABLED;
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
