//! Random indices for resampling.

use rand_chacha::ChaCha8Rng;
use rand_chacha::rand_core::{RngCore, SeedableRng};

/// Draws random indices from a seed. The same seed gives the same indices on every machine.
#[derive(Debug, Clone)]
pub struct Resampler(ChaCha8Rng);

impl Resampler {
    /// Starts the sequence of a seed.
    pub fn new(seed: u64) -> Resampler {
        Resampler(ChaCha8Rng::seed_from_u64(seed))
    }

    /// A random number below `count`, uniform to 1 in 2^32; 0 if `count` is 0.
    pub fn below(&mut self, count: usize) -> usize {
        ((u128::from(self.0.next_u64()) * count as u128) >> 64) as usize
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn drawn(seed: u64, count: usize) -> Vec<usize> {
        let mut resampler = Resampler::new(seed);
        (0..10_000).map(|_| resampler.below(count)).collect()
    }

    #[test]
    fn a_seed_gives_one_sequence_of_uniform_indices() {
        let first = drawn(1, 5);
        assert_eq!(first, drawn(1, 5));
        assert_ne!(first, drawn(2, 5));
        for index in 0..5 {
            let times = first.iter().filter(|&&other| other == index).count();
            // 2000 ± 40 are expected.
            assert!((1_800..=2_200).contains(&times), "{index}: {times}");
        }
        assert!(first.iter().all(|&index| index < 5));
        assert!(drawn(1, 1).iter().all(|&index| index == 0));
    }
}
