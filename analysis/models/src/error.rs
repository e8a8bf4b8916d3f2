//! Why there is no answer.

use std::fmt;
use std::ops::Range;

use ppt_text::{did_you_mean, escaped, masked};
use thiserror::Error;

/// A formula that cannot be read, and where.
#[derive(Debug, Clone, PartialEq, Error)]
#[error("{mistake}")]
pub struct FormulaError {
    /// What is wrong.
    pub mistake: FormulaMistake,
    /// Bytes of the text.
    pub span: Range<usize>,
}

/// What is wrong with a formula.
#[derive(Debug, Clone, PartialEq, Error, strum::IntoStaticStr, strum::VariantNames)]
#[strum(serialize_all = "kebab-case", prefix = "formula-")]
pub enum FormulaMistake {
    /// Something else should stand here.
    #[error("expected {}, found {}", choice(.names), quoted_char(*.found))]
    Expected {
        /// What stands there; None at the end.
        found: Option<char>,
        /// What could.
        names: Vec<&'static str>,
    },
    /// The right side has neither a term nor a constant.
    #[error("the formula has no term: there is nothing to fit")]
    NoTerm,
    /// A number as a term.
    #[error("a number is no term: `1` keeps the constant, `0` takes it out")]
    Number,
    /// A term with a minus.
    #[error("only `- 1` may follow a minus here: a fit finds the sign of a term itself")]
    Minus,
    /// A function that nobody knows.
    #[error("there is no function `{name}`; there are: {}", .there.join(", "))]
    NoFunction {
        /// Its name.
        name: String,
        /// Those that are known.
        there: &'static [&'static str],
    },
    /// The same term again.
    #[error("the term `{term}` is there twice")]
    Repeated {
        /// The term.
        term: String,
    },
    /// Too many bytes.
    #[error("the formula has {bytes} bytes: at most {most} are read")]
    TooLong {
        /// So many.
        bytes: usize,
        /// So many may be.
        most: usize,
    },
    /// Too many brackets within each other.
    #[error("more than {most} brackets are within each other")]
    TooDeep {
        /// So many may be.
        most: usize,
    },
}

impl FormulaError {
    /// The line of the text where it is wrong, and carets below that place.
    pub fn drawn(&self, text: &str) -> String {
        carets(text, &self.span)
    }
}

/// The line of `text` that has `span`, and a line with carets below. `?` replaces characters
/// that are not shown.
pub fn carets(text: &str, span: &Range<usize>) -> String {
    let floor =
        |at: usize| (0..=at.min(text.len())).rev().find(|&index| text.is_char_boundary(index));
    let (start, end) = (floor(span.start).unwrap_or(0), floor(span.end).unwrap_or(0));
    let from = text[..start].rfind('\n').map_or(0, |index| index + 1);
    let to = text[start..].find('\n').map_or(text.len(), |index| start + index);
    let line = masked(&text[from..to], |_| false);
    let before = text[from..start].chars().count();
    let below = text[start..end.clamp(start, to)].chars().count().max(1);
    format!("{line}\n{}{}", " ".repeat(before), "^".repeat(below))
}

pub(crate) fn choice(names: &[&'static str]) -> String {
    match names {
        [] => "a term".to_owned(),
        [one] => (*one).to_owned(),
        [first @ .., last] => format!("{} or {last}", first.join(", ")),
    }
}

pub(crate) fn quoted_char(found: Option<char>) -> String {
    match found {
        None => "the end".to_owned(),
        Some(c) => format!("`{}`", escaped(&c.to_string())),
    }
}

/// Why numbers are no table.
#[derive(Debug, Clone, PartialEq, Error, strum::IntoStaticStr, strum::VariantNames)]
#[strum(serialize_all = "kebab-case", prefix = "table-")]
pub enum TableError {
    /// Columns of several lengths.
    #[error("column `{column}` has {found} rows, the others have {expected}")]
    Length {
        /// Its name.
        column: String,
        /// Its rows.
        found: usize,
        /// Those of the others.
        expected: usize,
    },
    /// A name of two columns.
    #[error("two columns are named `{column}`")]
    Twice {
        /// The name.
        column: String,
    },
}

/// Why a formula cannot be fitted to a table.
#[derive(Debug, Clone, PartialEq, Error, strum::IntoStaticStr, strum::VariantNames)]
#[strum(serialize_all = "kebab-case", prefix = "fit-")]
pub enum FitError {
    /// A column that the table does not have.
    #[error("there is no column `{name}`{}; there are: {}", did_you_mean(.nearest), .there.join(", "))]
    NoColumn {
        /// Its name.
        name: String,
        /// Where the formula names it.
        span: Range<usize>,
        /// One that is spelt nearly so.
        nearest: Option<String>,
        /// All of them.
        there: Vec<String>,
    },
    /// A cell that is no number.
    #[error("`{term}` is {value} in row {}: {rows} of {of} rows have no number there", .row + 1)]
    NoNumber {
        /// The column, or the term that became none.
        term: String,
        /// Where the formula has it.
        span: Range<usize>,
        /// The first such row, from 0.
        row: usize,
        /// NaN or an infinity.
        value: f64,
        /// So many rows are like that.
        rows: usize,
        /// The number of all.
        of: usize,
    },
    /// Fewer points than a fit needs.
    #[error("{points} points are too few for {} coefficients ({}): {} are the least",
        .terms.len(), .terms.join(", "), .terms.len() + 1)]
    TooFew {
        /// Rows.
        points: usize,
        /// Coefficients.
        terms: Vec<String>,
    },
    /// A term that never changes.
    #[error("`{term}` is {value} in every row: {}", constant(*.response))]
    Constant {
        /// The term.
        term: String,
        /// Where the formula has it.
        span: Range<usize>,
        /// Its value.
        value: f64,
        /// Whether that is what should be explained.
        response: bool,
    },
    /// A term that follows from others.
    #[error("`{term}` follows from {}: no data can tell them apart, so leave one out",
        quoted(.of))]
    Collinear {
        /// The term.
        term: String,
        /// Where the formula has it.
        span: Range<usize>,
        /// Those that it follows from.
        of: Vec<String>,
    },
    /// A level that is none.
    #[error("a level of {level} is not between 0 and 1")]
    Level {
        /// The level.
        level: f64,
    },
    /// The sum of squares leaves the range of numbers.
    #[error("the numbers are too large to be squared")]
    TooLarge,
}

impl FitError {
    /// Where in the formula's text the cause is, if it is there.
    pub fn span(&self) -> Option<Range<usize>> {
        match self {
            FitError::NoColumn { span, .. }
            | FitError::NoNumber { span, .. }
            | FitError::Constant { span, .. }
            | FitError::Collinear { span, .. } => Some(span.clone()),
            _ => None,
        }
    }
}

fn constant(response: bool) -> &'static str {
    if response { "there is nothing to explain" } else { "its effect cannot be told" }
}

/// Names in quotes, joined by commas.
pub(crate) fn quoted(names: &[String]) -> String {
    names.iter().map(|name| format!("`{name}`")).collect::<Vec<_>>().join(", ")
}

/// Why there is no bootstrap over runs. The fit stands without it.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
pub enum NoBootstrap {
    /// Nobody said which rows are of one run.
    #[error("the rows do not say of which run they are")]
    NoRuns,
    /// So few runs say nothing of how runs differ.
    #[error("{runs} {} too few for a bootstrap: {least} are the least",
        if *.runs == 1 { "run is" } else { "runs are" })]
    TooFew {
        /// So many there are.
        runs: usize,
        /// So many are needed.
        least: usize,
    },
    /// Most resamples cannot be fitted.
    #[error("{failed} of {of} resamples could not be fitted: too few runs differ in the inputs")]
    Alike {
        /// So many.
        failed: usize,
        /// The number of all.
        of: usize,
    },
}

/// Why a fit cannot be asked about a point.
#[derive(Debug, Clone, PartialEq, Error, strum::IntoStaticStr, strum::VariantNames)]
#[strum(serialize_all = "kebab-case", prefix = "predict-")]
pub enum PredictError {
    /// An input without a value.
    #[error("the formula needs a value of `{column}`")]
    Missing {
        /// The column.
        column: String,
    },
    /// A value that nothing uses.
    #[error("the formula has no `{column}`{}; it has: {}", did_you_mean(.nearest), .there.join(", "))]
    Unknown {
        /// The name.
        column: String,
        /// One that is spelt nearly so.
        nearest: Option<String>,
        /// Those it has.
        there: Vec<String>,
    },
    /// A term has no value there.
    #[error("`{term}` has no value at {at}")]
    NoValue {
        /// The term.
        term: String,
        /// The point.
        at: ColumnValues,
    },
    /// A bound that is no number.
    #[error("{bound} is no bound")]
    Bound {
        /// The bound.
        bound: f64,
    },
}

/// Values of columns, to be shown.
#[derive(Debug, Clone, PartialEq)]
pub struct ColumnValues(pub Vec<(String, f64)>);

impl fmt::Display for ColumnValues {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (at, (name, value)) in self.0.iter().enumerate() {
            write!(f, "{}{name} = {value}", if at > 0 { ", " } else { "" })?;
        }
        Ok(())
    }
}
