//! Errors of formulas, tables, fits and predictions.

use std::fmt;
use std::ops::Range;

use pest::RuleType;
use pest::error::{ErrorVariant, InputLocation};
use ppt_text::{alternatives, did_you_mean, masked, quoted_char};
use thiserror::Error;

/// A text that is not a formula.
#[derive(Debug, Clone, PartialEq, Error)]
#[error("{mistake}")]
pub struct FormulaError {
    /// The mistake in it.
    pub mistake: FormulaMistake,
    /// The position of the mistake, in bytes of the text.
    pub span: Range<usize>,
}

/// A mistake in a formula.
#[derive(Debug, Clone, PartialEq, Error, strum::IntoStaticStr, strum::VariantNames)]
#[strum(serialize_all = "kebab-case", prefix = "formula-")]
pub enum FormulaMistake {
    /// The syntax requires something else here.
    #[error("expected {}, found {}", alternatives(.names, "a term"), quoted_char(*.found))]
    Expected {
        /// The character that was found; None at the end.
        found: Option<char>,
        /// The expected alternatives.
        names: Vec<&'static str>,
    },
    /// The right side has neither a term nor a constant.
    #[error("the formula has no term: there is nothing to fit")]
    NoTerm,
    /// A term is a number.
    #[error("a number is no term: `1` keeps the constant, `0` takes it out")]
    Number,
    /// A term has a minus.
    #[error("only `- 1` may follow a minus here: a fit finds the sign of a term itself")]
    Minus,
    /// A function is unknown.
    #[error("there is no function `{name}`; there are: {}", .available.join(", "))]
    NoFunction {
        /// The name of the function.
        name: String,
        /// The known functions.
        available: &'static [&'static str],
    },
    /// A term is repeated.
    #[error("the term `{term}` is there twice")]
    Repeated {
        /// The term.
        term: String,
    },
    /// The text is too long.
    #[error("the formula has {bytes} bytes: at most {most} are read")]
    TooLong {
        /// The length of the text in bytes.
        bytes: usize,
        /// The largest length in bytes.
        most: usize,
    },
    /// Brackets are nested too deeply.
    #[error("more than {most} brackets are within each other")]
    TooDeep {
        /// The largest number of nested brackets.
        most: usize,
    },
}

impl FormulaError {
    /// The line of the text with the mistake, and carets below that mark it.
    pub fn drawn(&self, text: &str) -> String {
        carets(text, &self.span)
    }
}

/// The line of `text` with `span`, and a line with carets below it. `?` replaces characters that are not shown.
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

/// The character that was found, the expected alternatives as `word` names them, and the position.
pub(crate) fn expected<R: RuleType>(
    text: &str,
    error: &pest::error::Error<R>,
    word: impl Fn(&R) -> &'static str,
) -> (Option<char>, Vec<&'static str>, Range<usize>) {
    let at = match error.location {
        InputLocation::Pos(at) | InputLocation::Span((at, _)) => at,
    };
    let mut names: Vec<&'static str> = match &error.variant {
        ErrorVariant::ParsingError { positives, .. } => positives.iter().map(word).collect(),
        ErrorVariant::CustomError { .. } => Vec::new(),
    };
    names.sort_unstable();
    names.dedup();
    let found = text[at..].chars().next();
    (found, names, at..at + found.map_or(0, char::len_utf8))
}

/// Why columns do not make a table.
#[derive(Debug, Clone, PartialEq, Error, strum::IntoStaticStr, strum::VariantNames)]
#[strum(serialize_all = "kebab-case", prefix = "table-")]
pub enum TableError {
    /// Columns have different lengths.
    #[error("column `{column}` has {found} rows, the others have {expected}")]
    Length {
        /// The name of the column.
        column: String,
        /// The number of its rows.
        found: usize,
        /// The number of rows of the other columns.
        expected: usize,
    },
    /// Two columns have the same name.
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
    /// The table does not have a column.
    #[error("there is no column `{name}`{}; there are: {}", did_you_mean(.nearest), .available.join(", "))]
    NoColumn {
        /// The name of the column.
        name: String,
        /// The position in the formula.
        span: Range<usize>,
        /// A name of similar spelling.
        nearest: Option<String>,
        /// The columns of the table.
        available: Vec<String>,
    },
    /// A cell is not a number.
    #[error("`{term}` is {value} in row {}: {rows} of {of} rows have no number there", .row + 1)]
    NoNumber {
        /// The column, or the term whose value is not a number.
        term: String,
        /// The position in the formula.
        span: Range<usize>,
        /// The first such row, from 0.
        row: usize,
        /// The value of that cell, NaN or an infinity.
        value: f64,
        /// The number of such rows.
        rows: usize,
        /// The number of all.
        of: usize,
    },
    /// The table has too few rows.
    #[error("{points} points are too few for {} coefficients ({}): {} are the least",
        .terms.len(), .terms.join(", "), .terms.len() + 1)]
    TooFew {
        /// The number of rows.
        points: usize,
        /// The coefficients.
        terms: Vec<String>,
    },
    /// A term is constant.
    #[error("`{term}` is {value} in every row: {}", constant(*.response))]
    Constant {
        /// The term.
        term: String,
        /// The position in the formula.
        span: Range<usize>,
        /// The value of the term.
        value: f64,
        /// Whether it is the response.
        response: bool,
    },
    /// A term depends on others.
    #[error("`{term}` follows from {}: no data can tell them apart, so leave one out",
        quoted(.others))]
    Collinear {
        /// The term.
        term: String,
        /// The position in the formula.
        span: Range<usize>,
        /// The terms on which it depends.
        others: Vec<String>,
    },
    /// The level is not between 0 and 1.
    #[error("a level of {level} is not between 0 and 1")]
    Level {
        /// The level.
        level: f64,
    },
    /// The sum of squares is not finite.
    #[error("the numbers are too large to be squared")]
    TooLarge,
}

impl FitError {
    /// The position of the cause in the formula's text, if it is there.
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
    if response { "there is nothing to explain" } else { "its effect cannot be determined" }
}

/// Names in quotes, joined by commas.
pub(crate) fn quoted(names: &[String]) -> String {
    names.iter().map(|name| format!("`{name}`")).collect::<Vec<_>>().join(", ")
}

/// Why a fit has no bootstrap over runs.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
pub enum NoBootstrap {
    /// The runs of rows are unknown.
    #[error("the rows do not say of which run they are")]
    NoRuns,
    /// Too few runs to show how runs differ.
    #[error("{runs} {} too few for a bootstrap: {least} are the least",
        if *.runs == 1 { "run is" } else { "runs are" })]
    TooFew {
        /// The number of runs.
        runs: usize,
        /// The smallest sufficient number.
        least: usize,
    },
    /// Too many resamples cannot be fitted.
    #[error("{failed} of {of} resamples could not be fitted: too few runs differ in the inputs")]
    Alike {
        /// The number of resamples that failed.
        failed: usize,
        /// The number of all.
        of: usize,
    },
}

/// Why a fit cannot predict at a point.
#[derive(Debug, Clone, PartialEq, Error, strum::IntoStaticStr, strum::VariantNames)]
#[strum(serialize_all = "kebab-case", prefix = "predict-")]
pub enum PredictError {
    /// An input has no value.
    #[error("the formula needs a value of `{column}`")]
    Missing {
        /// The column.
        column: String,
    },
    /// A value has no input.
    #[error("the formula has no `{column}`{}; it has: {}", did_you_mean(.nearest), .available.join(", "))]
    Unknown {
        /// The name.
        column: String,
        /// A name of similar spelling.
        nearest: Option<String>,
        /// The inputs of the formula.
        available: Vec<String>,
    },
    /// A term has no value at the point.
    #[error("`{term}` has no value at {at}")]
    NoValue {
        /// The term.
        term: String,
        /// The point.
        at: ColumnValues,
    },
    /// The bound is not a number.
    #[error("{bound} is not a bound")]
    Bound {
        /// The bound.
        bound: f64,
    },
}

/// Values of columns, for messages.
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
