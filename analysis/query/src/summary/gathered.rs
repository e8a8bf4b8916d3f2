//! The gathered values of a field, and their summary.

use std::collections::{BTreeMap, HashMap};

use datafusion::arrow::array::{Array, ArrayRef, PrimitiveArray};
use datafusion::arrow::compute::cast;
use datafusion::arrow::datatypes::ArrowPrimitiveType;
use ppt_stats::{Budget, ColumnValue, Distinct, Samples, Summary};

use super::answer::{FieldSummary, SummaryRequest, SummaryValues};
use super::plan::{SummarisedField, ValueType};
use crate::error::QueryError;

/// The gathered values of a field.
pub(super) enum Gathered {
    /// Values; for an interval of time, its first begin and its last end.
    Signed(Samples<i64>, Option<(i64, i64)>),
    Unsigned(Samples<u64>),
    Real(Samples<f64>),
    /// Numbers of rows by word, and the number of NULLs.
    Words(HashMap<String, u64>, u64),
    Keys(Distinct),
}

impl Gathered {
    /// No values.
    pub(super) fn new(kind: ValueType, budget: &Budget) -> Gathered {
        match kind {
            ValueType::Signed => Gathered::Signed(Samples::new(budget), None),
            ValueType::Unsigned => Gathered::Unsigned(Samples::new(budget)),
            ValueType::Real => Gathered::Real(Samples::new(budget)),
            ValueType::Words => Gathered::Words(HashMap::new(), 0),
            ValueType::Keys => Gathered::Keys(Distinct::new(budget)),
        }
    }

    /// Whether there are no values, or all are 0, as in fields that a program does not set. `zero`: the
    /// word for 0.
    pub(super) fn is_unset(&self, zero: Option<&str>) -> bool {
        fn zeros<T: ColumnValue>(samples: &Samples<T>) -> bool {
            samples.ends().is_none_or(|(low, high)| low.float() == 0.0 && high.float() == 0.0)
        }
        match self {
            Gathered::Signed(samples, _) => zeros(samples),
            Gathered::Unsigned(samples) => zeros(samples),
            Gathered::Real(samples) => zeros(samples),
            Gathered::Words(counts, _) => counts.keys().all(|word| Some(word.as_str()) == zero),
            Gathered::Keys(distinct) => distinct.values() == 0 || distinct.is_zero(),
        }
    }

    pub(super) fn join(&mut self, other: Gathered) {
        match (self, other) {
            (Gathered::Signed(one, ends), Gathered::Signed(other, theirs)) => {
                one.join(other);
                *ends = hull(*ends, theirs);
            }
            (Gathered::Unsigned(one), Gathered::Unsigned(other)) => one.join(other),
            (Gathered::Real(one), Gathered::Real(other)) => one.join(other),
            (Gathered::Keys(one), Gathered::Keys(other)) => one.join(other),
            (Gathered::Words(one, nulls), Gathered::Words(other, theirs)) => {
                other.into_iter().for_each(|(word, count)| *one.entry(word).or_default() += count);
                *nulls += theirs;
            }
            _ => {}
        }
    }
}

/// The summary of all values of a field, with their distribution, and that of each slice of time, if
/// there are slices.
pub(super) fn total_and_slices(
    mut all: Vec<Gathered>,
    summarised: &SummarisedField,
    step: Option<&String>,
    every: Option<i64>,
    budget: &Budget,
) -> (FieldSummary, Vec<Option<Summary>>) {
    let slices = match every {
        Some(_) => all.iter_mut().map(Gathered::summary).collect(),
        None => all.iter().map(|_| None).collect(),
    };
    let total = Gathered::union(all, summarised.kind, budget);
    (total.field_summary(summarised, step.cloned(), (None, true)), slices)
}

/// The hull of two periods.
pub(super) fn hull(one: Option<(i64, i64)>, other: Option<(i64, i64)>) -> Option<(i64, i64)> {
    match (one, other) {
        (Some(one), Some(other)) => Some((one.0.min(other.0), one.1.max(other.1))),
        (one, other) => one.or(other),
    }
}

impl Gathered {
    /// The summary of numbers; None for words and keys.
    fn summary(&mut self) -> Option<Summary> {
        match self {
            Gathered::Signed(samples, _) => Some(samples.summary()),
            Gathered::Unsigned(samples) => Some(samples.summary()),
            Gathered::Real(samples) => Some(samples.summary()),
            Gathered::Words(..) | Gathered::Keys(_) => None,
        }
    }

    /// The union of gathered values.
    fn union(all: Vec<Gathered>, kind: ValueType, budget: &Budget) -> Gathered {
        let (mut signed, mut unsigned, mut real) = (Vec::new(), Vec::new(), Vec::new());
        let (mut ends, mut others) = (None, Gathered::new(kind, budget));
        for gathered in all {
            match gathered {
                Gathered::Signed(samples, own) => {
                    ends = hull(ends, own);
                    signed.push(samples);
                }
                Gathered::Unsigned(samples) => unsigned.push(samples),
                Gathered::Real(samples) => real.push(samples),
                words_or_keys => others.join(words_or_keys),
            }
        }
        match kind {
            ValueType::Signed => Gathered::Signed(Samples::together(signed, budget), ends),
            ValueType::Unsigned => Gathered::Unsigned(Samples::together(unsigned, budget)),
            ValueType::Real => Gathered::Real(Samples::together(real, budget)),
            ValueType::Words | ValueType::Keys => others,
        }
    }

    pub(super) fn signed(&mut self) -> Option<&mut Samples<i64>> {
        if let Gathered::Signed(samples, _) = self { Some(samples) } else { None }
    }

    pub(super) fn unsigned(&mut self) -> Option<&mut Samples<u64>> {
        if let Gathered::Unsigned(samples) = self { Some(samples) } else { None }
    }

    pub(super) fn real(&mut self) -> Option<&mut Samples<f64>> {
        if let Gathered::Real(samples) = self { Some(samples) } else { None }
    }

    pub(super) fn finish(
        self,
        summarised: &SummarisedField,
        step: Option<String>,
        request: &SummaryRequest,
    ) -> FieldSummary {
        let with_spread = request.spread.as_ref() == Some(summarised.field.name());
        self.field_summary(summarised, step, (request.every, with_spread))
    }

    /// `every`: the width of slices of time, in ns; `with_spread`: whether the distribution is wanted.
    fn field_summary(
        self,
        summarised: &SummarisedField,
        step: Option<String>,
        (every, with_spread): (Option<i64>, bool),
    ) -> FieldSummary {
        fn numbers<T: ColumnValue>(
            samples: Samples<T>,
            with_spread: bool,
            wall: Option<i64>,
        ) -> SummaryValues {
            let spread = with_spread.then(|| Box::new(samples.sketch()));
            let summary = Box::new(samples.finish());
            let wall = wall.filter(|&wall| wall > 0);
            let busy = wall.map(|wall| summary.sum.float() / wall as f64);
            SummaryValues::Numbers { summary, busy, spread }
        }
        let values = match self {
            Gathered::Signed(samples, ends) => {
                let span = ends.and_then(|(first, last)| last.checked_sub(first));
                let wall = if summarised.ends.is_some() { every.or(span) } else { None };
                numbers(samples, with_spread, wall)
            }
            Gathered::Unsigned(samples) => numbers(samples, with_spread, None),
            Gathered::Real(samples) => numbers(samples, with_spread, None),
            Gathered::Words(counts, nulls) => {
                let sorted: BTreeMap<_, _> = counts.into_iter().collect();
                let mut counts: Vec<(String, u64)> = sorted.into_iter().collect();
                counts.sort_by_key(|count| std::cmp::Reverse(count.1));
                SummaryValues::Words { counts, nulls }
            }
            Gathered::Keys(keys) => SummaryValues::Keys {
                distinct: keys.count(),
                count: keys.values(),
                nulls: keys.nulls(),
            },
        };
        let unit = summarised.field.metadata().get("unit").cloned().unwrap_or_default();
        FieldSummary { name: summarised.field.name().clone(), step, unit, values }
    }
}

pub(super) fn extend<T: ArrowPrimitiveType<Native: ColumnValue>>(
    samples: &mut Samples<T::Native>,
    values: &PrimitiveArray<T>,
) {
    if values.null_count() == 0 {
        samples.extend(values.values());
        return;
    }
    samples.push_nulls(values.null_count() as u64);
    values.iter().flatten().for_each(|value| samples.push(value));
}

/// Casts integers of any width.
pub(super) fn cast_integers<T: ArrowPrimitiveType>(
    column: &ArrayRef,
) -> Result<ArrayRef, QueryError> {
    cast(column, &T::DATA_TYPE).map_err(arrow)
}

pub(super) fn arrow(error: datafusion::arrow::error::ArrowError) -> QueryError {
    QueryError::Failed(error.to_string())
}
