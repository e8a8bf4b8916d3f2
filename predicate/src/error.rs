//! The errors of an expression.

use std::fmt;

use ppt_frame_dsl::{Diagnostic, Severity, SourceRange, render};
use ppt_text::nearest;
use thiserror::Error;

use crate::types::Type;
use crate::units;

/// An invalid expression: the problem and its position.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ExpressionError {
    /// The problem.
    pub problem: Problem,
    /// The byte range of the problem in the text.
    pub span: SourceRange,
    text: String,
}

/// A problem of an expression.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
pub enum Problem {
    /// The text is longer than [`crate::MAX_BYTES`].
    #[error("the expression has {bytes} bytes; the limit is {most}")]
    TooLong {
        /// The length of the expression, bytes.
        bytes: usize,
        /// The limit.
        most: usize,
    },
    /// Parentheses within parentheses, more than [`crate::MAX_DEPTH`].
    #[error("more than {most} parentheses are open here")]
    TooDeep {
        /// The limit.
        most: usize,
    },
    /// The text is not an expression.
    #[error("expected {expected}, found {found}")]
    Syntax {
        /// What is allowed there.
        expected: String,
        /// What was found.
        found: String,
    },
    /// Digits that are not a number.
    #[error("this is not a number")]
    NoNumber,
    /// An unknown unit.
    #[error("there is no unit `{name}`")]
    NoUnit {
        /// The word.
        name: String,
    },
    /// A number that does not fit into 64 bits.
    #[error("the number is too large for 64 bits")]
    TooLarge,
    /// A number with a fraction of a nanosecond or of a byte.
    #[error("this is not a whole number of nanoseconds or bytes")]
    Fraction,
    /// Hex digits that are not bytes.
    #[error("bytes need two hex digits each, such as X'00ff'")]
    NoHex,
    /// A wrong escape character.
    #[error("LIKE has only one escape character, `\\`")]
    Escape,
    /// A comparison without a field.
    #[error("one side of a test must be a field")]
    Constant,
    /// A comparison with NULL.
    #[error("nothing compares with NULL")]
    Null,
    /// A value that is not true or false where a condition is expected.
    #[error("`{what}` alone is not true or false")]
    NoCondition {
        /// The text.
        what: String,
    },
    /// A field of another frame, or a frame of another buffer.
    #[error("no frame or buffer is called `{name}`")]
    NoKind {
        /// The name.
        name: String,
        /// The names of frames or buffers.
        available: Vec<String>,
    },
    /// No field of that name.
    #[error("no field is called `{name}`")]
    NoField {
        /// The name.
        name: String,
        /// All fields.
        available: Vec<String>,
    },
    /// No single kind of frame has all the fields.
    #[error("no kind of frame has all of these fields")]
    NoSingleKind,
    /// A field that cannot be compared with this value.
    #[error("`{field}` is {ty}{}, and cannot be compared with {with}", in_unit(.unit))]
    Mismatch {
        /// The field.
        field: String,
        /// The type of the operand.
        ty: Type,
        /// The unit of the operand; may be empty.
        unit: String,
        /// The other side.
        with: String,
    },
    /// LIKE of a field that is not text.
    #[error("`{field}` is {ty}; LIKE is for text and enums")]
    NoText {
        /// The field.
        field: String,
        /// The type of the operand.
        ty: Type,
    },
    /// Text that is not a time.
    #[error("`{text}` is not a time")]
    NoTime {
        /// The text.
        text: String,
    },
    /// No enum of that field, in any kind of frame, has a value with that name.
    #[error("no value of `{field}` is shown as `{name}`")]
    NoValue {
        /// The field.
        field: String,
        /// The name.
        name: String,
        /// The valid names.
        available: Vec<String>,
    },
}

fn in_unit(unit: &str) -> String {
    if unit.is_empty() { String::new() } else { format!(" in {unit}") }
}

/// A problem and its position.
#[derive(Debug, Clone)]
pub(crate) struct PlacedProblem {
    pub span: SourceRange,
    pub problem: Problem,
}

impl PlacedProblem {
    pub fn new(span: SourceRange, problem: Problem) -> PlacedProblem {
        PlacedProblem { span, problem }
    }

    /// The error in `text`.
    pub fn over(self, text: &str) -> ExpressionError {
        ExpressionError { problem: self.problem, span: self.span, text: text.to_owned() }
    }
}

impl fmt::Display for ExpressionError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.problem.fmt(f)
    }
}

impl std::error::Error for ExpressionError {}

impl ExpressionError {
    /// Draws the text with carets below the position, and advice. `name` is the origin of the text,
    /// such as `--where`. `color` adds ANSI escapes. The message is not repeated.
    pub fn draw(&self, name: &str, color: bool) -> String {
        let (label, help) = self.advice();
        let diagnostic = Diagnostic {
            code: "where",
            severity: Severity::Error,
            message: String::new(),
            span: self.span.clone(),
            label,
            help,
            notes: Vec::new(),
        };
        let drawn = render(&[diagnostic], name, &self.text, color);
        let drawn = drawn.split_once('\n').map_or("", |(_, rest)| rest);
        drawn.trim_end().to_owned()
    }

    /// The text next to the carets, and the text below.
    fn advice(&self) -> (String, Option<String>) {
        let did_you_mean = |name: &str, available: &[String]| {
            let meant = nearest(name, available.iter().map(String::as_str));
            meant.map(|meant| format!("did you mean `{meant}`?")).unwrap_or_default()
        };
        let here = self.text.get(self.span.clone()).unwrap_or_default();
        let plain = |help: &str| (String::new(), Some(help.to_owned()));
        match &self.problem {
            Problem::NoUnit { name } => {
                let meant = nearest(name, units::names()).filter(|nearest| nearest.len() > 1);
                let label =
                    meant.map(|meant| format!("did you mean `{meant}`?")).unwrap_or_default();
                let all: Vec<&str> = units::names().collect();
                (label, Some(format!("units are {}", all.join(", "))))
            }
            Problem::NoField { name, available } => {
                let mut help = format!("there are: {}", some(available));
                if here.starts_with('"') {
                    help = format!("text stands in single quotes: '{name}'; {help}");
                }
                (did_you_mean(name, available), Some(help))
            }
            Problem::NoKind { name, available } | Problem::NoValue { name, available, .. } => {
                (did_you_mean(name, available), Some(format!("there are: {}", some(available))))
            }
            Problem::Syntax { .. } => {
                let rest = self.text.get(self.span.start..).unwrap_or_default();
                let before = self.text.get(..self.span.start).unwrap_or_default().trim_end();
                let help = match rest {
                    _ if rest.starts_with("==")
                        || rest.starts_with('=') && before.ends_with('=') =>
                    {
                        "`=` compares"
                    }
                    _ if rest.starts_with("&&") => "AND joins conditions",
                    _ if rest.starts_with("||") => "OR joins conditions",
                    _ if rest.starts_with('!') => "NOT negates a condition; `<>` is unequal",
                    _ => return (String::new(), None),
                };
                plain(help)
            }
            Problem::Mismatch {
                unit, ty: Type::Whole | Type::Single | Type::Double, with, ..
            } if with.starts_with("a duration") || with.starts_with("a size") => {
                match unit.as_str() {
                    "" => plain("the frame file gives no @unit(\"ns\"): write a number"),
                    unit => plain(&format!("write a number of {unit}")),
                }
            }
            Problem::Mismatch { ty, .. } => {
                plain(&format!("{ty} compares with {}", ty.compares_with()))
            }
            Problem::NoTime { .. } => {
                plain(&format!("a point in time compares with {}", Type::Time.compares_with()))
            }
            Problem::Null => plain("use IS NULL or IS NOT NULL"),
            Problem::Constant => plain("compare a field with a value, such as handle > 10ms"),
            Problem::NoCondition { .. } => plain("compare it with something, or use IS NOT NULL"),
            Problem::TooLarge => {
                plain("numbers are from -9223372036854775808 to 18446744073709551615")
            }
            Problem::Escape => plain("put `\\` before a % or _ that means itself"),
            Problem::NoSingleKind => plain("`ppt info` lists the fields of each frame"),
            _ => (String::new(), None),
        }
    }
}

/// The first of many names.
fn some(names: &[String]) -> String {
    const SHOWN: usize = 20;
    let shown = names.iter().take(SHOWN).map(String::as_str).collect::<Vec<_>>().join(", ");
    match names.len() {
        0 => "none".to_owned(),
        1..=SHOWN => shown,
        more => format!("{shown} and {} more", more - SHOWN),
    }
}
