//! Deterministic numbers that look measured.

use rand::{RngCore, SeedableRng};
use rand_chacha::ChaCha8Rng;

/// Random numbers from a seed.
pub struct Chance(ChaCha8Rng);

impl Chance {
    pub fn new(seed: u64) -> Chance {
        Chance(ChaCha8Rng::seed_from_u64(seed))
    }

    /// A uniform number between 0 and 1.
    pub fn uniform(&mut self) -> f64 {
        ((self.0.next_u64() >> 11) as f64 + 0.5) / (1u64 << 53) as f64
    }

    /// A normal number with mean 0 and deviation 1 (Box, Muller).
    pub fn normal(&mut self) -> f64 {
        let length = (-2.0 * self.uniform().ln()).sqrt();
        length * (std::f64::consts::TAU * self.uniform()).cos()
    }

    /// An autoregressive series with the coefficient `follow` and deviation 1.
    pub fn following(&mut self, count: usize, follow: f64) -> Vec<f64> {
        let new = (1.0 - follow * follow).sqrt();
        let mut last = self.normal();
        (0..count)
            .map(|_| {
                let value = last;
                last = follow * last + new * self.normal();
                value
            })
            .collect()
    }
}
