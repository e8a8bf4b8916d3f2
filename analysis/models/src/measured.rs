//! One side of a comparison: a field in one run or in several.

use std::fmt;
use std::str::FromStr;

use ppt_stats::quantile;
use serde::{Deserialize, Serialize};
use thiserror::Error;

/// What is compared of the values of a field.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(into = "String", try_from = "String")]
pub enum Statistic {
    /// The arithmetic mean.
    Mean,
    /// The value below which this many of 100,000 lie.
    Quantile(u32),
    /// The least.
    Min,
    /// The greatest.
    Max,
    /// The standard deviation.
    Deviation,
}

/// Parts of a [`Statistic::Quantile`].
const WHOLE: f64 = 100_000.0;

impl Statistic {
    /// The median.
    pub const MEDIAN: Statistic = Statistic::Quantile(50_000);
    /// What a comparison shows by default.
    pub const USUAL: [Statistic; 3] =
        [Statistic::Mean, Statistic::MEDIAN, Statistic::Quantile(99_000)];
    /// What can be asked for.
    pub const WORDS: [&'static str; 6] =
        ["mean", "median", "p99 (any p0 … p100)", "min", "max", "sd"];

    /// Of values that are sorted and not none.
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

/// A word that names no statistic.
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

/// What stands for an independent repetition.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Repetition {
    /// A run of the program.
    Run,
    /// A part of the only run, cut in the order of its values: nothing says how runs differ.
    Part,
}

/// A field of one side: its statistics in each unit.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct MeasuredField {
    /// What each unit is.
    pub unit: Repetition,
    /// Values in all.
    pub values: u64,
    /// Each statistic.
    pub statistics: Vec<Units>,
    /// Quantiles of all values, at equal steps from the least to the greatest.
    pub spread: Vec<f64>,
}

/// A statistic in each unit.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Units {
    /// Which.
    pub statistic: Statistic,
    /// Of runs their mean; of a single run that of all its values.
    pub value: f64,
    /// In each unit.
    pub units: Vec<f64>,
}

/// The only run is cut into this many parts: few enough that one says little about the next.
const PARTS: usize = 10;
/// Values that a part of a run has at least.
const EACH: usize = 5;
/// Quantiles of a spread.
const STEPS: usize = 200;

/// Why a field cannot be compared.
#[derive(Debug, Clone, PartialEq, Error, strum::IntoStaticStr, strum::VariantNames)]
#[strum(serialize_all = "kebab-case", prefix = "compare-")]
pub enum CompareError {
    /// No run has a value.
    #[error("there are no values")]
    NoValues,
    /// The only run has too few values to say how they vary.
    #[error("the only run has {values} values: at least {least} are needed, or more runs")]
    TooFew {
        /// So many.
        values: usize,
        /// So many are needed.
        least: usize,
    },
    /// A value that is infinite.
    #[error("value {} of run {} is {value}", .row + 1, .run + 1)]
    NotFinite {
        /// The run, from 0.
        run: usize,
        /// Its place there, from 0.
        row: usize,
        /// The value.
        value: f64,
    },
    /// A statistic that a side does not have.
    #[error("{statistic} was not saved; there are: {}", .there.iter().map(ToString::to_string)
        .collect::<Vec<_>>().join(", "))]
    NotThere {
        /// Which.
        statistic: Statistic,
        /// Those that it has.
        there: Vec<Statistic>,
    },
    /// A level that is none.
    #[error("a level of {level} is not between 0 and 1")]
    Level {
        /// The level.
        level: f64,
    },
    /// A file that is no side.
    #[error("what was saved is damaged: {what}")]
    Damaged {
        /// Why.
        what: String,
    },
}

impl MeasuredField {
    /// Of the values of each run, in the order of time. NaN is none; a run without a value does not
    /// count.
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
        let there = |values: &Vec<f64>| {
            values.iter().copied().filter(|value| !value.is_nan()).collect::<Vec<f64>>()
        };
        let mut units: Vec<Vec<f64>> =
            runs.iter().map(there).filter(|values| !values.is_empty()).collect();
        let mut all: Vec<f64> = units.concat();
        if all.is_empty() {
            return Err(CompareError::NoValues);
        }
        let unit = if units.len() > 1 { Repetition::Run } else { Repetition::Part };
        if unit == Repetition::Part {
            let least = 2 * EACH;
            if all.len() < least {
                return Err(CompareError::TooFew { values: all.len(), least });
            }
            let parts = PARTS.min(all.len() / EACH);
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

    /// How many units there are.
    pub fn units(&self) -> usize {
        self.statistics.first().map_or(0, |statistic| statistic.units.len())
    }

    /// One of its statistics.
    ///
    /// # Errors
    /// It was not measured.
    pub fn statistic(&self, statistic: Statistic) -> Result<&Units, CompareError> {
        self.statistics.iter().find(|units| units.statistic == statistic).ok_or_else(|| {
            let there = self.statistics.iter().map(|statistic| statistic.statistic).collect();
            CompareError::NotThere { statistic, there }
        })
    }

    /// What was read from a file is what could have been measured.
    ///
    /// # Errors
    /// What is wrong with it.
    pub fn check(&self) -> Result<(), CompareError> {
        let damaged = |what: &str| Err(CompareError::Damaged { what: what.to_owned() });
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
