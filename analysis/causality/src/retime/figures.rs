//! What a metric is, and how certain its mean is.

use ppt_stats::quantile;
use rand_chacha::ChaCha8Rng;
use rand_chacha::rand_core::{RngCore, SeedableRng};

use super::metric::Series;

/// The distribution of a metric: nanoseconds, or numbers a second.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Figures {
    /// How many there were.
    pub n: usize,
    /// Of a rate: all of them by the whole time.
    pub mean: f64,
    /// Half are below. Of a rate: of √n parts with as many each.
    pub p50: f64,
    /// 95 % are below.
    pub p95: f64,
    /// 99 % are below.
    pub p99: f64,
}

impl Figures {
    pub(super) fn new(series: &Series) -> Figures {
        let mut values: Vec<f64> =
            series.over.iter().zip(&series.under).map(|(over, under)| over / under).collect();
        values.sort_unstable_by(f64::total_cmp);
        let at = |share| quantile(&values, share).unwrap_or(f64::NAN);
        let (p50, p95, p99) = (at(0.5), at(0.95), at(0.99));
        Figures { n: series.n, mean: mean(&series.over, &series.under), p50, p95, p99 }
    }
}

fn mean(over: &[f64], under: &[f64]) -> f64 {
    over.iter().sum::<f64>() / under.iter().sum::<f64>()
}

/// How often, from which seed, and how certain. The same seed gives the same numbers everywhere.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Resampling {
    /// So many resamples.
    pub count: usize,
    /// Where the random numbers begin.
    pub seed: u64,
    /// The share of cases in which the interval holds the truth.
    pub level: f64,
}

impl Default for Resampling {
    fn default() -> Self {
        Resampling { count: 1000, seed: 1, level: 0.95 }
    }
}

/// Successive values are correlated; this many blocks of them are nearly independent.
const BLOCKS: usize = 48;

impl Resampling {
    /// Between what the mean of the second lies, and between what the quotient of the second's mean by
    /// the first's: blocks of both are drawn together. None where there are too few values.
    pub(super) fn intervals(&self, was: &Series, now: &Series) -> Option<[(f64, f64); 2]> {
        let values = was.over.len().min(now.over.len());
        if values < 3 {
            return None;
        }
        let blocks = values.min(BLOCKS);
        let sums = |of: &[f64]| -> Vec<f64> {
            let bound = |index: usize| index * of.len() / blocks;
            (0..blocks).map(|index| of[bound(index)..bound(index + 1)].iter().sum()).collect()
        };
        let parts = [&was.over, &was.under, &now.over, &now.under].map(|values| sums(values));
        let mut dice = ChaCha8Rng::seed_from_u64(self.seed);
        let (mut means, mut quotients) = (Vec::new(), Vec::new());
        for _ in 0..self.count.max(1) {
            let mut drawn = [0.0; 4];
            for _ in 0..blocks {
                let block = below(&mut dice, blocks);
                drawn.iter_mut().zip(&parts).for_each(|(sum, of)| *sum += of[block]);
            }
            let mean = drawn[2] / drawn[3];
            means.push(mean);
            quotients.push(mean / (drawn[0] / drawn[1]));
        }
        let (was, now) = (mean(&was.over, &was.under), mean(&now.over, &now.under));
        Some([self.between(means, now, blocks), self.between(quotients, now / was, blocks)])
    }

    /// What the resamples of a value say: they vary by (n − 1) parts in n of what they should.
    fn between(&self, mut values: Vec<f64>, middle: f64, blocks: usize) -> (f64, f64) {
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

/// A number below `count`, each as probable as any other to 1 in 2^32.
fn below(dice: &mut ChaCha8Rng, count: usize) -> usize {
    ((u128::from(dice.next_u64()) * count as u128) >> 64) as usize
}

#[cfg(test)]
mod tests {
    use super::*;

    fn lengths(over: Vec<f64>) -> Series {
        Series { under: vec![1.0; over.len()], n: over.len(), over }
    }

    #[test]
    fn intervals_hold_the_truth_as_often_as_they_say() {
        // An autoregressive series around 10: neighbours resemble each other, the blocks hardly do.
        let mut dice = ChaCha8Rng::seed_from_u64(7);
        let mut uniform = || dice.next_u32() as f64 / f64::from(u32::MAX) - 0.5;
        let (mut held, runs) = (0, 200);
        for seed in 0..runs {
            let mut at = 0.0;
            let over: Vec<_> = (0..4800)
                .map(|_| {
                    at = 0.8 * at + uniform();
                    10.0 + at
                })
                .collect();
            let resampling = Resampling { seed, count: 400, level: 0.9 };
            let now = lengths(over);
            let [(low, high), quotient] = resampling.intervals(&now, &now).unwrap();
            assert_eq!(quotient, (1.0, 1.0));
            held += u32::from(low <= 10.0 && 10.0 <= high);
        }
        // 180 ± 4.2 are expected.
        assert!((165..=193).contains(&held), "{held}");
    }

    #[test]
    fn two_values_tell_nothing() {
        let few = lengths(vec![1.0, 2.0]);
        assert_eq!(Resampling::default().intervals(&few, &few), None);
    }
}
