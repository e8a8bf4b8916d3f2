//! The values of a column, in order of arrival.

use std::sync::Arc;
use std::sync::atomic::{AtomicI64, Ordering::Relaxed};

use crate::ColumnValue;
use crate::moments::{RunningMoments, deviation, ends, mean, number, squares, sum};
use crate::quantile::percentiles;
use crate::sketch::Sketch;
use crate::summary::{PERCENTILES, Summary, SummaryNumber};

/// Bytes that all columns together may take before sketches replace their values.
#[derive(Debug, Clone)]
pub struct Budget(Arc<AtomicI64>);

impl Budget {
    /// A budget of this many bytes.
    pub fn new(bytes: usize) -> Budget {
        Budget(Arc::new(AtomicI64::new(i64::try_from(bytes).unwrap_or(i64::MAX))))
    }

    pub(crate) fn take(&self, bytes: usize) -> bool {
        let bytes = i64::try_from(bytes).unwrap_or(i64::MAX);
        let taken = |left: i64| left.checked_sub(bytes).filter(|left| *left >= 0);
        self.0.fetch_update(Relaxed, Relaxed, taken).is_ok()
    }

    /// Takes this many bytes even if fewer are left.
    fn force_take(&self, bytes: usize) {
        self.0.fetch_sub(bytes as i64, Relaxed);
    }

    pub(crate) fn give(&self, bytes: usize) {
        self.0.fetch_add(bytes as i64, Relaxed);
    }
}

/// The values of a column, in order of arrival.
#[derive(Debug)]
pub struct Samples<T: ColumnValue> {
    kept: KeptValues<T>,
    nulls: u64,
    budget: Budget,
}

#[derive(Debug)]
enum KeptValues<T> {
    /// All values.
    Values(Vec<T>),
    Sketch(Box<Sketched<T>>),
}

#[derive(Debug)]
struct Sketched<T> {
    sketch: Sketch,
    /// The smallest and the largest value.
    ends: Option<(T, T)>,
    moments: RunningMoments,
}

/// Initial capacity for the values of a column.
const INITIAL_CAPACITY: usize = 1024;
/// Smaller batches go into a sketch value by value.
const MIN_BATCH: usize = 48;

impl<T: ColumnValue> Samples<T> {
    /// An empty collection.
    pub fn new(budget: &Budget) -> Samples<T> {
        Samples { kept: KeptValues::Values(Vec::new()), nulls: 0, budget: budget.clone() }
    }

    /// Adds a value; NaN counts as missing.
    #[inline]
    pub fn push(&mut self, value: T) {
        if value.partial_cmp(&value).is_none() {
            self.nulls += 1;
            return;
        }
        match &mut self.kept {
            KeptValues::Values(values) if values.len() < values.capacity() => values.push(value),
            _ => self.push_slowly(value),
        }
    }

    #[cold]
    fn push_slowly(&mut self, value: T) {
        self.make_room(1);
        match &mut self.kept {
            KeptValues::Values(values) => values.push(value),
            KeptValues::Sketch(sketched) => sketched.add(value),
        }
    }

    /// Adds all of these values; none is NULL.
    pub fn extend(&mut self, all: &[T]) {
        if let KeptValues::Values(values) = &self.kept
            && values.capacity() - values.len() < all.len()
        {
            self.make_room(all.len());
        }
        match &mut self.kept {
            KeptValues::Values(values) => {
                let before = values.len();
                values.extend(all.iter().filter(|value| value.partial_cmp(value).is_some()));
                self.nulls += (all.len() - (values.len() - before)) as u64;
            }
            KeptValues::Sketch(sketched) => self.nulls += sketched.extend(all),
        }
    }

    /// Adds this many NULLs.
    pub fn push_nulls(&mut self, count: u64) {
        self.nulls += count;
    }

    /// Merges another collection.
    pub fn join(&mut self, mut other: Samples<T>) {
        self.nulls += other.nulls;
        let theirs = std::mem::replace(&mut other.kept, KeptValues::Values(Vec::new()));
        let theirs = match theirs {
            KeptValues::Values(values) => {
                if matches!(&self.kept, KeptValues::Values(ours) if ours.is_empty()) {
                    self.kept = KeptValues::Values(values);
                    return;
                }
                self.extend(&values);
                // Its share of the budget is returned when it is dropped.
                other.kept = KeptValues::Values(values);
                return;
            }
            KeptValues::Sketch(theirs) => theirs,
        };
        self.switch_to_sketch();
        if let KeptValues::Sketch(ours) = &mut self.kept {
            ours.join(&theirs);
        }
    }

    /// Reserves room for this many more values, or converts to a sketch.
    fn make_room(&mut self, more: usize) {
        let KeptValues::Values(values) = &mut self.kept else { return };
        let wanted = (values.len() + more).max(values.capacity() * 2).max(INITIAL_CAPACITY);
        let bytes = (wanted - values.capacity()) * size_of::<T>();
        // While the values move, both copies exist; that is not counted.
        if self.budget.take(bytes) {
            let before = values.capacity();
            values.reserve_exact(wanted - values.len());
            let more = values.capacity().saturating_sub(before) * size_of::<T>();
            if more < bytes {
                self.budget.give(bytes - more);
            }
        } else if values.len() + more > values.capacity() {
            self.switch_to_sketch();
        }
    }

    /// Replaces the values by a sketch, and returns their share of the budget.
    fn switch_to_sketch(&mut self) {
        let KeptValues::Values(values) = &mut self.kept else { return };
        let values = std::mem::take(values);
        self.budget.give(values.capacity() * size_of::<T>());
        let mut sketched = Sketched::new();
        sketched.extend(&values);
        self.kept = KeptValues::Sketch(Box::new(sketched));
    }

    /// The smallest and the largest value; None without values.
    pub fn ends(&self) -> Option<(T, T)> {
        match &self.kept {
            KeptValues::Values(values) => ends(values.iter().copied()),
            KeptValues::Sketch(sketched) => sketched.ends,
        }
    }

    /// A sketch of the values, whether they are kept or not.
    pub fn sketch(&self) -> Sketch {
        match &self.kept {
            KeptValues::Sketch(sketched) => sketched.sketch.clone(),
            KeptValues::Values(values) => {
                let mut sketch = Sketch::default();
                sketch.extend(values.iter().map(|value| value.float()));
                sketch
            }
        }
    }

    /// The summary of the values.
    pub fn finish(mut self) -> Summary {
        self.summary()
    }

    /// The summary of the values so far. Reorders them.
    pub fn summary(&mut self) -> Summary {
        let nulls = self.nulls;
        match &mut self.kept {
            KeptValues::Values(values) => of_values(values, nulls),
            KeptValues::Sketch(sketched) => sketched.summary(nulls),
        }
    }

    /// Merges all of these. Kept values stay kept regardless of the budget, because they are in
    /// memory already and only move.
    pub fn together(all: Vec<Samples<T>>, budget: &Budget) -> Samples<T> {
        let mut whole = Samples::new(budget);
        let count = |samples: &Samples<T>| match &samples.kept {
            KeptValues::Values(values) => Some(values.len()),
            KeptValues::Sketch(_) => None,
        };
        let Some(counts) = all.iter().map(count).collect::<Option<Vec<usize>>>() else {
            all.into_iter().for_each(|samples| whole.join(samples));
            return whole;
        };
        let mut values = Vec::with_capacity(counts.into_iter().sum());
        for mut samples in all {
            whole.nulls += samples.nulls;
            if let KeptValues::Values(own) = &mut samples.kept {
                values.extend_from_slice(own);
            }
        }
        budget.force_take(values.capacity() * size_of::<T>());
        whole.kept = KeptValues::Values(values);
        whole
    }
}

impl<T: ColumnValue> Drop for Samples<T> {
    fn drop(&mut self) {
        if let KeptValues::Values(values) = &self.kept {
            self.budget.give(values.capacity() * size_of::<T>());
        }
    }
}

impl<T: ColumnValue> Sketched<T> {
    fn new() -> Self {
        Sketched { sketch: Sketch::default(), ends: None, moments: RunningMoments::default() }
    }

    fn add(&mut self, value: T) {
        self.reach(value, value);
        self.moments.add(value);
        self.sketch.add(value.float());
    }

    /// Adds all of these; returns the number of missing ones.
    fn extend(&mut self, all: &[T]) -> u64 {
        let mut missing = 0;
        for values in all.chunks(INITIAL_CAPACITY) {
            if values.len() < MIN_BATCH {
                let present = values.iter().filter(|value| value.partial_cmp(value).is_some());
                let before = self.sketch.count();
                present.for_each(|&value| self.add(value));
                missing += values.len() as u64 - (self.sketch.count() - before);
                continue;
            }
            // The moments of a chunk are computed at once and then joined, so that no addition waits for the
            // previous one.
            let is_present = |value: &T| value.partial_cmp(value).is_some();
            let present = || values.iter().copied().filter(is_present);
            let Some((low, high)) = ends(present()) else {
                missing += values.len() as u64;
                continue;
            };
            self.reach(low, high);
            let before = self.sketch.count();
            self.sketch.extend(present().map(ColumnValue::float));
            let count = self.sketch.count() - before;
            missing += values.len() as u64 - count;
            self.moments = self.moments.join(RunningMoments::new(present(), count, low));
        }
        missing
    }

    fn reach(&mut self, low: T, high: T) {
        let (least, greatest) = self.ends.unwrap_or((low, high));
        let least = if low < least { low } else { least };
        self.ends = Some((least, if high > greatest { high } else { greatest }));
    }

    fn join(&mut self, other: &Sketched<T>) {
        if let Some((least, greatest)) = other.ends {
            self.reach(least, greatest);
        }
        self.moments = self.moments.join(other.moments);
        self.sketch.join(&other.sketch);
    }

    fn summary(&self, nulls: u64) -> Summary {
        let (least, greatest) = self.ends.unzip();
        let count = self.sketch.count();
        Summary {
            count,
            nulls,
            min: least.map(ColumnValue::number),
            max: greatest.map(ColumnValue::number),
            sum: number(self.moments.sum),
            mean: mean(self.moments.sum, count, self.ends),
            sd: deviation(self.moments.squares, count),
            percentiles: PERCENTILES.map(|p| {
                let quantile = SummaryNumber::Real(self.sketch.quantile(p)?);
                Some(quantile.within(least?.number(), greatest?.number()))
            }),
            exact: false,
        }
    }
}

fn of_values<T: ColumnValue>(values: &mut [T], nulls: u64) -> Summary {
    let count = values.len() as u64;
    let Some((least, greatest)) = ends(values.iter().copied()) else {
        let percentiles = [None; 4];
        let sum = SummaryNumber::Whole(0);
        let (min, max, mean, sd) = (None, None, None, None);
        return Summary { count, nulls, min, max, sum, mean, sd, percentiles, exact: true };
    };
    let sum = sum(values.iter().copied(), least);
    let origin = least.whole().unwrap_or_default();
    let (squares, _) = squares(values.iter().copied(), (sum, count), origin);
    Summary {
        count,
        nulls,
        min: Some(least.number()),
        max: Some(greatest.number()),
        sum: number(sum),
        mean: mean(sum, count, Some((least, greatest))),
        sd: deviation(squares, count),
        percentiles: percentiles(values),
        exact: true,
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::quantile::between;

    fn of<T: ColumnValue>(values: &[T], budget: usize) -> Summary {
        let mut samples = Samples::new(&Budget::new(budget));
        values.iter().for_each(|&value| samples.push(value));
        samples.finish()
    }

    #[test]
    fn what_numpy_says() {
        // numpy.percentile([3, 1, 4, 1, 5, 9, 2, 6], [50, 90, 99, 99.9]), std(ddof=1)
        let summary = of(&[3i64, 1, 4, 1, 5, 9, 2, 6], 1 << 20);
        assert_eq!(
            summary.percentiles,
            [3.5, 6.8999999999999995, 8.79, 8.979000000000001]
                .map(|value| Some(SummaryNumber::Real(value)))
        );
        assert_eq!((summary.mean_as_float(), summary.sum), (Some(3.875), SummaryNumber::Whole(31)));
        assert!((summary.sd.unwrap() - 2.748376143938713).abs() < 1e-12);
        assert_eq!(
            (summary.min, summary.max),
            (Some(SummaryNumber::Whole(1)), Some(SummaryNumber::Whole(9)))
        );
        assert!(summary.exact);
    }

    #[test]
    fn few_values_and_none() {
        let none = of::<f64>(&[], 1 << 20);
        assert_eq!((none.count, none.mean, none.percentiles), (0, None, [None; 4]));
        let one = of(&[7u64], 1 << 20);
        let seven = Some(SummaryNumber::Real(7.0));
        assert_eq!((one.mean, one.sd, one.percentiles), (seven, None, [seven; 4]));
        let nan = of(&[f64::NAN, 1.0], 1 << 20);
        assert_eq!((nan.count, nan.nulls), (1, 1));
        let huge = of(&[u64::MAX, u64::MAX], 1 << 20);
        assert_eq!(huge.sum, SummaryNumber::Whole(2 * i128::from(u64::MAX)));
    }

    #[test]
    fn the_budget_is_given_back() {
        let budget = Budget::new(1 << 20);
        let all =
            Samples::together((0..10).map(|_| Samples::<i64>::new(&budget)).collect(), &budget);
        assert_eq!(all.finish().count, 0);
        for _ in 0..10 {
            let mut samples = Samples::new(&budget);
            let mut other = Samples::new(&budget);
            (0..10_000i64).for_each(|number| samples.push(number));
            other.extend(&[1; 5000]);
            let mut third = Samples::new(&budget);
            third.extend(&[2; 500]);
            samples.join(other);
            assert!(Samples::together(vec![samples, third], &budget).finish().exact);
        }
        assert_eq!(budget.0.load(Relaxed), 1 << 20);
    }

    #[test]
    fn large_numbers_differ_as_small_ones_do() {
        let values: Vec<u64> = (0..100).map(|n| u64::MAX - n % 5).collect();
        for bytes in [1 << 20, 0] {
            let budget = Budget::new(bytes);
            let mut all = Samples::new(&budget);
            for part in values.chunks(30) {
                let mut samples = Samples::new(&budget);
                samples.extend(part);
                all.join(samples);
            }
            let expected = (200.0f64 / 99.0).sqrt();
            assert!((all.finish().sd.unwrap() - expected).abs() < 1e-12);
        }
    }

    #[test]
    fn percentiles_beyond_floats_are_whole() {
        let first = (1u64 << 53) + 1;
        let exact = of(&[first; 3], 1 << 20);
        let one = Some(SummaryNumber::Whole(first.into()));
        assert_eq!((exact.min, exact.mean, exact.percentiles), (one, one, [one; 4]));
        let sketched = of(&[first; 3], 0);
        assert_eq!((sketched.mean, sketched.percentiles), (one, [one; 4]));
        let pair = of(&[first, u64::MAX], 1 << 20);
        let middle = i128::from(first) + i128::from(u64::MAX - first) / 2;
        let Some(SummaryNumber::Whole(half)) = pair.percentiles[0] else { panic!("{pair:?}") };
        assert!((half - middle).abs() <= 1024, "{half} is about {middle}");
    }

    #[test]
    fn the_mean_of_equal_values_is_that_value() {
        // 0.1 + 0.1 + 0.1 is more than 0.3.
        let means = [1 << 20, 0].map(|budget| of(&[0.1; 3], budget).mean);
        assert_eq!(means, [Some(SummaryNumber::Real(0.1)); 2]);
    }

    proptest! {
        #[test]
        fn no_number_contradicts_another(
            values in prop::collection::vec(
                prop_oneof![any::<u64>(), u64::MAX - 9..=u64::MAX, (1u64 << 53) - 2..=(1u64 << 53) + 9],
                1..50,
            ),
            budget in prop_oneof![Just(0usize), Just(1 << 20)],
        ) {
            let summary = of(&values, budget);
            let (min, max) = (summary.min.unwrap(), summary.max.unwrap());
            let percentiles = summary.percentiles.map(Option::unwrap);
            let rising = [vec![min], percentiles.to_vec(), vec![max]].concat();
            let mean = [min, summary.mean.unwrap(), max];
            for pair in rising.windows(2).chain(mean.windows(2)) {
                prop_assert!(!pair[1].is_less(pair[0]), "{:?}", summary);
            }
        }

        #[test]
        fn sketches_are_right_to_three_digits(
            values in prop::collection::vec(-1_000_000_000i64..1_000_000_000, 1..3000),
            parts in 1usize..4,
        ) {
            let exact = of(&values, 1 << 30);
            let budget = Budget::new(0);
            let mut all = Samples::new(&budget);
            for part in values.chunks(values.len().div_ceil(parts)) {
                let mut samples = Samples::new(&budget);
                samples.extend(part);
                all.join(samples);
            }
            let sketched = all.finish();
            prop_assert!(!sketched.exact);
            prop_assert_eq!(
            (sketched.count, sketched.min, sketched.max),
            (exact.count, exact.min, exact.max)
            );
            prop_assert_eq!((sketched.sum, sketched.mean), (exact.sum, exact.mean));
            let near = |a: f64, b: f64, by: f64| (a - b).abs() <= by * b.abs().max(1.0);
            match (sketched.sd, exact.sd) {
            (Some(sketched), Some(exact)) => prop_assert!(near(sketched, exact, 1e-9)),
            (sketched, exact) => prop_assert_eq!(sketched, exact),
            }
            let mut sorted = values.clone();
            sorted.sort_unstable();
            for (p, percentile) in PERCENTILES.iter().zip(sketched.percentiles) {
                // Any value between neighbours is valid: a sketch does not interpolate.
                let place = (sorted.len() - 1) as f64 * p;
                let (low, high) = (sorted[place.floor() as usize], sorted[place.ceil() as usize]);
                let percentile = percentile.unwrap().float();
                let slack = |value: i64| (value as f64).abs() * 1e-3 + 1e-9;
                prop_assert!(low as f64 - slack(low) <= percentile);
                prop_assert!(percentile <= high as f64 + slack(high));
            }
        }

        #[test]
        fn parts_say_what_the_whole_says(
            values in prop::collection::vec(-1e12f64..1e12, 0..500), at in 0usize..500,
        ) {
            let at = at.min(values.len());
            let budget = Budget::new(1 << 20);
            let (mut one, mut other) = (Samples::new(&budget), Samples::new(&budget));
            one.extend(&values[..at]);
            values[at..].iter().for_each(|&value| other.push(value));
            prop_assert_eq!(one.summary().count, at as u64);
            let joined = Samples::together(vec![one, other], &budget).finish();
            // Sums of floats depend on their order, and the first part is reordered now.
            let whole = of(&values, 1 << 20);
            let near = |a: Option<f64>, b: Option<f64>| match (a, b) {
                (Some(a), Some(b)) => (a - b).abs() <= 1e-9 * b.abs().max(1e3),
                (a, b) => a == b,
            };
            prop_assert!(near(joined.sd, whole.sd));
            prop_assert!(near(joined.mean_as_float(), whole.mean_as_float()));
            prop_assert_eq!(
            (joined.percentiles, joined.min, joined.max),
            (whole.percentiles, whole.min, whole.max)
            );
        }

        #[test]
        fn joined_parts_say_what_the_whole_says(
            values in prop::collection::vec(-1e12f64..1e12, 0..500), at in 0usize..500,
        ) {
            let at = at.min(values.len());
            let budget = Budget::new(1 << 20);
            let (mut one, mut other) = (Samples::new(&budget), Samples::new(&budget));
            one.extend(&values[..at]);
            values[at..].iter().for_each(|&value| other.push(value));
            one.join(other);
            prop_assert_eq!(one.finish(), of(&values, 1 << 20));
        }

        #[test]
        fn selection_is_sorting(values in prop::collection::vec(any::<i32>(), 1..300)) {
            let values: Vec<i64> = values.into_iter().map(Into::into).collect();
            let mut sorted = values.clone();
            sorted.sort_unstable();
            let expected = PERCENTILES.map(|p| {
                let place = (sorted.len() - 1) as f64 * p;
                let (low, high) = (place.floor() as usize, place.ceil() as usize);
                Some(between(sorted[low] as f64, sorted[high] as f64, place - place.floor()))
            });
            prop_assert_eq!(of(&values, 1 << 20).percentiles_as_floats(), expected);
        }
    }
}
