//! One side of a comparison: a field in one or more runs.

use std::fmt;
use std::str::FromStr;

use ppt_stats::quantile;
use serde::{Deserialize, Serialize};
use thiserror::Error;

/// A statistic of the values of a field.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(into = "String", try_from = "String")]
pub enum Statistic {
    /// The arithmetic mean.
    Mean,
    /// The value below which this many of 100,000 lie.
    Quantile(u32),
    /// The smallest value.
    Min,
    /// The largest value.
    Max,
    /// The standard deviation.
    Deviation,
}

/// The unit of a [`Statistic::Quantile`] is 1 by this number.
const WHOLE: f64 = 100_000.0;

impl Statistic {
    /// The median.
    pub const MEDIAN: Statistic = Statistic::Quantile(50_000);
    /// The statistics that a comparison shows by default.
    pub const USUAL: [Statistic; 3] =
        [Statistic::Mean, Statistic::MEDIAN, Statistic::Quantile(99_000)];
    /// The words for statistics.
    pub const WORDS: [&'static str; 6] =
        ["mean", "median", "p99 (any p0 … p100)", "min", "max", "sd"];

    /// The statistic of sorted values, of which there is at least one.
    fn compute(self, sorted: &[f64]) -> f64 {
        let count = sorted.len() as f64;
        let mean = || sorted.iter().map(|value| value / count).sum::<f64>();
        match self {
            Statistic::Mean => mean(),
            Statistic::Quantile(share) => {
                quantile(sorted, f64::from(share) / WHOLE).unwrap_or(f64::NAN)
            }
            Statistic::Min => sorted[0],
            Statistic::Max => sorted[sorted.len() - 1],
            Statistic::Deviation => {
                let mean = mean();
                let squares =
                    sorted.iter().map(|value| (value - mean) * (value - mean)).sum::<f64>();
                (squares / (count - 1.0).max(1.0)).sqrt()
            }
        }
    }
}

impl fmt::Display for Statistic {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Statistic::Mean => f.write_str("mean"),
            Statistic::Quantile(share) => write!(f, "p{}", f64::from(*share) / 1000.0),
            Statistic::Min => f.write_str("min"),
            Statistic::Max => f.write_str("max"),
            Statistic::Deviation => f.write_str("sd"),
        }
    }
}

/// A word that is not a statistic.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
#[error("there is no statistic `{0}`; there are: {list}", list = Statistic::WORDS.join(", "))]
pub struct NoStatistic(pub String);

impl FromStr for Statistic {
    type Err = NoStatistic;

    fn from_str(word: &str) -> Result<Statistic, NoStatistic> {
        let share = || {
            let digits = word.strip_prefix('p')?;
            let plain = digits.bytes().all(|byte| byte.is_ascii_digit() || byte == b'.');
            let share = digits.parse::<f64>().ok().filter(|value| plain && *value <= 100.0)?;
            let share = share * 1000.0;
            ((share - share.round()).abs() < 1e-6)
                .then_some(Statistic::Quantile(share.round() as u32))
        };
        match word {
            "mean" => Ok(Statistic::Mean),
            "median" => Ok(Statistic::MEDIAN),
            "min" => Ok(Statistic::Min),
            "max" => Ok(Statistic::Max),
            "sd" => Ok(Statistic::Deviation),
            _ => share().ok_or_else(|| NoStatistic(word.to_owned())),
        }
    }
}

impl From<Statistic> for String {
    fn from(statistic: Statistic) -> String {
        statistic.to_string()
    }
}

impl TryFrom<String> for Statistic {
    type Error = NoStatistic;

    fn try_from(word: String) -> Result<Statistic, NoStatistic> {
        word.parse()
    }
}

/// The units that count as independent repetitions.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Repetition {
    /// A run of the program.
    Run,
    /// A part of the only run, cut in the order of its values: the difference of runs is unknown.
    Part,
}

/// The statistics of a field of one side.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct MeasuredField {
    /// The kind of units.
    pub unit: Repetition,
    /// The number of values.
    pub values: u64,
    /// The statistics, with their values in each unit.
    pub statistics: Vec<Units>,
    /// Quantiles of all values, at equal steps from the smallest to the largest.
    pub spread: Vec<f64>,
}

/// A statistic in each unit.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Units {
    /// The statistic.
    pub statistic: Statistic,
    /// The mean over runs; of a single run, the statistic of all its values.
    pub value: f64,
    /// The statistic of each unit.
    pub units: Vec<f64>,
}

/// The number of parts of the only run: few enough to be nearly independent.
const PARTS: usize = 10;
/// The smallest number of values in a part.
const MIN_PART_VALUES: usize = 5;
/// The number of steps between the quantiles of a spread.
const STEPS: usize = 200;

/// Why a field cannot be compared.
#[derive(Debug, Clone, PartialEq, Error, strum::IntoStaticStr, strum::VariantNames)]
#[strum(serialize_all = "kebab-case", prefix = "compare-")]
pub enum CompareError {
    /// No run has a value.
    #[error("there are no values")]
    NoValues,
    /// The only run has too few values to show how they vary.
    #[error("the only run has {values} values: at least {least} are needed, or more runs")]
    TooFew {
        /// The number of values.
        values: usize,
        /// The smallest sufficient number.
        least: usize,
    },
    /// A value is infinite.
    #[error("value {} of run {} is {value}", .row + 1, .run + 1)]
    NotFinite {
        /// The run, from 0.
        run: usize,
        /// The index of the row in the run, from 0.
        row: usize,
        /// The value.
        value: f64,
    },
    /// A side does not have the statistic.
    #[error("{statistic} was not saved; there are: {}", .available.iter().map(ToString::to_string)
        .collect::<Vec<_>>().join(", "))]
    NotThere {
        /// The statistic.
        statistic: Statistic,
        /// The statistics that it has.
        available: Vec<Statistic>,
    },
    /// The level is not between 0 and 1.
    #[error("a level of {level} is not between 0 and 1")]
    Level {
        /// The level.
        level: f64,
    },
    /// A file is not a saved side.
    #[error("what was saved is damaged: {reason}")]
    Damaged {
        /// The reason.
        reason: String,
    },
}

impl MeasuredField {
    /// Computes statistics of the values of each run, which are in the order of time. NaN counts as no value,
    /// and a run without a value does not count.
    ///
    /// # Errors
    /// No run has a value, or a value is infinite.
    pub fn measure(
        runs: &[Vec<f64>],
        statistics: &[Statistic],
    ) -> Result<MeasuredField, CompareError> {
        for (run, values) in runs.iter().enumerate() {
            if let Some(row) = values.iter().position(|value| value.is_infinite()) {
                return Err(CompareError::NotFinite { run, row, value: values[row] });
            }
        }
        let present = |values: &Vec<f64>| {
            values.iter().copied().filter(|value| !value.is_nan()).collect::<Vec<f64>>()
        };
        let mut units: Vec<Vec<f64>> =
            runs.iter().map(present).filter(|values| !values.is_empty()).collect();
        let mut all: Vec<f64> = units.concat();
        if all.is_empty() {
            return Err(CompareError::NoValues);
        }
        let unit = if units.len() > 1 { Repetition::Run } else { Repetition::Part };
        if unit == Repetition::Part {
            let least = 2 * MIN_PART_VALUES;
            if all.len() < least {
                return Err(CompareError::TooFew { values: all.len(), least });
            }
            let parts = PARTS.min(all.len() / MIN_PART_VALUES);
            let edge = |at: usize| at * all.len() / parts;
            units = (0..parts).map(|at| all[edge(at)..edge(at + 1)].to_vec()).collect();
        }
        units.iter_mut().for_each(|unit| unit.sort_unstable_by(f64::total_cmp));
        all.sort_unstable_by(f64::total_cmp);
        let one = |&statistic: &Statistic| {
            let units: Vec<f64> = units.iter().map(|unit| statistic.compute(unit)).collect();
            let value = match unit {
                Repetition::Run => units.iter().map(|unit| unit / units.len() as f64).sum(),
                Repetition::Part => statistic.compute(&all),
            };
            Units { statistic, value, units }
        };
        let step = |at: usize| quantile(&all, at as f64 / STEPS as f64).unwrap_or(f64::NAN);
        Ok(MeasuredField {
            unit,
            values: all.len() as u64,
            statistics: statistics.iter().map(one).collect(),
            spread: (0..=STEPS).map(step).collect(),
        })
    }

    /// The number of units.
    pub fn units(&self) -> usize {
        self.statistics.first().map_or(0, |statistic| statistic.units.len())
    }

    /// One of the statistics.
    ///
    /// # Errors
    /// The side does not have it.
    pub fn statistic(&self, statistic: Statistic) -> Result<&Units, CompareError> {
        self.statistics.iter().find(|units| units.statistic == statistic).ok_or_else(|| {
            let available = self.statistics.iter().map(|units| units.statistic).collect();
            CompareError::NotThere { statistic, available }
        })
    }

    /// Checks that values from a file are possible.
    ///
    /// # Errors
    /// The values are impossible.
    pub fn check(&self) -> Result<(), CompareError> {
        let damaged = |reason: &str| Err(CompareError::Damaged { reason: reason.to_owned() });
        let finite = |values: &[f64]| values.iter().all(|value| value.is_finite());
        if self.statistics.is_empty() || self.units() < 2 {
            return damaged("a field has fewer than two units");
        }
        for statistic in &self.statistics {
            if statistic.units.len() != self.units() {
                return damaged("statistics of one field have different numbers of units");
            }
            if !statistic.value.is_finite() || !finite(&statistic.units) {
                return damaged("a statistic is no number");
            }
        }
        if self.spread.len() < 2 || !finite(&self.spread) || !self.spread.is_sorted() {
            return damaged("quantiles are not in order");
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_of_statistics() {
        for word in ["mean", "p50", "p99", "p99.9", "p99.999", "p0", "p100", "min", "max", "sd"] {
            assert_eq!(word.parse::<Statistic>().unwrap().to_string(), word);
        }
        assert_eq!("median".parse(), Ok(Statistic::MEDIAN));
        for word in ["", "p", "p101", "p-1", "pinf", "p1e1", "p99.9999", "avg", "P99", "p+5"] {
            assert!(word.parse::<Statistic>().is_err(), "{word}");
        }
    }

    #[test]
    fn one_run_is_cut_and_several_are_not() {
        let one =
            MeasuredField::measure(&[(0..95).map(f64::from).collect()], &Statistic::USUAL).unwrap();
        assert_eq!((one.unit, one.units(), one.values), (Repetition::Part, 10, 95));
        assert_eq!(one.statistic(Statistic::MEDIAN).unwrap().value, 47.0);
        let two = [vec![1.0, 2.0, 6.0], vec![5.0, f64::NAN], vec![]];
        let two = MeasuredField::measure(&two, &Statistic::USUAL).unwrap();
        assert_eq!((two.unit, two.units(), two.values), (Repetition::Run, 2, 4));
        assert_eq!(two.statistic(Statistic::Mean).unwrap().units, [3.0, 5.0]);
        assert_eq!(two.statistic(Statistic::Mean).unwrap().value, 4.0);
        assert!(two.check().is_ok() && one.check().is_ok());
    }

    #[test]
    fn what_cannot_be_measured() {
        let of = |runs: &[Vec<f64>]| MeasuredField::measure(runs, &Statistic::USUAL).map(|_| ());
        assert_eq!(of(&[]), Err(CompareError::NoValues));
        assert_eq!(of(&[vec![f64::NAN]]), Err(CompareError::NoValues));
        assert_eq!(of(&[vec![1.0; 9]]), Err(CompareError::TooFew { values: 9, least: 10 }));
        let infinite = of(&[vec![1.0], vec![2.0, f64::INFINITY]]).unwrap_err();
        assert_eq!(infinite.to_string(), "value 2 of run 2 is inf");
    }
}
