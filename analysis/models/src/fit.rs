//! A formula fitted to a table.

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

/// The confidence level and the resampling of a fit.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct FitOptions {
    /// The share of cases in which an interval holds the truth: 0.95.
    pub level: f64,
    /// The parameters of the bootstrap.
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
    /// The value by least squares.
    pub estimate: f64,
    /// The standard error, if rows are independent.
    pub error: f64,
    /// The t value: the estimate in standard errors.
    pub t: f64,
    /// The p value: the probability of such a t if the coefficient is 0.
    pub p: f64,
    /// The interval by Student's t, if rows are independent.
    pub interval: ConfidenceInterval,
    /// The interval by resampling runs, if there are enough.
    pub bootstrap: Option<ConfidenceInterval>,
}

impl Coefficient {
    /// The better interval: over runs, if there are enough.
    pub fn believed(&self) -> ConfidenceInterval {
        self.bootstrap.unwrap_or(self.interval)
    }

    /// Whether the two intervals disagree: one is at least 1.5 times as wide as the other, or only one holds 0.
    /// Then rows of a run are not independent, and the bootstrap is right.
    pub fn disagrees(&self) -> bool {
        let Some(bootstrap) = self.bootstrap else { return false };
        let (one, other) = (self.interval.width(), bootstrap.width());
        one.max(other) > 1.5 * one.min(other) || self.interval.holds(0.0) != bootstrap.holds(0.0)
    }
}

/// A statistical test of a fit.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Test {
    /// The statistic.
    pub value: f64,
    /// The p value: the probability of at least this statistic by chance.
    pub p: f64,
}

/// A formula fitted to a table by least squares.
#[derive(Debug, Clone)]
pub struct Fit {
    /// The formula.
    pub formula: Formula,
    /// The coefficients in the order of the formula, the constant first.
    pub coefficients: Vec<Coefficient>,
    /// The level of all intervals.
    pub level: f64,
    /// The number of rows.
    pub points: usize,
    /// The degrees of freedom: rows beyond the coefficients.
    pub freedom: f64,
    /// The standard deviation of the residuals, in units of the response.
    pub sigma: f64,
    /// R²: the explained share of the squares of the response, around its mean, or around 0 without a constant.
    /// NaN without squares.
    pub r2: f64,
    /// The adjusted R²: less the share that as many terms explain by chance.
    pub adjusted_r2: f64,
    /// Akaike's information criterion for normal errors: the lower, the better.
    pub aic: f64,
    /// Schwarz's information criterion, likewise.
    pub bic: f64,
    /// The test of all terms together; None without a term.
    pub f: Option<Test>,
    /// The residual of each row.
    pub residuals: Vec<f64>,
    /// The fitted value of each row.
    pub fitted: Vec<f64>,
    /// The bootstrap over runs, or the reason why there is none.
    pub bootstrap: Result<Bootstrap, NoBootstrap>,
    pub(crate) design: Design,
    pub(crate) squares: Squares,
    pub(crate) estimate: DVector<f64>,
    pub(crate) options: FitOptions,
}

/// The prediction of a fit at a point.
#[derive(Debug, Clone, PartialEq)]
pub struct Prediction {
    /// The value.
    pub value: f64,
    /// The interval of the mean of many measurements, by Student's t.
    pub mean: ConfidenceInterval,
    /// The interval of a single measurement, by Student's t.
    pub single: ConfidenceInterval,
    /// The interval of the mean, by resampling runs.
    pub bootstrap: Option<ConfidenceInterval>,
    /// The inputs outside of the measured range.
    pub beyond: Vec<Beyond>,
}

impl Prediction {
    /// The better interval of the mean: over runs, if there are enough.
    pub fn believed(&self) -> ConfidenceInterval {
        self.bootstrap.unwrap_or(self.mean)
    }

    /// The better interval of a single measurement, which is wider than that of the mean.
    pub fn believed_single(&self) -> ConfidenceInterval {
        self.single.single_measurement(self.value, self.mean, self.believed())
    }
}

/// An input outside of the measured range.
#[derive(Debug, Clone, PartialEq)]
pub struct Beyond {
    /// The column.
    pub column: String,
    /// The value of the column.
    pub at: f64,
    /// The smallest and the largest measured value.
    pub measured: ConfidenceInterval,
}

impl Fit {
    /// Fits `formula` to `table`.
    ///
    /// # Errors
    /// A column is missing or has a value that is not a number, there are too few rows, or terms
    /// depend on each other.
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
            let others = error.others.into_iter().map(name).collect();
            FitError::Collinear { term: name(error.column), span, others }
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

    /// The smallest and the largest measured value of each input.
    pub fn measured(&self) -> impl Iterator<Item = (&str, ConfidenceInterval)> {
        let range =
            |entry: &'_ (String, f64, f64)| ConfidenceInterval { low: entry.1, high: entry.2 };
        self.design.measured.iter().map(move |entry| (&entry.0[..], range(entry)))
    }

    /// The response of each row.
    pub fn response(&self) -> &[f64] {
        self.design.response.as_slice()
    }

    /// The factors of the coefficients at these inputs.
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

    /// The variance of the mean with these factors.
    pub(crate) fn variance(&self, weights: &DVector<f64>) -> f64 {
        self.sigma * self.sigma * self.squares.variance(weights)
    }

    /// Predicts the response where columns have these values.
    ///
    /// # Errors
    /// A column of the formula has no value, a value has no such column, or a term is not a number there.
    pub fn predict(&self, at: &[(&str, f64)]) -> Result<Prediction, PredictError> {
        let inputs = self.formula.inputs();
        for (name, _) in at {
            if !inputs.contains(name) {
                let available = inputs.iter().map(|&input| input.to_owned()).collect();
                let nearest = nearest(name, inputs.iter().copied()).map(str::to_owned);
                let column = (*name).to_owned();
                return Err(PredictError::Unknown { column, nearest, available });
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
