//! Residuals, and the findings about the model that they support.

use std::fmt;

use nalgebra::{DMatrix, DVector};
use ppt_stats::{BinScale, Histogram, Sketch};
use statrs::distribution::{ChiSquared, ContinuousCDF};

use crate::chance::{f_beyond, normal_below};
use crate::fit::{Fit, Test};
use crate::squares::Squares;

/// Findings with a smaller p value are reported.
const RARE: f64 = 0.01;
/// Cook's distance from which a row decides the fit.
const DECIDES: f64 = 1.0;
/// The smallest reported ratio of the spreads of the upper and the lower half.
const SPREAD: f64 = 1.25;
/// The smallest reported correlation of neighbours.
const FOLLOWS: f64 = 0.1;
/// The number of bins for the search of modes: this factor times the cube root of the rows, up to a maximum.
const BINS_OF_ONE: f64 = 2.0;
const BINS: f64 = 40.0;
/// The smallest depth of a valley between modes, in standard deviations.
const SURE: f64 = 4.0;

/// Tests of the residuals of a fit.
#[derive(Debug, Clone, PartialEq)]
pub struct Residuals {
    /// Ramsey's RESET: whether the square and the cube of the fitted values explain more (F). None if they
    /// follow from the terms.
    pub bend: Option<Test>,
    /// The test of Breusch, Pagan and Koenker: whether the squared residuals depend on the terms (χ²).
    pub spread: Option<Test>,
    /// Durbin and Watson's statistic: 2 if neighbours in time are not correlated, 0 if they are equal. Only
    /// neighbours of one run count.
    pub durbin_watson: Option<f64>,
    /// The findings, the worst first. Empty if there is no trace of a pattern.
    pub findings: Vec<Finding>,
}

/// A pattern of residuals.
#[derive(Debug, Clone, PartialEq)]
pub enum Finding {
    /// The residuals are curved.
    Bend {
        /// The p value.
        p: f64,
    },
    /// Their spread is not constant.
    Spread {
        /// The ratio of the spreads in the upper and the lower half of the fitted values.
        times: f64,
        /// The p value.
        p: f64,
    },
    /// Neighbours are correlated.
    Follow {
        /// The correlation of neighbours.
        correlation: f64,
    },
    /// The residuals have several modes.
    Modes {
        /// The modes.
        at: Vec<f64>,
    },
    /// One row decides the fit.
    Decisive {
        /// The index of the row, from 0.
        row: usize,
        /// The columns of the row.
        values: Vec<(String, f64)>,
        /// Cook's distance.
        distance: f64,
    },
}

impl fmt::Display for Finding {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Finding::Bend { p } => {
                write!(f, "residuals bend: a term is missing ({})", by_chance(*p))
            }
            Finding::Spread { times, p } if *times >= 1.0 => write!(
                f,
                "the spread grows with the fitted value: it is {times:.1} times as wide in the upper \
                 half ({}), so intervals are too wide below and too narrow above",
                by_chance(*p)
            ),
            Finding::Spread { times, p } => write!(
                f,
                "the spread shrinks as the fitted value grows: it is {times:.1} times as wide in the \
                 upper half ({})",
                by_chance(*p)
            ),
            Finding::Follow { correlation } if *correlation > 0.0 => write!(
                f,
                "each residual is like the one before (correlation {correlation:.2}): rows are not \
                 independent, and t intervals are too narrow"
            ),
            Finding::Follow { correlation } => write!(
                f,
                "each residual is opposite to the one before (correlation {correlation:.2}): rows \
                 are not independent"
            ),
            Finding::Modes { at } => {
                let at: Vec<String> = at.iter().map(|value| format!("{value:.3e}")).collect();
                write!(
                    f,
                    "residuals have several modes, around {}: several kinds of work are in one model",
                    at.join(", ")
                )
            }
            Finding::Decisive { values, distance, .. } => {
                let value = |entry: &(String, f64)| format!("{} = {}", entry.0, short(entry.1));
                let values: Vec<String> = values.iter().map(value).collect();
                write!(
                    f,
                    "the row of {} decides the fit (Cook's distance {distance:.1}): look at it, or \
                     measure more like it",
                    values.join(" and ")
                )
            }
        }
    }
}

fn by_chance(p: f64) -> String {
    if p < 0.0001 { "p < 0.0001".to_owned() } else { format!("p = {p:.4}") }
}

impl Residuals {
    /// Tests the residuals of a fit.
    pub fn from_fit(fit: &Fit) -> Residuals {
        // If only rounding errors are left, their patterns mean nothing.
        let largest = fit.response().iter().fold(0.0, |most: f64, value| most.max(value.abs()));
        if fit.sigma <= largest * 1e-12 {
            return Residuals { bend: None, spread: None, durbin_watson: None, findings: vec![] };
        }
        let bend = bend(fit);
        let spread = spread(fit);
        let (durbin_watson, correlation) = follow(fit).unzip();
        let mut findings = Vec::new();
        let rare = |test: &Test| test.p < RARE;
        findings.extend(bend.filter(rare).map(|bend| Finding::Bend { p: bend.p }));
        if let Some((test, times)) = spread
            && test.p < RARE
            && !(1.0 / SPREAD..SPREAD).contains(&times)
        {
            findings.push(Finding::Spread { times, p: test.p });
        }
        let noise = 1.0 / (fit.points as f64).sqrt();
        let is_rare = |value: &f64| 2.0 * normal_below(-value.abs() / noise) < RARE;
        findings.extend(
            correlation
                .filter(|correlation| is_rare(correlation) && correlation.abs() >= FOLLOWS)
                .map(|correlation| Finding::Follow { correlation }),
        );
        let modes = modes(&fit.residuals);
        if modes.len() > 1 {
            findings.push(Finding::Modes { at: modes });
        }
        findings.extend(decisive(fit));
        let spread = spread.map(|spread| spread.0);
        Residuals { bend, spread, durbin_watson, findings }
    }
}

/// The share of the residuals that these columns explain.
fn more(fit: &Fit, columns: &[DVector<f64>]) -> Option<Test> {
    let added = columns.len();
    let inputs = with_columns(&fit.design.inputs, columns);
    if inputs.nrows() <= inputs.ncols() {
        return None;
    }
    let squares = Squares::new(&inputs).ok()?;
    let after = squares.nearest(&fit.design.response).1.norm_squared();
    let before = fit.sigma * fit.sigma * fit.freedom;
    let freedom = (inputs.nrows() - inputs.ncols()) as f64;
    let value = ((before - after) / added as f64) / (after / freedom);
    let p = f_beyond(value, added as f64, freedom);
    p.is_finite().then_some(Test { value, p })
}

/// Appends columns to a matrix.
pub(crate) fn with_columns(inputs: &DMatrix<f64>, columns: &[DVector<f64>]) -> DMatrix<f64> {
    let added = columns.iter().map(|column| column.column(0));
    DMatrix::from_columns(&inputs.column_iter().chain(added).collect::<Vec<_>>())
}

fn bend(fit: &Fit) -> Option<Test> {
    let fitted = DVector::from_column_slice(&fit.fitted);
    let largest = fitted.amax();
    if fit.formula.terms.is_empty() || largest == 0.0 {
        return None;
    }
    let fitted = fitted / largest;
    more(fit, &[fitted.map(|value| value * value), fitted.map(|value| value * value * value)])
}

/// Whether squared residuals depend on the terms, and the ratio of the spreads of upper and lower half.
fn spread(fit: &Fit) -> Option<(Test, f64)> {
    let terms = fit.formula.terms.len();
    if terms == 0 {
        return None;
    }
    let rows = fit.points;
    let inputs = if fit.formula.constant {
        fit.design.inputs.clone()
    } else {
        fit.design.inputs.clone().insert_column(0, 1.0)
    };
    let squares = Squares::new(&inputs).ok()?;
    let sizes =
        DVector::from_iterator(rows, fit.residuals.iter().map(|residual| residual * residual));
    let left = squares.nearest(&sizes).1.norm_squared();
    let all = sizes.add_scalar(-sizes.mean()).norm_squared();
    let value = rows as f64 * (1.0 - left / all);
    let p = ChiSquared::new(terms as f64).ok()?.sf(value.max(0.0));
    let mut order: Vec<usize> = (0..rows).collect();
    order.sort_by(|&i, &j| fit.fitted[i].total_cmp(&fit.fitted[j]));
    // Rows of one input stay together.
    let middle = fit.fitted[order[rows / 2]];
    let same = 1e-9 * middle.abs();
    let below = |cut: f64| order.partition_point(|&index| fit.fitted[index] < cut);
    let cut = Some(below(middle - same)).filter(|index| *index > 0).unwrap_or(below(middle + same));
    let (low, high) = order.split_at(cut);
    let width = |half: &[usize]| {
        (half.iter().map(|&index| sizes[index]).sum::<f64>() / half.len() as f64).sqrt()
    };
    let times = width(high) / width(low);
    (p.is_finite() && times.is_finite()).then_some((Test { value, p }, times))
}

/// Durbin and Watson's statistic, and the correlation of neighbours.
fn follow(fit: &Fit) -> Option<(f64, f64)> {
    let run = |row: usize| fit.design.runs.as_ref().map(|runs| runs.of_row[row]);
    let all: f64 = fit.residuals.iter().map(|residual| residual * residual).sum();
    let (mut steps, mut products, mut count) = (0.0, 0.0, 0u32);
    for (row, pair) in fit.residuals.windows(2).enumerate() {
        if run(row) == run(row + 1) {
            steps += (pair[1] - pair[0]) * (pair[1] - pair[0]);
            products += pair[0] * pair[1];
            count += 1;
        }
    }
    // Scaled as if all rows were of one run.
    let part = (fit.points - 1) as f64 / f64::from(count);
    let correlation = (part * products / all).clamp(-1.0, 1.0);
    (count > 0 && all > 0.0).then_some((part * steps / all, correlation))
}

/// The modes of residuals, if the valleys between them are significant.
fn modes(residuals: &[f64]) -> Vec<f64> {
    let mut sketch = Sketch::default();
    residuals.iter().for_each(|&residual| sketch.add(residual));
    let bins = (BINS_OF_ONE * (residuals.len() as f64).cbrt()).min(BINS) as usize;
    let histogram = Histogram::from_sketch(&sketch, bins, Some(BinScale::Linear));
    let Some(Histogram { bins, modes, .. }) = histogram else { return Vec::new() };
    // Each bin is smoothed with its two neighbours.
    let count = |at: usize| {
        let around = &bins[at.saturating_sub(1)..(at + 2).min(bins.len())];
        around.iter().map(|bin| bin.count).sum::<u64>() as f64
    };
    let place = |mode: f64| bins.iter().position(|bin| mode < bin.to).unwrap_or(0);
    let mut parted: Vec<f64> = Vec::new();
    for mode in modes {
        let Some(&last) = parted.last() else {
            parted.push(mode);
            continue;
        };
        let (from, to) = (place(last), place(mode));
        let valley = (from..=to).map(count).fold(f64::INFINITY, f64::min);
        let lower = count(from).min(count(to));
        if lower - valley > SURE * (lower + valley).sqrt() {
            parted.push(mode);
        } else if count(to) > count(from) {
            parted.pop();
            parted.push(mode);
        }
    }
    parted
}

/// The number to four digits.
fn short(value: f64) -> f64 {
    let scale = 10.0f64.powf(3.0 - value.abs().log10().floor());
    let short = (value * scale).round() / scale;
    if short.is_finite() { short } else { value }
}

fn decisive(fit: &Fit) -> Option<Finding> {
    let terms = fit.estimate.len() as f64;
    let distance = |(row, h): (usize, f64)| {
        let rest = fit.residuals[row] / fit.sigma;
        (row, rest * rest * h / ((1.0 - h) * (1.0 - h) * terms))
    };
    let all = fit.squares.leverages().into_iter().enumerate().map(distance);
    let (row, distance) = all.max_by(|a, b| a.1.total_cmp(&b.1))?;
    let values =
        fit.design.columns.iter().map(|column| (column.0.clone(), column.1[row])).collect();
    (distance > DECIDES).then_some(Finding::Decisive { row, values, distance })
}
