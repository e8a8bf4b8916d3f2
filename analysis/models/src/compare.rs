//! The comparison of two sets of runs.
//!
//! The unit is the run: the statistics of a field in each run are compared. Frames of one run share its
//! conditions, such as its memory layout and its neighbours, so even a million frames predict little about the
//! next run.

use std::fmt;

use ppt_stats::Resampler;

use crate::bootstrap::{Resampling, expanded_by};
use crate::chance::t_quantile;
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

/// Both sides of a change: estimates how much they differ, at any level.
struct UnitSides {
    values: [f64; 2],
    moments: [UnitMoments; 2],
    /// The means of both sides in each resample; None if a side has too few units.
    drawn: Option<Vec<[f64; 2]>>,
    /// The variance of the difference.
    variance: f64,
    /// Factor by which the intervals of resamples are too narrow.
    wider: f64,
}

impl UnitSides {
    fn new(first: &Units, second: &Units, resampling: Resampling) -> UnitSides {
        let moments = [first, second].map(|side| UnitMoments::from_units(&side.units));
        let [one, other] = &moments;
        let drawn = (first.units.len() >= MIN_UNITS && second.units.len() >= MIN_UNITS)
            .then(|| draw(&first.units, &second.units, resampling));
        let variance = one.variance + other.variance;
        // The variance of resamples is (n − 1)/n of the unbiased one.
        let resampled = one.variance * (one.count - 1.0) / one.count
            + other.variance * (other.count - 1.0) / other.count;
        let wider = if resampled > 0.0 { (variance / resampled).sqrt() } else { 1.0 };
        UnitSides { values: [first.value, second.value], moments, drawn, variance, wider }
    }

    /// The degrees of freedom of the sum of two variances of means.
    fn freedom(&self, variances: [f64; 2]) -> f64 {
        let [one, other] = &self.moments;
        welch(variances[0], variances[1], [one.count, other.count])
    }

    /// The second value minus the first.
    fn difference_at(&self, level: f64) -> Estimate {
        let [one, other] = &self.moments;
        let value = self.values[1] - self.values[0];
        let freedom = self.freedom([one.variance, other.variance]);
        let wide = t_quantile((1.0 + level) / 2.0, freedom) * self.variance.sqrt();
        // Centred at the measured value, which is not always the mean of the units.
        let off = value - (other.mean - one.mean);
        let bootstrap = self.drawn.as_ref().map(|drawn| {
            let each = drawn.iter().map(|values| values[1] - values[0] + off).collect();
            expanded_by(each, level, self.wider, freedom)
        });
        Estimate { value, interval: ConfidenceInterval::around(value, wide), bootstrap }
    }

    /// The second value by the first.
    fn ratio_at(&self, level: f64) -> Estimate {
        let [one, other] = &self.moments;
        let value = self.values[1] / self.values[0];
        let relative = [one, other].map(|side| side.variance / (side.mean * side.mean));
        let freedom = self.freedom(relative);
        let wide = t_quantile((1.0 + level) / 2.0, freedom) * (relative[0] + relative[1]).sqrt();
        let off = value / (other.mean / one.mean);
        let bootstrap = self.drawn.as_ref().map(|drawn| {
            let each = drawn.iter().map(|values| off * values[1] / values[0]).collect();
            expanded_by(each, level, self.wider, freedom)
        });
        let interval = ConfidenceInterval { low: value * (-wide).exp(), high: value * wide.exp() };
        Estimate { value, interval, bootstrap }
    }

    /// The difference in standard deviations of units; None if units do not vary.
    fn effect(&self) -> Option<f64> {
        let [one, other] = &self.moments;
        let pooled = (one.variance * one.count * (one.count - 1.0)
            + other.variance * other.count * (other.count - 1.0))
            / (one.count + other.count - 2.0);
        let small = 1.0 - 3.0 / (4.0 * (one.count + other.count - 2.0) - 1.0);
        let effect = small * (self.values[1] - self.values[0]) / pooled.sqrt();
        effect.is_finite().then_some(effect)
    }
}

fn change(first: &Units, second: &Units, options: Comparing) -> Change {
    let sides = UnitSides::new(first, second, options.resampling);
    let level = 1.0 - (1.0 - options.level) / options.family.max(1) as f64;
    let mut all = first.units.iter().chain(&second.units).chain(&sides.values);
    let above_0 = all.all(|unit| *unit > 0.0);
    let decisive = if above_0 { sides.ratio_at(level) } else { sides.difference_at(level) };
    let (nothing, margin) = if above_0 { (1.0, options.margin) } else { (0.0, 0.0) };
    Change {
        statistic: second.statistic,
        values: sides.values,
        difference: sides.difference_at(options.level),
        ratio: above_0.then(|| sides.ratio_at(options.level)),
        effect: sides.effect(),
        direction: direction(decisive.believed(), nothing, margin),
        level,
        decisive,
        decisive_difference: sides.difference_at(level),
    }
}

/// The verdict about an interval, in which `nothing` stands for no change.
fn direction(range: ConfidenceInterval, nothing: f64, margin: f64) -> Direction {
    if range.low > nothing {
        Direction::Higher
    } else if range.high < nothing {
        Direction::Lower
    } else if range.low >= nothing - margin && range.high <= nothing + margin {
        Direction::Same
    } else {
        Direction::Unclear
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
