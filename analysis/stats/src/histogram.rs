//! The distribution of values, as bins that can be drawn.

use crate::sketch::{Sketch, middle};

/// The widths of bins.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum BinScale {
    /// All bins are equally wide.
    Linear,
    /// Each bin is wider than the previous one by a constant factor.
    Logarithmic,
}

/// A bin: from its start up to the start of the next one.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Bin {
    /// The lower bound of the bin.
    pub from: f64,
    /// The upper bound of the bin.
    pub to: f64,
    /// The number of values in it.
    pub count: u64,
}

/// The distribution of values.
#[derive(Debug, Clone, PartialEq)]
pub struct Histogram {
    /// The widths of bins.
    pub scale: BinScale,
    /// Whether values are whole numbers and each bin holds equally many of them.
    pub whole: bool,
    /// The bins in order, without gaps.
    pub bins: Vec<Bin>,
    /// The number of infinite values, which are in no bin.
    pub infinite: u64,
    /// The modes: the middles of the bins at the peaks, in order.
    pub modes: Vec<f64>,
}

/// The ratio of the largest to the smallest value from which the scale is logarithmic: three decades.
const MIN_LOGARITHMIC_RATIO: f64 = 1000.0;
/// The largest height of a valley between two modes, relative to the lower mode.
const MAX_VALLEY: f64 = 0.5;
/// The smallest height of a mode, relative to the highest one.
const MIN_MODE: f64 = 0.1;
/// The smallest number of values for which modes are reported.
const MIN_VALUES: u64 = 50;

impl Histogram {
    /// At most `bins` bins of all values; None without a finite value. If no scale is given, the
    /// data determine it.
    pub fn from_sketch(sketch: &Sketch, bins: usize, scale: Option<BinScale>) -> Option<Histogram> {
        let finite = |entry: &(f64, f64, u64)| entry.0.is_finite() && entry.1.is_finite();
        let buckets = || sketch.buckets().filter(finite);
        let (first, last) = (buckets().next()?, buckets().last()?);
        let (least, greatest) = (middle(first.0, first.1), middle(last.0, last.1));
        let scale = match scale {
            Some(BinScale::Linear) => BinScale::Linear,
            _ if least <= 0.0 => BinScale::Linear,
            Some(BinScale::Logarithmic) => BinScale::Logarithmic,
            None if greatest / least >= MIN_LOGARITHMIC_RATIO => BinScale::Logarithmic,
            None => BinScale::Linear,
        };
        let all_whole = buckets().all(|bucket| middle(bucket.0, bucket.1).fract() == 0.0);
        let mut bins = bins.max(1);
        let (from, to) = match scale {
            // Each bin holds equally many whole numbers.
            BinScale::Linear if all_whole => {
                let count = greatest - least + 1.0;
                let width = (count / bins as f64).ceil();
                bins = (count / width).ceil() as usize;
                (least, least + width * bins as f64)
            }
            BinScale::Linear => (least, if greatest > least { greatest } else { least + 1.0 }),
            BinScale::Logarithmic => (least.ln(), greatest.ln()),
        };
        let width = ((to - from) / bins as f64).max(f64::MIN_POSITIVE);
        let edge = |index: usize| {
            let edge = from + width * index as f64;
            if scale == BinScale::Logarithmic { edge.exp() } else { edge }
        };
        let bin = |index| Bin { from: edge(index), to: edge(index + 1), count: 0 };
        let mut all: Vec<Bin> = (0..bins).map(bin).collect();
        for (low, high, count) in buckets() {
            let value = middle(low, high);
            let place = if scale == BinScale::Logarithmic { value.ln() } else { value };
            // The greatest value belongs to the last bin.
            all[(((place - from) / width) as usize).min(bins - 1)].count += count;
        }
        let modes = modes(&all);
        let whole = all_whole && scale == BinScale::Linear;
        let infinite = sketch.count() - all.iter().map(|bin| bin.count).sum::<u64>();
        Some(Histogram { scale, whole, bins: all, infinite, modes })
    }
}

/// Peaks separated by a valley, after smoothing over neighbours.
fn modes(bins: &[Bin]) -> Vec<f64> {
    let count = |index: usize| bins.get(index).map_or(0.0, |bin| bin.count as f64);
    let smooth: Vec<f64> = (0..bins.len())
        .map(|at| (count(at.wrapping_sub(1)) + 2.0 * count(at) + count(at + 1)) / 4.0)
        .collect();
    let highest = smooth.iter().copied().fold(0.0, f64::max);
    let mut peaks: Vec<usize> = Vec::new();
    let mut valley = 0.0;
    for (at, &height) in smooth.iter().enumerate() {
        match peaks.last().copied() {
            None if height > 0.0 => peaks.push(at),
            None => {}
            Some(peak) if height > smooth[peak] && valley > MAX_VALLEY * smooth[peak] => {
                // No valley lies between them, so this is the same mode, only higher.
                *peaks.last_mut().unwrap_or(&mut 0) = at;
                valley = height;
            }
            Some(_)
                if valley <= MAX_VALLEY * height && height >= MIN_MODE * highest && {
                    let peak = peaks.last().map_or(0.0, |&peak| smooth[peak]);
                    valley <= MAX_VALLEY * peak
                } =>
            {
                peaks.push(at);
                valley = height;
            }
            Some(_) => {}
        }
        if let Some(&peak) = peaks.last() {
            valley = if peak == at { height } else { valley.min(height) };
        }
    }
    peaks.retain(|&peak| smooth[peak] >= MIN_MODE * highest);
    if bins.iter().map(|bin| bin.count).sum::<u64>() < MIN_VALUES {
        peaks.truncate(1);
    }
    let middle = |index: usize| bins[index].from + (bins[index].to - bins[index].from) / 2.0;
    peaks.into_iter().map(middle).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn histogram_of(values: impl Iterator<Item = f64>) -> Histogram {
        let mut sketch = Sketch::default();
        values.for_each(|value| sketch.add(value));
        Histogram::from_sketch(&sketch, 40, None).unwrap()
    }

    /// Bell-shaped values around `at`.
    fn bell(at: f64, width: f64) -> impl Iterator<Item = f64> {
        (0..2000).map(move |number| {
            let uniform = |k: u64| ((number * 7919 + k * 104_729) % 2000) as f64 / 2000.0;
            at + width * ((0..6).map(uniform).sum::<f64>() - 3.0)
        })
    }

    #[test]
    fn every_value_is_in_a_bin() {
        for histogram in [
            histogram_of(bell(100.0, 5.0)),
            histogram_of((1..5000).map(f64::from)),
            histogram_of([3.0].into_iter()),
        ] {
            let all: u64 = histogram.bins.iter().map(|bin| bin.count).sum();
            assert!(all == 2000 || all == 4999 || all == 1, "{all}");
            assert!(histogram.bins.windows(2).all(|pair| pair[0].to == pair[1].from));
        }
    }

    #[test]
    fn whole_numbers_have_bins_of_their_own() {
        let histogram = histogram_of([1.0, 2.0, 2.0, 4.0].into_iter());
        let bins: Vec<_> = histogram.bins.iter().map(|bin| (bin.from, bin.count)).collect();
        assert_eq!(bins, [(1.0, 1), (2.0, 2), (3.0, 0), (4.0, 1)]);
    }

    #[test]
    fn bins_of_whole_numbers_hold_equally_many() {
        for most in 1..300 {
            let histogram = histogram_of((0..=most).map(f64::from));
            let [full @ .., last] = &histogram.bins[..] else { panic!("no bins") };
            assert!(full.iter().all(|bin| bin.count == histogram.bins[0].count), "{histogram:?}");
            assert!((1..=histogram.bins[0].count).contains(&last.count), "{histogram:?}");
            assert!(histogram.bins.len() <= 40 && histogram.bins.len() > 40.min(most as usize) / 2);
        }
    }

    #[test]
    fn the_data_say_which_scale() {
        assert_eq!(
            histogram_of((0..20).map(|bit| f64::from(1 << bit))).scale,
            BinScale::Logarithmic
        );
        assert_eq!(histogram_of((0..20).map(f64::from)).scale, BinScale::Linear);
        assert_eq!(histogram_of([-5.0, 100_000.0].into_iter()).scale, BinScale::Linear);
    }

    #[test]
    fn modes_are_counted() {
        assert_eq!(histogram_of(bell(100.0, 5.0)).modes.len(), 1);
        assert_eq!(histogram_of(bell(100.0, 5.0).chain(bell(300.0, 5.0))).modes.len(), 2);
        assert_eq!(histogram_of((0..5000).map(f64::from)).modes.len(), 1);
        assert_eq!(
            histogram_of([1.0, 100.0].into_iter()).modes.len(),
            1,
            "two values are no modes"
        );
        let three = bell(100.0, 5.0).chain(bell(300.0, 5.0)).chain(bell(600.0, 5.0));
        assert_eq!(histogram_of(three).modes.len(), 3);
    }

    #[test]
    fn infinite_values_are_counted() {
        let histogram =
            histogram_of([1.0, f64::INFINITY, 2.0, f64::NEG_INFINITY, f64::INFINITY].into_iter());
        assert_eq!(histogram.bins.iter().map(|bin| bin.count).sum::<u64>(), 2);
        assert_eq!(histogram.infinite, 3);
    }
}
