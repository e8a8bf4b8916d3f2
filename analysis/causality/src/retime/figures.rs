//! The distribution of a metric, and the confidence interval of its mean.

use ppt_stats::{Resampler, quantile};

use super::metric::Ratios;

/// The distribution of a metric: lengths in ns, or rates in 1/s.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Figures {
    /// The number of lengths or ends.
    pub n: usize,
    /// The mean; of a rate, all ends by the whole time.
    pub mean: f64,
    /// The median; of a rate, over about √n stretches with √n ends each.
    pub p50: f64,
    /// The 95th percentile.
    pub p95: f64,
    /// The 99th percentile.
    pub p99: f64,
}

impl Figures {
    pub(super) fn new(ratios: &Ratios) -> Figures {
        let pairs = ratios.numerators.iter().zip(&ratios.denominators);
        let mut values: Vec<f64> =
            pairs.map(|(numerator, denominator)| numerator / denominator).collect();
        values.sort_unstable_by(f64::total_cmp);
        let at = |share| quantile(&values, share).unwrap_or(f64::NAN);
        let (p50, p95, p99) = (at(0.5), at(0.95), at(0.99));
        Figures { n: ratios.count, mean: ratios.mean(), p50, p95, p99 }
    }
}

/// The parameters of confidence intervals that come from resampling blocks: successive values of a run, or the
/// permutations of an experiment. The same seed gives the same numbers on every machine.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct BlockBootstrap {
    /// The number of resamples.
    pub count: usize,
    /// The seed of the random numbers.
    pub seed: u64,
    /// The confidence level, below 1.
    pub level: f64,
}

impl Default for BlockBootstrap {
    fn default() -> Self {
        BlockBootstrap { count: 1000, seed: 1, level: 0.95 }
    }
}

/// The number of blocks of successive values: values are correlated, but so few blocks are nearly independent.
const BLOCKS: usize = 48;

impl BlockBootstrap {
    /// Confidence intervals by resampling the blocks of both series together. None if there are too few values.
    pub(super) fn intervals(&self, was: &Ratios, now: &Ratios) -> Option<MeanIntervals> {
        let values = was.numerators.len().min(now.numerators.len());
        if values < 3 {
            return None;
        }
        let blocks = values.min(BLOCKS);
        let sums = |values: &[f64]| -> Vec<f64> {
            let bound = |index: usize| index * values.len() / blocks;
            (0..blocks).map(|index| values[bound(index)..bound(index + 1)].iter().sum()).collect()
        };
        let parts = [&was.numerators, &was.denominators, &now.numerators, &now.denominators]
            .map(|values| sums(values));
        let mut resampler = Resampler::new(self.seed);
        let (mut means, mut quotients) = (Vec::new(), Vec::new());
        for _ in 0..self.count.max(1) {
            let mut drawn = [0.0; 4];
            for _ in 0..blocks {
                let block = resampler.below(blocks);
                drawn.iter_mut().zip(&parts).for_each(|(sum, part)| *sum += part[block]);
            }
            let mean = drawn[2] / drawn[3];
            means.push(mean);
            quotients.push(mean / (drawn[0] / drawn[1]));
        }
        let (was, now) = (was.mean(), now.mean());
        Some(MeanIntervals {
            mean: self.interval(means, now, blocks),
            quotient: self.interval(quotients, now / was, blocks),
        })
    }

    /// The confidence interval by the resamples of a value, whose variance is (n − 1)/n of what it should be.
    fn interval(&self, mut values: Vec<f64>, middle: f64, blocks: usize) -> (f64, f64) {
        values.sort_unstable_by(f64::total_cmp);
        let wider = (blocks as f64 / (blocks - 1) as f64).sqrt();
        let tail = (1.0 - self.level) / 2.0;
        let at = |share| {
            let found = quantile(&values, share).unwrap_or(f64::NAN);
            middle + (found - middle) * wider
        };
        (at(tail), at(1.0 - tail))
    }
}

/// Confidence intervals of a mean, and of its quotient by another mean.
#[derive(Debug, PartialEq)]
pub(super) struct MeanIntervals {
    pub mean: (f64, f64),
    pub quotient: (f64, f64),
}

#[cfg(test)]
mod tests {
    use rand_chacha::ChaCha8Rng;
    use rand_chacha::rand_core::{RngCore, SeedableRng};

    use super::*;

    fn lengths(values: Vec<f64>) -> Ratios {
        Ratios::lengths(values)
    }

    #[test]
    fn intervals_hold_the_truth_as_often_as_they_say() {
        // An autoregressive series around 10: neighbours resemble each other, the blocks hardly do.
        let mut dice = ChaCha8Rng::seed_from_u64(7);
        let mut uniform = || dice.next_u32() as f64 / f64::from(u32::MAX) - 0.5;
        let (mut held, runs) = (0, 200);
        for seed in 0..runs {
            let mut at = 0.0;
            let values: Vec<_> = (0..4800)
                .map(|_| {
                    at = 0.8 * at + uniform();
                    10.0 + at
                })
                .collect();
            let bootstrap = BlockBootstrap { seed, count: 400, level: 0.9 };
            let now = lengths(values);
            let MeanIntervals { mean: (low, high), quotient } =
                bootstrap.intervals(&now, &now).unwrap();
            assert_eq!(quotient, (1.0, 1.0));
            held += u32::from(low <= 10.0 && 10.0 <= high);
        }
        // 180 ± 4.2 are expected.
        assert!((165..=193).contains(&held), "{held}");
    }

    #[test]
    fn two_values_tell_nothing() {
        let few = lengths(vec![1.0, 2.0]);
        assert_eq!(BlockBootstrap::default().intervals(&few, &few), None);
    }
}
