//! Whether measurements confirm a formula or refute it.
//!
//! A formula says how a cost grows. It is confirmed where each of its terms is seen, and no other
//! way to grow explains the measurements noticeably better; refuted where a term is missing or
//! amounts to nothing; and undecided where the measurements do not decide it.

use std::collections::BTreeSet;
use std::fmt;

use nalgebra::DVector;

use crate::bootstrap::Bootstrap;
use crate::chance::t_quantile;
use crate::fit::Fit;
use crate::formula::{Expression, Function, Operator};
use crate::interval::ConfidenceInterval;
use crate::residuals::beside;
use crate::squares::Squares;

/// What changes the fitted values by less than this part of the largest is not worth a term.
const NOTICEABLE: f64 = 0.02;

/// What measurements say of a formula.
#[derive(Debug, Clone, Copy, PartialEq, Eq, strum::Display)]
#[strum(serialize_all = "lowercase")]
pub enum FormulaVerdict {
    /// It holds where it was measured.
    Confirmed,
    /// It does not.
    Refuted,
    /// The measurements do not decide it.
    Undecided,
}

/// A verdict, and why.
#[derive(Debug, Clone, PartialEq)]
pub struct Judgement {
    /// The verdict.
    pub verdict: FormulaVerdict,
    /// Why; those that decide come first.
    pub reasons: Vec<Reason>,
}

/// What speaks for or against a formula.
#[derive(Debug, Clone, PartialEq)]
pub enum Reason {
    /// A term that is not there explains more: refutes.
    Missing {
        /// The term.
        term: String,
        /// It moves fitted values by up to this part of the largest.
        moves: f64,
    },
    /// A term is too small to be noticed: refutes.
    Nothing {
        /// The term.
        term: String,
        /// At most this part of the largest fitted value.
        most: f64,
    },
    /// A term may be 0: undecided.
    Unsure {
        /// The term.
        term: String,
        /// It may be as much as this part of the largest fitted value.
        most: f64,
    },
    /// Too few different inputs to see another shape: undecided.
    FewLevels {
        /// Different inputs.
        levels: usize,
        /// So many would do.
        needed: usize,
    },
    /// A term is seen: confirms.
    Seen {
        /// The term.
        term: String,
    },
    /// Another shape is seen, but too small to matter where it was measured.
    Slight {
        /// The term it would take.
        term: String,
        /// It moves fitted values by up to this part of the largest.
        moves: f64,
    },
}

impl fmt::Display for Reason {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let percent = |part: f64| 100.0 * part;
        match self {
            Reason::Missing { term, moves } => write!(
                f,
                "`{term}` is missing: it changes what the model says by up to {:.1} % of its largest \
                 value",
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
                "`{term}` would change what the model says by up to {:.1} % of its largest value: \
                 too little to matter here, perhaps not far beyond",
                percent(*moves)
            ),
        }
    }
}

impl Judgement {
    /// Of this fit.
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
            AlternativeTerm::NoneCanBeSeen => {
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

/// How many different inputs there are.
fn levels(fit: &Fit) -> usize {
    let row = |row: usize| {
        let cells = fit.design.columns.iter().map(move |column| column.1[row].to_bits());
        cells.collect::<Vec<_>>()
    };
    (0..fit.points).map(row).collect::<BTreeSet<_>>().len()
}

enum AlternativeTerm {
    /// This one is seen beside the formula's terms.
    Better { term: String, moves: f64 },
    /// None is.
    None,
    /// None can be separated from the formula's terms.
    NoneCanBeSeen,
}

/// The other way to grow that explains most of what is left.
fn alternative(fit: &Fit, largest: f64) -> AlternativeTerm {
    let candidates: Vec<ExtendedFit> =
        ways(fit).into_iter().filter_map(|way| ExtendedFit::new(fit, way)).collect();
    if candidates.is_empty() {
        let nothing_to_grow_with = fit.formula.terms.is_empty();
        return if nothing_to_grow_with {
            AlternativeTerm::None
        } else {
            AlternativeTerm::NoneCanBeSeen
        };
    }
    // Bonferroni's correction for the number of candidates tried.
    let level = 1.0 - (1.0 - fit.level) / candidates.len() as f64;
    let seen =
        candidates.into_iter().filter(|candidate| !candidate.interval(fit, level).holds(0.0));
    let best = seen.min_by(|one, other| one.left().total_cmp(&other.left()));
    match best {
        None => AlternativeTerm::None,
        Some(extended) => {
            let fitted = &fit.design.response - &extended.rest;
            let off = fitted.iter().zip(&fit.fitted).map(|(one, other)| (one - other).abs());
            let moves = off.fold(0.0, f64::max) / largest;
            AlternativeTerm::Better { term: extended.term.to_string(), moves }
        }
    }
}

/// Ways to grow with each input that the formula does not have.
fn ways(fit: &Fit) -> Vec<Expression> {
    let column = |name: &str| {
        Box::new(Expression::Column { name: name.to_owned(), span: Default::default() })
    };
    let power = |name: &str, by: f64| {
        Expression::Binary(Operator::Raise, column(name), Box::new(Expression::Number(by)))
    };
    let of = |function: Function, name: &str| Expression::Call(function, column(name));
    let mut all = Vec::new();
    for (name, _, _) in &fit.design.measured {
        let log = Box::new(of(Function::Log, name));
        all.extend([
            *column(name),
            power(name, 2.0),
            power(name, 3.0),
            of(Function::Sqrt, name),
            of(Function::Log, name),
            Expression::Binary(Operator::Multiply, column(name), log),
        ]);
    }
    let has = |expression: &Expression| {
        fit.formula.terms.iter().any(|term| term.expression == *expression)
    };
    all.retain(|expression| !has(expression));
    all
}

/// The fit with one term more.
struct ExtendedFit {
    term: Expression,
    squares: Squares,
    estimate: DVector<f64>,
    rest: DVector<f64>,
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
        let inputs = beside(&fit.design.inputs, &[column]);
        if inputs.nrows() <= inputs.ncols() {
            return None;
        }
        let squares = Squares::new(&inputs).ok()?;
        let (place, rest) = squares.nearest(&fit.design.response);
        let estimate = &squares.to_coefficients * place;
        Some(ExtendedFit { term, squares, estimate, rest })
    }

    /// The squares that are left.
    fn left(&self) -> f64 {
        self.rest.norm_squared()
    }

    /// Of the added coefficient: over runs, where there are enough.
    fn interval(&self, fit: &Fit, level: f64) -> ConfidenceInterval {
        let last = self.estimate.len() - 1;
        let runs = fit.design.runs.as_ref();
        let resampling = fit.options.resampling;
        if let Ok(bootstrap) =
            Bootstrap::new(&self.squares, &self.estimate, &self.rest, runs, resampling)
        {
            return bootstrap.interval(level, |all| all[last]);
        }
        let freedom = (self.rest.len() - self.estimate.len()) as f64;
        let sigma = (self.left() / freedom).sqrt();
        let error = sigma * self.squares.to_coefficients.row(last).norm();
        ConfidenceInterval::around(
            self.estimate[last],
            t_quantile((1.0 + level) / 2.0, freedom) * error,
        )
    }
}
