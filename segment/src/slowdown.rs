//! The words in a segment's mask page by which the agent makes an interval take longer.

use std::sync::atomic::AtomicU64;
use std::sync::atomic::Ordering::{Relaxed, Release, SeqCst};
use std::sync::atomic::fence;

use crate::abi::{MAX_FRAMES, SlowdownWords};

/// An interval of a frame, and how much longer it takes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct SlowedInterval {
    /// The frame's id.
    pub frame: u16,
    /// The words of a slot with its start and its end.
    pub words: (u64, u64),
    /// The words of a slot, one bit each, that are stamps of the same clock.
    pub stamps: u64,
    /// 0 for `option time tsc`, otherwise the number of a clock in ns, plus 1.
    pub clock: u64,
    /// The wait, as a share of the length, times 2^32.
    pub share: u64,
    /// Whether its thread sleeps for so long; otherwise it waits on its CPU.
    pub sleeps: bool,
}

/// The words of one segment. Only its agent writes them.
#[derive(Debug, Clone, Copy)]
pub struct Slowdown<'a> {
    enable: &'a [AtomicU64],
    words: &'a [AtomicU64],
}

const fn word(offset: usize) -> usize {
    offset / 8
}

macro_rules! at {
    ($field:ident) => {
        word(std::mem::offset_of!(SlowdownWords, $field))
    };
}

/// Number of words.
pub(crate) const WORDS: usize = word(size_of::<SlowdownWords>());

impl<'a> Slowdown<'a> {
    pub(crate) fn new(enable: &'a [AtomicU64], words: &'a [AtomicU64]) -> Self {
        assert!(enable.len() == MAX_FRAMES / 64 && words.len() == WORDS);
        Self { enable, words }
    }

    /// From here on, the claim `session` may slow intervals down.
    pub fn begin(&self, session: u64) {
        self.words[at!(round)].store(0, Relaxed);
        self.words[at!(session)].store(session, Release);
    }

    /// The agent lives, at `mono_ns` of the target's monotonic clock.
    pub fn beat(&self, mono_ns: u64) {
        self.words[at!(beat)].store(mono_ns, Relaxed);
    }

    /// Slows an interval down. `round` is not 0.
    pub fn slow(&self, round: u64, interval: &SlowedInterval) {
        self.words[at!(round)].store(0, Relaxed);
        fence(SeqCst);
        let words = [
            (at!(frame), u64::from(interval.frame)),
            (at!(start), interval.words.0),
            (at!(end), interval.words.1),
            (at!(stamps), interval.stamps),
            (at!(clock), interval.clock),
            (at!(share), interval.share),
            (at!(sleeps), u64::from(interval.sleeps)),
        ];
        words.iter().for_each(|&(at, value)| self.words[at].store(value, Relaxed));
        self.words[at!(round)].store(round, Release);
        let (word, bit) = (usize::from(interval.frame) / 64, interval.frame % 64);
        self.enable[word].fetch_and(!(1 << bit), Release);
    }

    /// Nothing takes longer any more, and `frame` is no longer looked at.
    pub fn end(&self, frame: u16) {
        let (word, bit) = (usize::from(frame) / 64, frame % 64);
        self.enable[word].fetch_or(1 << bit, Release);
        self.words[at!(round)].store(0, Release);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_round_leaves_nothing_behind() {
        let enable: [AtomicU64; 4] = std::array::from_fn(|_| AtomicU64::new(u64::MAX));
        let words: [AtomicU64; WORDS] = Default::default();
        let slowdown = Slowdown::new(&enable, &words);
        slowdown.begin(7);
        slowdown.beat(99);
        let interval = SlowedInterval {
            frame: 70,
            words: (2, 3),
            stamps: 0b1100,
            clock: 0,
            share: 1 << 31,
            sleeps: true,
        };
        slowdown.slow(5, &interval);
        let said: Vec<u64> = words.iter().map(|word| word.load(Relaxed)).collect();
        assert_eq!(said, [7, 99, 5, 70, 2, 3, 0b1100, 0, 1 << 31, 1]);
        assert_eq!(enable[1].load(Relaxed), !64);
        slowdown.end(70);
        assert_eq!(words[at!(round)].load(Relaxed), 0);
        assert!(enable.iter().all(|word| word.load(Relaxed) == u64::MAX));
    }
}
