//! A formula fitted to a table, and what is known of it.

use nalgebra::DVector;
use ppt_text::nearest;

use crate::bootstrap::{Bootstrap, Resampling};
use crate::chance::{f_beyond, t_beyond, t_quantile};
use crate::design::Design;
use crate::error::{ColumnValues, FitError, NoBootstrap, PredictError};
use crate::formula::Formula;
use crate::interval::ConfidenceInterval;
use crate::squares::Squares;
use crate::table::RunTable;

/// How sure, and how often resampled.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct FitOptions {
    /// Intervals hold the truth in this part of all cases: 0.95.
    pub level: f64,
    /// The bootstrap's.
    pub resampling: Resampling,
}

impl Default for FitOptions {
    fn default() -> Self {
        FitOptions { level: 0.95, resampling: Resampling::default() }
    }
}

/// A calibrated constant of a formula.
#[derive(Debug, Clone, PartialEq)]
pub struct Coefficient {
    /// The term that it multiplies; `1` is the constant.
    pub term: String,
    /// Its value by least squares.
    pub estimate: f64,
    /// Its standard error, if rows are independent.
    pub error: f64,
    /// The estimate in standard errors.
    pub t: f64,
    /// How probable such a t is if the coefficient is 0.
    pub p: f64,
    /// By Student's t, if rows are independent.
    pub interval: ConfidenceInterval,
    /// By resampling runs, if there are enough.
    pub bootstrap: Option<ConfidenceInterval>,
}

impl Coefficient {
    /// The interval to believe: over runs, where there are enough.
    pub fn believed(&self) -> ConfidenceInterval {
        self.bootstrap.unwrap_or(self.interval)
    }

    /// Whether the two intervals disagree: one is at least half as wide again as the other, or only
    /// one holds 0. Then rows of a run are not independent: believe the bootstrap.
    pub fn disagrees(&self) -> bool {
        let Some(bootstrap) = self.bootstrap else { return false };
        let (one, other) = (self.interval.width(), bootstrap.width());
        one.max(other) > 1.5 * one.min(other) || self.interval.holds(0.0) != bootstrap.holds(0.0)
    }
}

/// A test of a fit: its statistic, and how probable at least so much is by chance.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Test {
    /// The statistic.
    pub value: f64,
    /// How probable.
    pub p: f64,
}

/// A formula fitted to a table by least squares.
#[derive(Debug, Clone)]
pub struct Fit {
    /// The formula.
    pub formula: Formula,
    /// In the formula's order, the constant first.
    pub coefficients: Vec<Coefficient>,
    /// The level of every interval.
    pub level: f64,
    /// Rows.
    pub points: usize,
    /// Rows beyond the coefficients.
    pub freedom: f64,
    /// The standard deviation of what is left, in units of the response.
    pub sigma: f64,
    /// The part of the response's squares that the fit explains: around its mean, or around 0 if
    /// there is no constant. NaN where there are none.
    pub r2: f64,
    /// The same, less what as many terms explain by chance.
    pub adjusted_r2: f64,
    /// Akaike's criterion, of the likelihood of normal errors: the lower, the better.
    pub aic: f64,
    /// Schwarz's criterion, likewise.
    pub bic: f64,
    /// Whether the terms together explain anything; None without a term.
    pub f: Option<Test>,
    /// What is left of each row.
    pub residuals: Vec<f64>,
    /// What the fit says of each row.
    pub fitted: Vec<f64>,
    /// The bootstrap over runs, or why there is none.
    pub bootstrap: Result<Bootstrap, NoBootstrap>,
    pub(crate) design: Design,
    pub(crate) squares: Squares,
    pub(crate) estimate: DVector<f64>,
    pub(crate) options: FitOptions,
}

/// What a fit says of a point.
#[derive(Debug, Clone, PartialEq)]
pub struct Prediction {
    /// The value.
    pub value: f64,
    /// Where the mean of many measurements there lies, by Student's t.
    pub mean: ConfidenceInterval,
    /// Where a single measurement there lies, by Student's t.
    pub single: ConfidenceInterval,
    /// Where the mean lies, by resampling runs.
    pub bootstrap: Option<ConfidenceInterval>,
    /// Inputs outside of what was measured.
    pub beyond: Vec<Beyond>,
}

impl Prediction {
    /// The interval of the mean to believe: over runs, where there are enough.
    pub fn believed(&self) -> ConfidenceInterval {
        self.bootstrap.unwrap_or(self.mean)
    }

    /// The interval of a single measurement to believe: it is wider than that of the mean.
    pub fn believed_single(&self) -> ConfidenceInterval {
        self.single.of_one(self.value, self.mean, self.believed())
    }
}

/// An input outside of what was measured.
#[derive(Debug, Clone, PartialEq)]
pub struct Beyond {
    /// Its column.
    pub column: String,
    /// Its value.
    pub at: f64,
    /// The least and the greatest that were measured.
    pub measured: ConfidenceInterval,
}

impl Fit {
    /// Fits `formula` to `table`.
    ///
    /// # Errors
    /// A column is missing or has no number, there are too few rows, or terms depend on each other.
    pub fn new(formula: &Formula, table: &RunTable, options: FitOptions) -> Result<Fit, FitError> {
        let level = options.level;
        if !(level > 0.0 && level < 1.0) {
            return Err(FitError::Level { level });
        }
        let design = Design::new(formula, table)?;
        let squares = Squares::new(&design.inputs).map_err(|error| {
            let name = |at: usize| design.names[at].clone();
            let place = error.column.checked_sub(usize::from(formula.constant));
            let span = place.map(|at| formula.terms[at].span.clone()).unwrap_or_default();
            let of = error.of.into_iter().map(name).collect();
            FitError::Collinear { term: name(error.column), span, of }
        })?;
        let (place, rest) = squares.nearest(&design.response);
        let estimate = &squares.to_coefficients * place;
        let (points, terms) = (table.rows(), design.names.len());
        let freedom = (points - terms) as f64;
        let left = rest.norm_squared();
        let middle = if formula.constant { design.response.mean() } else { 0.0 };
        let all = design.response.add_scalar(-middle).norm_squared();
        if !left.is_finite() || !all.is_finite() || estimate.iter().any(|value| !value.is_finite())
        {
            return Err(FitError::TooLarge);
        }
        let sigma = (left / freedom).sqrt();
        let bootstrap =
            Bootstrap::new(&squares, &estimate, &rest, design.runs.as_ref(), options.resampling);
        let wide = t_quantile((1.0 + level) / 2.0, freedom);
        let coefficient = |at: usize| {
            let value = estimate[at];
            let error = sigma * squares.to_coefficients.row(at).norm();
            let t = value / error;
            Coefficient {
                term: design.names[at].clone(),
                estimate: value,
                error,
                t,
                p: t_beyond(t, freedom),
                interval: ConfidenceInterval::around(value, wide * error),
                bootstrap: bootstrap
                    .as_ref()
                    .ok()
                    .map(|bootstrap| bootstrap.interval(level, |all| all[at])),
            }
        };
        let coefficients = (0..terms).map(coefficient).collect();
        let r2 = 1.0 - left / all;
        let constants = f64::from(u8::from(formula.constant));
        let rows = points as f64;
        let explaining = terms as f64 - constants;
        let f = ((all - left) / explaining) / (left / freedom);
        let likelihood = -rows / 2.0 * ((std::f64::consts::TAU * left / rows).ln() + 1.0);
        Ok(Fit {
            formula: formula.clone(),
            coefficients,
            level,
            points,
            freedom,
            sigma,
            r2,
            adjusted_r2: 1.0 - (1.0 - r2) * (rows - constants) / freedom,
            aic: 2.0 * terms as f64 - 2.0 * likelihood,
            bic: rows.ln() * terms as f64 - 2.0 * likelihood,
            f: (explaining > 0.0).then(|| Test { value: f, p: f_beyond(f, explaining, freedom) }),
            fitted: (&design.response - &rest).as_slice().to_vec(),
            residuals: rest.as_slice().to_vec(),
            bootstrap,
            design,
            squares,
            estimate,
            options,
        })
    }

    /// The least and the greatest measured value of each input.
    pub fn measured(&self) -> impl Iterator<Item = (&str, ConfidenceInterval)> {
        let range =
            |entry: &'_ (String, f64, f64)| ConfidenceInterval { low: entry.1, high: entry.2 };
        self.design.measured.iter().map(move |entry| (&entry.0[..], range(entry)))
    }

    /// What each row's response was.
    pub fn response(&self) -> &[f64] {
        self.design.response.as_slice()
    }

    /// The factors of the coefficients where the inputs are so.
    pub(crate) fn weights(
        &self,
        column: &impl Fn(&str) -> f64,
    ) -> Result<DVector<f64>, PredictError> {
        let mut weights = Vec::with_capacity(self.estimate.len());
        if self.formula.constant {
            weights.push(1.0);
        }
        for term in &self.formula.terms {
            let value = term.expression.value(column);
            if !value.is_finite() {
                let columns = self.formula.inputs().into_iter();
                let at =
                    ColumnValues(columns.map(|text| (text.to_owned(), column(text))).collect());
                return Err(PredictError::NoValue { term: term.to_string(), at });
            }
            weights.push(value);
        }
        Ok(DVector::from_vec(weights))
    }

    /// The variance of the mean there.
    pub(crate) fn variance(&self, weights: &DVector<f64>) -> f64 {
        self.sigma * self.sigma * self.squares.variance(weights)
    }

    /// What the formula says where its columns have these values.
    ///
    /// # Errors
    /// A column of the formula has no value, a value is of no such column, or a term has no number there.
    pub fn predict(&self, at: &[(&str, f64)]) -> Result<Prediction, PredictError> {
        let inputs = self.formula.inputs();
        for (name, _) in at {
            if !inputs.contains(name) {
                let there = inputs.iter().map(|&input| input.to_owned()).collect();
                let nearest = nearest(name, inputs.iter().copied()).map(str::to_owned);
                return Err(PredictError::Unknown { column: (*name).to_owned(), nearest, there });
            }
        }
        let given = |name: &str| at.iter().find(|entry| entry.0 == name).map(|entry| entry.1);
        if let Some(column) = inputs.iter().find(|&&name| given(name).is_none()) {
            return Err(PredictError::Missing { column: (*column).to_owned() });
        }
        let weights = self.weights(&|name: &str| given(name).unwrap_or(f64::NAN))?;
        let value = self.estimate.dot(&weights);
        let variance = self.variance(&weights);
        let wide = t_quantile((1.0 + self.level) / 2.0, self.freedom);
        let bootstrap = self.bootstrap.as_ref().ok();
        let beyond = self.measured().filter_map(|(name, measured)| {
            let at = given(name)?;
            let column = name.to_owned();
            (!measured.holds(at)).then_some(Beyond { column, at, measured })
        });
        Ok(Prediction {
            value,
            mean: ConfidenceInterval::around(value, wide * variance.sqrt()),
            single: ConfidenceInterval::around(
                value,
                wide * (variance + self.sigma * self.sigma).sqrt(),
            ),
            bootstrap: bootstrap
                .map(|bootstrap| bootstrap.interval(self.level, |all| all.dot(&weights))),
            beyond: beyond.collect(),
        })
    }
}
