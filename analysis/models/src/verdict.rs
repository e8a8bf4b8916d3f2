//! Whether measurements confirm a formula or refute it.
//!
//! A formula states how a cost grows. It is confirmed if each of its terms is significant, and no other term
//! explains the measurements noticeably better; refuted if a term is missing or negligible; and otherwise
//! undecided.

use std::collections::BTreeSet;
use std::fmt;

use nalgebra::DVector;

use crate::bootstrap::Bootstrap;
use crate::chance::t_quantile;
use crate::fit::Fit;
use crate::formula::{Expression, Function, Operator};
use crate::interval::ConfidenceInterval;
use crate::residuals::with_columns;
use crate::squares::Squares;

/// The smallest change of a fitted value, as a share of the largest one, that is worth a term.
const NOTICEABLE: f64 = 0.02;

/// The verdict of measurements about a formula.
#[derive(Debug, Clone, Copy, PartialEq, Eq, strum::Display)]
#[strum(serialize_all = "lowercase")]
pub enum FormulaVerdict {
    /// The formula holds in the measured range.
    Confirmed,
    /// The formula does not hold.
    Refuted,
    /// The measurements do not decide it.
    Undecided,
}

/// A verdict and its reasons.
#[derive(Debug, Clone, PartialEq)]
pub struct Judgement {
    /// The verdict.
    pub verdict: FormulaVerdict,
    /// The reasons, the decisive ones first.
    pub reasons: Vec<Reason>,
}

/// A reason for or against a formula.
#[derive(Debug, Clone, PartialEq)]
pub enum Reason {
    /// Refutes: a term that the formula lacks explains more.
    Missing {
        /// The term.
        term: String,
        /// The largest change of a fitted value, as a share of the largest one.
        moves: f64,
    },
    /// Refutes: a term is negligible.
    Nothing {
        /// The term.
        term: String,
        /// The largest possible size of the term, as a share of the largest fitted value.
        most: f64,
    },
    /// Undecided: a term may be 0.
    Unsure {
        /// The term.
        term: String,
        /// The largest possible size of the term, as a share of the largest fitted value.
        most: f64,
    },
    /// Undecided: too few different inputs to distinguish another shape.
    FewLevels {
        /// The number of different inputs.
        levels: usize,
        /// The smallest sufficient number.
        needed: usize,
    },
    /// Confirms: a term is significant.
    Seen {
        /// The term.
        term: String,
    },
    /// Another term is significant, but negligible in the measured range.
    Slight {
        /// The additional term.
        term: String,
        /// The largest change of a fitted value, as a share of the largest one.
        moves: f64,
    },
}

impl fmt::Display for Reason {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let percent = |part: f64| 100.0 * part;
        match self {
            Reason::Missing { term, moves } => write!(
                f,
                "`{term}` is missing: it changes predictions by up to {:.1} % of the largest value",
                percent(*moves)
            ),
            Reason::Nothing { term, most } => write!(
                f,
                "`{term}` is not seen: it is at most {:.1} % of the largest value",
                percent(*most)
            ),
            Reason::Unsure { term, most } => write!(
                f,
                "`{term}` may be 0, or up to {:.0} % of the largest value: measure more, or more \
                 widely",
                percent(*most)
            ),
            Reason::FewLevels { levels, needed } => write!(
                f,
                "only {levels} different inputs were measured: any such formula fits them; measure \
                 at least {needed}"
            ),
            Reason::Seen { term } => write!(f, "`{term}` is seen: its interval is away from 0"),
            Reason::Slight { term, moves } => write!(
                f,
                "`{term}` would change predictions by up to {:.1} % of the largest value: too little to \
                 matter in the measured range, perhaps not far beyond",
                percent(*moves)
            ),
        }
    }
}

impl Judgement {
    /// Judges the formula of a fit.
    pub fn from_fit(fit: &Fit) -> Judgement {
        let largest = fit.fitted.iter().fold(0.0, |most: f64, value| most.max(value.abs()));
        let constant = usize::from(fit.formula.constant);
        let mut reasons = Vec::new();
        let (mut refuted, mut undecided) = (false, false);
        match alternative(fit, largest) {
            AlternativeTerm::Better { term, moves } if moves >= NOTICEABLE => {
                refuted = true;
                reasons.push(Reason::Missing { term, moves });
            }
            AlternativeTerm::Better { term, moves } => reasons.push(Reason::Slight { term, moves }),
            AlternativeTerm::None => {}
            AlternativeTerm::NoneSeparable => {
                undecided = true;
                let (levels, needed) = (levels(fit), fit.estimate.len() + 1);
                reasons.push(Reason::FewLevels { levels, needed });
            }
        }
        for (at, coefficient) in fit.coefficients.iter().enumerate().skip(constant) {
            let term = coefficient.term.clone();
            let interval = coefficient.believed();
            let reach = fit.design.inputs.column(at).amax() / largest;
            let most = interval.low.abs().max(interval.high.abs()) * reach;
            reasons.push(if !interval.holds(0.0) {
                Reason::Seen { term }
            } else if most < NOTICEABLE {
                refuted = true;
                Reason::Nothing { term, most }
            } else {
                undecided = true;
                Reason::Unsure { term, most }
            });
        }
        let verdict = match (refuted, undecided) {
            (true, _) => FormulaVerdict::Refuted,
            (false, true) => FormulaVerdict::Undecided,
            (false, false) => FormulaVerdict::Confirmed,
        };
        let weight = |reason: &Reason| match reason {
            Reason::Missing { .. } | Reason::Nothing { .. } => 0,
            Reason::Unsure { .. } | Reason::FewLevels { .. } => 1,
            Reason::Seen { .. } | Reason::Slight { .. } => 2,
        };
        reasons.sort_by_key(weight);
        Judgement { verdict, reasons }
    }
}

/// The number of different inputs.
fn levels(fit: &Fit) -> usize {
    let row = |row: usize| {
        let cells = fit.design.columns.iter().map(move |column| column.1[row].to_bits());
        cells.collect::<Vec<_>>()
    };
    (0..fit.points).map(row).collect::<BTreeSet<_>>().len()
}

enum AlternativeTerm {
    /// This term is significant in addition to those of the formula.
    Better { term: String, moves: f64 },
    /// No term is significant.
    None,
    /// No term can be separated from those of the formula.
    NoneSeparable,
}

/// The significant term that explains most of the residuals.
fn alternative(fit: &Fit, largest: f64) -> AlternativeTerm {
    let terms = candidate_terms(fit).into_iter();
    let candidates: Vec<ExtendedFit> =
        terms.filter_map(|term| ExtendedFit::new(fit, term)).collect();
    if candidates.is_empty() {
        let nothing_to_grow_with = fit.formula.terms.is_empty();
        return if nothing_to_grow_with {
            AlternativeTerm::None
        } else {
            AlternativeTerm::NoneSeparable
        };
    }
    // Bonferroni's correction for the number of candidates tried.
    let level = 1.0 - (1.0 - fit.level) / candidates.len() as f64;
    let significant =
        candidates.into_iter().filter(|candidate| !candidate.interval(fit, level).holds(0.0));
    let best = significant.min_by(|a, b| a.squared_residuals().total_cmp(&b.squared_residuals()));
    match best {
        None => AlternativeTerm::None,
        Some(extended) => {
            let fitted = &fit.design.response - &extended.residuals;
            let pairs = fitted.iter().zip(&fit.fitted);
            let changes = pairs.map(|(extended, fitted)| (extended - fitted).abs());
            let moves = changes.fold(0.0, f64::max) / largest;
            AlternativeTerm::Better { term: extended.term.to_string(), moves }
        }
    }
}

/// The terms of each input that the formula lacks.
fn candidate_terms(fit: &Fit) -> Vec<Expression> {
    let column = |name: &str| {
        Box::new(Expression::Column { name: name.to_owned(), span: Default::default() })
    };
    let power = |name: &str, by: f64| {
        Expression::Binary(Operator::Raise, column(name), Box::new(Expression::Number(by)))
    };
    let call = |function: Function, name: &str| Expression::Call(function, column(name));
    let mut terms = Vec::new();
    for (name, _, _) in &fit.design.measured {
        let log = Box::new(call(Function::Log, name));
        terms.extend([
            *column(name),
            power(name, 2.0),
            power(name, 3.0),
            call(Function::Sqrt, name),
            call(Function::Log, name),
            Expression::Binary(Operator::Multiply, column(name), log),
        ]);
    }
    let has = |expression: &Expression| {
        fit.formula.terms.iter().any(|term| term.expression == *expression)
    };
    terms.retain(|expression| !has(expression));
    terms
}

/// The fit with one additional term.
struct ExtendedFit {
    term: Expression,
    squares: Squares,
    estimate: DVector<f64>,
    residuals: DVector<f64>,
}

impl ExtendedFit {
    fn new(fit: &Fit, term: Expression) -> Option<ExtendedFit> {
        let cell = |name: &str, row: usize| {
            let column = fit.design.columns.iter().find(|column| column.0 == name);
            column.map_or(f64::NAN, |column| column.1[row])
        };
        let values = (0..fit.points).map(|row| term.value(&|name: &str| cell(name, row)));
        let column = DVector::from_iterator(fit.points, values);
        if column.iter().any(|value| !value.is_finite()) {
            return None;
        }
        let inputs = with_columns(&fit.design.inputs, &[column]);
        if inputs.nrows() <= inputs.ncols() {
            return None;
        }
        let squares = Squares::new(&inputs).ok()?;
        let (place, residuals) = squares.nearest(&fit.design.response);
        let estimate = &squares.to_coefficients * place;
        Some(ExtendedFit { term, squares, estimate, residuals })
    }

    /// The sum of squared residuals.
    fn squared_residuals(&self) -> f64 {
        self.residuals.norm_squared()
    }

    /// The interval of the added coefficient: over runs, if there are enough.
    fn interval(&self, fit: &Fit, level: f64) -> ConfidenceInterval {
        let last = self.estimate.len() - 1;
        let runs = fit.design.runs.as_ref();
        let resampling = fit.options.resampling;
        if let Ok(bootstrap) =
            Bootstrap::new(&self.squares, &self.estimate, &self.residuals, runs, resampling)
        {
            return bootstrap.interval(level, |coefficients| coefficients[last]);
        }
        let freedom = (self.residuals.len() - self.estimate.len()) as f64;
        let sigma = (self.squared_residuals() / freedom).sqrt();
        let error = sigma * self.squares.to_coefficients.row(last).norm();
        ConfidenceInterval::around(
            self.estimate[last],
            t_quantile((1.0 + level) / 2.0, freedom) * error,
        )
    }
}
