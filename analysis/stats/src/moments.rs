//! Sums, means and squares of values.

use crate::ColumnValue;
use crate::summary::SummaryNumber;

/// Mean and sum of squares, which can be merged (Chan, Golub, LeVeque).
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct RunningMoments {
    pub count: f64,
    /// The first value, if it is whole: floats represent small distances from it exactly.
    origin: i128,
    /// Relative to the origin.
    mean: f64,
    pub squares: f64,
    pub sum: Sum,
}

#[derive(Debug, Clone, Copy)]
pub(crate) enum Sum {
    Whole(i128),
    Real(f64),
}

impl Default for Sum {
    fn default() -> Self {
        Sum::Whole(0)
    }
}

impl Sum {
    fn add(&mut self, value: impl ColumnValue) {
        *self = match (*self, value.whole()) {
            (Sum::Whole(sum), Some(whole)) => Sum::Whole(sum.saturating_add(whole)),
            (sum, _) => Sum::Real(sum.float() + value.float()),
        }
    }

    fn join(self, other: Sum) -> Sum {
        match (self, other) {
            (Sum::Whole(one), Sum::Whole(other)) => Sum::Whole(one.saturating_add(other)),
            (one, other) => Sum::Real(one.float() + other.float()),
        }
    }

    fn float(self) -> f64 {
        match self {
            Sum::Whole(sum) => sum as f64,
            Sum::Real(sum) => sum,
        }
    }
}

impl RunningMoments {
    /// The moments of `count` values, one of which is `least`.
    pub fn new<T: ColumnValue>(
        values: impl Iterator<Item = T> + Clone,
        count: u64,
        least: T,
    ) -> RunningMoments {
        let origin = least.whole().unwrap_or_default();
        let sum = sum(values.clone(), least);
        let (squares, mean) = squares(values, (sum, count), origin);
        RunningMoments { count: count as f64, origin, mean, squares, sum }
    }

    pub fn add(&mut self, value: impl ColumnValue) {
        self.sum.add(value);
        if self.count == 0.0 {
            self.origin = value.whole().unwrap_or_default();
        }
        self.count += 1.0;
        let value = from(self.origin, value);
        let off = value - self.mean;
        self.mean += off / self.count;
        self.squares += off * (value - self.mean);
    }

    pub fn join(self, other: RunningMoments) -> RunningMoments {
        if self.count == 0.0 {
            return other;
        }
        if other.count == 0.0 {
            return self;
        }
        let count = self.count + other.count;
        let off = other.mean - self.mean + (other.origin - self.origin) as f64;
        RunningMoments {
            count,
            origin: self.origin,
            mean: self.mean + off * other.count / count,
            squares: self.squares + other.squares + off * off * self.count * other.count / count,
            sum: self.sum.join(other.sum),
        }
    }
}

/// The distance of a value from a whole one; exact before rounding if both are whole.
pub(crate) fn from(origin: i128, value: impl ColumnValue) -> f64 {
    value.whole().map_or(value.float(), |whole| (whole - origin) as f64)
}

pub(crate) fn number(sum: Sum) -> SummaryNumber {
    match sum {
        Sum::Whole(sum) => SummaryNumber::Whole(sum),
        Sum::Real(sum) => SummaryNumber::Real(sum),
    }
}

/// The mean of `count` values, which lies between `ends`.
pub(crate) fn mean(
    sum: Sum,
    count: u64,
    ends: Option<(impl ColumnValue, impl ColumnValue)>,
) -> Option<SummaryNumber> {
    let (least, greatest) = ends?;
    let mean = finite(sum.float() / count as f64)?;
    Some(SummaryNumber::Real(mean).within(least.number(), greatest.number()))
}

fn finite(value: f64) -> Option<f64> {
    value.is_finite().then_some(value)
}

pub(crate) fn deviation(squares: f64, count: u64) -> Option<f64> {
    (count > 1).then(|| (squares / (count - 1) as f64).sqrt()).and_then(finite)
}

pub(crate) fn ends<T: ColumnValue>(mut values: impl Iterator<Item = T>) -> Option<(T, T)> {
    let first = values.next()?;
    let reach = |(least, greatest), value: T| {
        (if value < least { value } else { least }, if value > greatest { value } else { greatest })
    };
    Some(values.fold((first, first), reach))
}

/// Memory cannot hold as many values as it would take to overflow 128 bits.
pub(crate) fn sum<T: ColumnValue>(values: impl Iterator<Item = T>, least: T) -> Sum {
    match least.whole() {
        Some(_) => Sum::Whole(values.filter_map(ColumnValue::whole).sum()),
        None => Sum::Real(values.map(ColumnValue::float).sum()),
    }
}

/// The sum of squared deviations from the mean, and the mean, minus the origin. Whole values close
/// to each other may all be the same float.
pub(crate) fn squares<T: ColumnValue>(
    values: impl Iterator<Item = T>,
    (sum, count): (Sum, u64),
    origin: i128,
) -> (f64, f64) {
    let middle = match sum {
        Sum::Whole(sum) => (sum - origin * i128::from(count)) as f64 / count as f64,
        Sum::Real(sum) => sum / count as f64,
    };
    let square = |value: T| {
        let off = from(origin, value) - middle;
        off * off
    };
    (values.map(square).sum(), middle)
}
