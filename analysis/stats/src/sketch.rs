//! The distribution of values, to three digits, in constant memory. If values span more than 512
//! powers of two, further ones are recorded only by their power of two.
//!
//! The bits of a floating-point number approximate its logarithm: sign, exponent and the ten
//! highest bits of the fraction select a bucket. Unlike hdrhistogram, this handles whole,
//! fractional and negative numbers alike.

use std::collections::BTreeMap;

/// The largest number of powers of two with their own buckets, 8 KiB each. Numbers in programs span a few
/// dozen.
const FINE_OCTAVES: usize = 512;

/// Bits of the fraction in a bucket's index: its width is at most 1/1024 of its value.
const BITS: u32 = 10;
const BUCKETS: usize = 1 << BITS;

/// Bits of sign and exponent, which select the octave.
const OCTAVE_BITS: u32 = 64 - 52;
/// Marks an octave without numbers.
const ABSENT: u16 = u16::MAX;

/// The distribution of values.
#[derive(Debug, Clone, Default)]
pub struct Sketch {
    /// Indexed by sign and exponent, in numeric order.
    octaves: BTreeMap<u16, Octave>,
    count: u64,
}

/// The numbers between two powers of two.
#[derive(Debug, Clone)]
enum Octave {
    /// Counts by bucket.
    Fine(Box<[u64; BUCKETS]>),
    /// The total count only, because there are too many octaves.
    Coarse(u64),
}

impl Octave {
    fn empty(is_coarse: bool) -> Octave {
        if is_coarse { Octave::Coarse(0) } else { Octave::Fine(Box::new([0; BUCKETS])) }
    }

    fn total(&self) -> u64 {
        match self {
            Octave::Fine(counts) => counts.iter().sum(),
            Octave::Coarse(count) => *count,
        }
    }
}

/// Maps numbers to integers in the same order.
fn ordered(value: f64) -> u64 {
    // −0 is 0.
    let bits = (value + 0.0).to_bits();
    if bits >> 63 == 1 { !bits } else { bits | 1 << 63 }
}

fn value(ordered: u64) -> f64 {
    f64::from_bits(if ordered >> 63 == 1 { ordered & !(1 << 63) } else { !ordered })
}

impl Sketch {
    /// Adds a value; NaN is ignored.
    pub fn add(&mut self, value: f64) {
        self.add_many(value, 1);
    }

    /// Adds the same value this many times.
    pub fn add_many(&mut self, value: f64, times: u64) {
        if value.is_nan() || times == 0 {
            return;
        }
        let bucket = ordered(value) >> (52 - BITS);
        let is_full = self.octaves.len() >= FINE_OCTAVES;
        let octave = self.octaves.entry((bucket >> BITS) as u16);
        match octave.or_insert_with(|| Octave::empty(is_full)) {
            Octave::Fine(counts) => counts[bucket as usize % BUCKETS] += times,
            Octave::Coarse(count) => *count += times,
        }
        self.count += times;
    }

    /// Adds all of these; NaN is ignored.
    pub fn extend(&mut self, values: impl Iterator<Item = f64>) {
        // Consecutive values rarely change the octave, and those that do alternate between few
        // octaves.
        let mut octaves: Vec<(u16, Octave)> =
            std::mem::take(&mut self.octaves).into_iter().collect();
        let mut places = [ABSENT; 1 << OCTAVE_BITS];
        for (place, octave) in octaves.iter().enumerate() {
            places[usize::from(octave.0)] = place as u16;
        }
        for value in values {
            if value.is_nan() {
                continue;
            }
            let bucket = ordered(value) >> (52 - BITS);
            let octave = (bucket >> BITS) as u16;
            let place = &mut places[usize::from(octave)];
            if *place == ABSENT {
                *place = octaves.len() as u16;
                octaves.push((octave, Octave::empty(octaves.len() >= FINE_OCTAVES)));
            }
            match &mut octaves[usize::from(*place)].1 {
                Octave::Fine(counts) => counts[bucket as usize % BUCKETS] += 1,
                Octave::Coarse(count) => *count += 1,
            }
            self.count += 1;
        }
        self.octaves = octaves.into_iter().collect();
    }

    /// Merges another sketch.
    pub fn join(&mut self, other: &Sketch) {
        for (octave, theirs) in &other.octaves {
            let is_full = self.octaves.len() >= FINE_OCTAVES;
            let ours = self.octaves.entry(*octave).or_insert_with(|| Octave::empty(is_full));
            match (&mut *ours, theirs) {
                (Octave::Fine(ours), Octave::Fine(theirs)) => {
                    ours.iter_mut().zip(theirs.iter()).for_each(|(ours, theirs)| *ours += theirs);
                }
                (one, two) => *ours = Octave::Coarse(one.total() + two.total()),
            }
        }
        self.count += other.count;
    }

    /// The number of values.
    pub fn count(&self) -> u64 {
        self.count
    }

    /// Each non-empty bucket in order: start, end, count.
    pub fn buckets(&self) -> impl Iterator<Item = (f64, f64, u64)> + '_ {
        self.octaves.iter().flat_map(|(octave, counts)| {
            let (counts, width): (&[u64], usize) = match counts {
                Octave::Fine(counts) => (&counts[..], 1),
                Octave::Coarse(count) => (std::slice::from_ref(count), BUCKETS),
            };
            let used = counts.iter().enumerate().filter(|(_, count)| **count > 0);
            used.map(move |(index, &count)| {
                let bucket = (u64::from(*octave) << BITS) + index as u64;
                let first = value(bucket << (52 - BITS));
                let last = value(((bucket + width as u64) << (52 - BITS)).wrapping_sub(1));
                // An infinity is alone in its bucket.
                match (first.is_nan(), last.is_nan()) {
                    (true, _) => (last, last, count),
                    (_, true) => (first, first, count),
                    _ => (first, last, count),
                }
            })
        })
    }

    /// A quantile, to three digits.
    pub fn quantile(&self, share: f64) -> Option<f64> {
        let last = self.count.checked_sub(1)?;
        let place = (last as f64 * share).round() as u64;
        let mut seen = 0;
        let mut buckets = self.buckets();
        let found = buckets.find(|(_, _, count)| {
            seen += count;
            seen > place
        });
        found.map(|(from, to, _)| middle(from, to))
    }
}

/// The value that stands for a bucket: the whole number that it holds, or else its middle. A bucket of a small
/// whole number begins with that number or, below 0, ends with it.
pub(crate) fn middle(from: f64, to: f64) -> f64 {
    if from == to {
        return from;
    }
    let near = |whole: f64| from <= whole && whole <= to;
    let whole = from.ceil();
    if near(whole) { whole } else { from + (to - from) / 2.0 }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn order_is_kept() {
        let values = [f64::NEG_INFINITY, -1e300, -2.0, -1.0, -1e-300, 0.0, 1e-300, 1.0, 1e300];
        assert!(values.windows(2).all(|pair| ordered(pair[0]) < ordered(pair[1])));
        assert_eq!(ordered(-0.0), ordered(0.0));
        assert!(values.iter().all(|&number| value(ordered(number)) == number));
    }

    #[test]
    fn many_at_once_are_one_after_the_other() {
        let values = |n: u64| ((n * 0x9e37_79b9) as i32 as f64) * 2f64.powi(n as i32 % 40 - 20);
        let all: Vec<f64> = (0..5000).map(values).chain([f64::NAN, f64::INFINITY, -0.0]).collect();
        let (mut one, mut many) = (Sketch::default(), Sketch::default());
        all.iter().for_each(|&value| one.add(value));
        all.chunks(700).for_each(|part| many.extend(part.iter().copied()));
        assert_eq!(one.count(), many.count());
        assert!(one.buckets().eq(many.buckets()));
    }

    #[test]
    fn infinities_are_told_as_they_are() {
        let mut sketch = Sketch::default();
        for value in [f64::NEG_INFINITY, 1.0, f64::INFINITY] {
            sketch.add(value);
        }
        let all: Vec<_> =
            sketch.buckets().map(|(from, to, count)| (from, to > from, count)).collect();
        let (least, most) = (f64::NEG_INFINITY, f64::INFINITY);
        assert_eq!(all, [(least, false, 1), (1.0, true, 1), (most, false, 1)]);
        let quantiles = [0.0, 0.5, 1.0].map(|share| sketch.quantile(share));
        assert_eq!(quantiles, [Some(least), Some(1.0), Some(most)]);
    }

    #[test]
    fn values_of_all_sizes_take_bounded_memory() {
        let fine = |sketch: &Sketch| {
            sketch.octaves.values().filter(|octave| matches!(octave, Octave::Fine(_))).count()
        };
        let (mut up, mut down) = (Sketch::default(), Sketch::default());
        for exponent in -1000..1000 {
            up.add(2f64.powi(exponent));
            down.add(2f64.powi(-exponent));
        }
        assert_eq!((fine(&up), fine(&down)), (FINE_OCTAVES, FINE_OCTAVES));
        for sketch in [&up, &down] {
            let median = sketch.quantile(0.5).unwrap();
            assert!((0.5..=2.0).contains(&median), "{median}");
        }
        for value in [f64::INFINITY, f64::NEG_INFINITY] {
            let mut sketch = up.clone();
            sketch.add(value);
            assert_eq!(sketch.buckets().filter(|bucket| bucket.0 == value).count(), 1, "{value}");
        }
        up.join(&down);
        assert!(fine(&up) <= FINE_OCTAVES);
        assert_eq!(up.count(), 4000);
        assert_eq!(up.buckets().map(|bucket| bucket.2).sum::<u64>(), 4000);
        let all: Vec<_> = up.buckets().collect();
        assert!(all.windows(2).all(|pair| pair[0].1 < pair[1].0));
    }

    #[test]
    fn small_whole_numbers_are_themselves() {
        for number in -1024..=1024 {
            let mut sketch = Sketch::default();
            sketch.add(f64::from(number));
            assert_eq!(sketch.quantile(0.5), Some(f64::from(number)));
        }
    }
}
