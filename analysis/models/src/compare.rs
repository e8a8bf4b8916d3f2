//! The comparison of two sets of runs.
//!
//! The unit is the run: the statistics of a field in each run are compared. Frames of one run share its
//! conditions, such as its memory layout and its neighbours, so even a million frames predict little about the
//! next run.

use std::fmt;

use crate::bootstrap::{Resampling, expanded_by};
use crate::chance::{Resampler, t_quantile};
use crate::interval::ConfidenceInterval;
use crate::measured::{CompareError, MeasuredField, Repetition, Statistic, Units};

/// The smallest number of units for a bootstrap.
const MIN_UNITS: usize = 5;

/// The parameters of a comparison.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Comparing {
    /// The share of cases in which an interval holds the truth: 0.95.
    pub level: f64,
    /// The number of changes that are judged together. The probability that any of their verdicts is wrong by
    /// chance is that of a single one.
    pub family: usize,
    /// Changes by a smaller share are ignored.
    pub margin: f64,
    /// The parameters of the bootstrap.
    pub resampling: Resampling,
}

impl Default for Comparing {
    fn default() -> Self {
        let resampling = Resampling { count: 5000, seed: 1 };
        Comparing { level: 0.95, family: 1, margin: 0.02, resampling }
    }
}

/// The comparison of a field in two sets of runs.
#[derive(Debug, Clone, PartialEq)]
pub struct Comparison {
    /// The changes of its statistics.
    pub changes: Vec<Change>,
    /// The probability that a value of the second set is above one of the first, by quantiles of all values:
    /// 0.5 without a change.
    pub above: f64,
    /// The kinds and numbers of units of both sides.
    pub units: [(Repetition, usize); 2],
}

impl Comparison {
    /// Whether a side has a single run: then the difference of runs is unknown, and any two runs might differ
    /// as much.
    pub fn one_run(&self) -> bool {
        self.units.iter().any(|unit| unit.0 == Repetition::Part)
    }
}

/// A value and its intervals.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Estimate {
    /// The value.
    pub value: f64,
    /// The interval by Welch's t.
    pub interval: ConfidenceInterval,
    /// The interval by resampling units, if each side has at least five.
    pub bootstrap: Option<ConfidenceInterval>,
}

impl Estimate {
    /// The smallest interval that contains both.
    pub fn believed(&self) -> ConfidenceInterval {
        let Some(other) = self.bootstrap else { return self.interval };
        let (low, high) = (self.interval.low.min(other.low), self.interval.high.max(other.high));
        ConfidenceInterval { low, high }
    }
}

/// The change of a statistic from the first set to the second.
#[derive(Debug, Clone, PartialEq)]
pub struct Change {
    /// The statistic.
    pub statistic: Statistic,
    /// The values of the statistic in both sets.
    pub values: [f64; 2],
    /// The second minus the first.
    pub difference: Estimate,
    /// The second by the first; None unless every unit of both is above 0.
    pub ratio: Option<Estimate>,
    /// The difference in standard deviations of units (Hedges' g); None if units do not vary.
    pub effect: Option<f64>,
    /// The verdict.
    pub direction: Direction,
    /// The level of the verdict: higher if many changes are judged together.
    pub level: f64,
    /// The ratio at that level, or the difference if there is no ratio.
    pub decisive: Estimate,
    /// The difference at that level.
    pub decisive_difference: Estimate,
}

/// The verdict about a change.
#[derive(Debug, Clone, Copy, PartialEq, Eq, strum::Display)]
#[strum(serialize_all = "lowercase")]
pub enum Direction {
    /// The statistic rose.
    Higher,
    /// The statistic fell.
    Lower,
    /// Any change is smaller than the margin.
    Same,
    /// Undecided.
    Unclear,
}

impl fmt::Display for Change {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let statistic = self.statistic;
        let percent = |ratio: f64| (ratio - 1.0) * 100.0;
        match (&self.ratio, self.direction) {
            (Some(estimate), Direction::Higher | Direction::Lower) => {
                let (by, range) = (percent(estimate.value), estimate.believed());
                let (low, high) = (percent(range.low), percent(range.high));
                write!(
                    f,
                    "{statistic} is {:.1} % {} ({low:+.1} to {high:+.1} %)",
                    by.abs(),
                    self.direction
                )
            }
            (Some(estimate), Direction::Same) => {
                let most = percent(estimate.believed().low)
                    .abs()
                    .max(percent(estimate.believed().high).abs());
                write!(f, "{statistic} is the same to {most:.1} %")
            }
            (Some(estimate), Direction::Unclear) => {
                let (low, high) =
                    (percent(estimate.believed().low), percent(estimate.believed().high));
                write!(f, "{statistic} may have changed by {low:+.1} to {high:+.1} %: not shown")
            }
            (None, Direction::Higher | Direction::Lower) => {
                let (by, range) = (self.difference.value, self.difference.believed());
                let direction = self.direction;
                write!(f, "{statistic} is {} {direction} ({range})", by.abs())
            }
            (None, Direction::Same) => write!(f, "{statistic} is the same"),
            (None, Direction::Unclear) => {
                let range = self.difference.believed();
                write!(f, "{statistic} may have changed by {range}: not shown")
            }
        }
    }
}

impl Comparison {
    /// Compares the second side with the first, by the statistics of the second.
    ///
    /// # Errors
    /// A side has no values, or the first lacks a statistic of the second.
    pub fn between(
        first: &MeasuredField,
        second: &MeasuredField,
        options: Comparing,
    ) -> Result<Comparison, CompareError> {
        let level = options.level;
        if !(level > 0.0 && level < 1.0) {
            return Err(CompareError::Level { level });
        }
        first.check()?;
        second.check()?;
        let change = |units: &Units| Ok(change(first.statistic(units.statistic)?, units, options));
        Ok(Comparison {
            changes: second.statistics.iter().map(change).collect::<Result<_, _>>()?,
            above: above(&first.spread, &second.spread),
            units: [(first.unit, first.units()), (second.unit, second.units())],
        })
    }
}

/// The mean of units, and the variance of that mean.
struct UnitMoments {
    count: f64,
    mean: f64,
    variance: f64,
}

impl UnitMoments {
    fn from_units(units: &[f64]) -> UnitMoments {
        let count = units.len() as f64;
        let mean = units.iter().map(|unit| unit / count).sum::<f64>();
        let squares = units.iter().map(|unit| (unit - mean) * (unit - mean)).sum::<f64>();
        UnitMoments { count, mean, variance: squares / (count - 1.0) / count }
    }
}

/// The degrees of freedom of the sum of two variances of means (Welch, Satterthwaite).
fn welch(one: f64, other: f64, counts: [f64; 2]) -> f64 {
    let sum = one + other;
    let freedom = sum * sum / (one * one / (counts[0] - 1.0) + other * other / (counts[1] - 1.0));
    if freedom.is_finite() { freedom } else { counts[0] + counts[1] - 2.0 }
}

fn change(first: &Units, second: &Units, options: Comparing) -> Change {
    let (one, other) =
        (UnitMoments::from_units(&first.units), UnitMoments::from_units(&second.units));
    let counts = [one.count, other.count];
    let values = [first.value, second.value];
    let level = 1.0 - (1.0 - options.level) / options.family.max(1) as f64;
    let drawn = (first.units.len() >= MIN_UNITS && second.units.len() >= MIN_UNITS)
        .then(|| draw(&first.units, &second.units, options.resampling));
    let freedom = welch(one.variance, other.variance, counts);
    let variance = one.variance + other.variance;
    // The variance of resamples is (n − 1)/n of the unbiased one.
    let resampled = one.variance * (one.count - 1.0) / one.count
        + other.variance * (other.count - 1.0) / other.count;
    let wider = if resampled > 0.0 { (variance / resampled).sqrt() } else { 1.0 };
    let difference = |level: f64| {
        let value = values[1] - values[0];
        let wide = t_quantile((1.0 + level) / 2.0, freedom) * variance.sqrt();
        // Centred at the measured value, which is not always the mean of the units.
        let off = value - (other.mean - one.mean);
        let bootstrap = drawn.as_ref().map(|drawn| {
            let each = drawn.iter().map(|values| values[1] - values[0] + off).collect();
            expanded_by(each, level, wider, freedom)
        });
        Estimate { value, interval: ConfidenceInterval::around(value, wide), bootstrap }
    };
    let above_0 = first.units.iter().chain(&second.units).chain(&values).all(|unit| *unit > 0.0);
    let ratio = |level: f64| {
        let value = values[1] / values[0];
        let part = |moments: &UnitMoments| moments.variance / (moments.mean * moments.mean);
        let freedom = welch(part(&one), part(&other), counts);
        let wide = t_quantile((1.0 + level) / 2.0, freedom) * (part(&one) + part(&other)).sqrt();
        let off = value / (other.mean / one.mean);
        let bootstrap = drawn.as_ref().map(|drawn| {
            let each = drawn.iter().map(|values| off * values[1] / values[0]).collect();
            expanded_by(each, level, wider, freedom)
        });
        let interval = ConfidenceInterval { low: value * (-wide).exp(), high: value * wide.exp() };
        Estimate { value, interval, bootstrap }
    };
    let pooled = (one.variance * one.count * (one.count - 1.0)
        + other.variance * other.count * (other.count - 1.0))
        / (one.count + other.count - 2.0);
    let small = 1.0 - 3.0 / (4.0 * (one.count + other.count - 2.0) - 1.0);
    let effect = small * (values[1] - values[0]) / pooled.sqrt();
    let decisive = if above_0 { ratio(level) } else { difference(level) };
    let nothing = f64::from(u8::from(above_0));
    let margin = if above_0 { options.margin } else { 0.0 };
    let range = decisive.believed();
    let direction = match range {
        confidence_interval if confidence_interval.low > nothing => Direction::Higher,
        confidence_interval if confidence_interval.high < nothing => Direction::Lower,
        confidence_interval
            if confidence_interval.low >= nothing - margin
                && confidence_interval.high <= nothing + margin =>
        {
            Direction::Same
        }
        _ => Direction::Unclear,
    };
    Change {
        statistic: second.statistic,
        values,
        difference: difference(options.level),
        ratio: above_0.then(|| ratio(options.level)),
        effect: effect.is_finite().then_some(effect),
        direction,
        level,
        decisive,
        decisive_difference: difference(level),
    }
}

/// The means of both sides in each resample of units.
fn draw(first: &[f64], second: &[f64], resampling: Resampling) -> Vec<[f64; 2]> {
    let mut resampler = Resampler::new(resampling.seed);
    let mut mean = |units: &[f64]| {
        let count = units.len();
        (0..count).map(|_| units[resampler.below(count)]).sum::<f64>() / count as f64
    };
    (0..resampling.count.max(1)).map(|_| [mean(first), mean(second)]).collect()
}

/// The probability that a value of the second side is above one of the first; equal values count half.
fn above(first: &[f64], second: &[f64]) -> f64 {
    let mut sum = 0.0;
    for value in second {
        let below = first.partition_point(|first| first < value);
        let same = first.partition_point(|first| first <= value) - below;
        sum += below as f64 + same as f64 / 2.0;
    }
    sum / (first.len() * second.len()) as f64
}
