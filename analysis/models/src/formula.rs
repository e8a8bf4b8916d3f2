//! Formulas: the terms from which a column follows.

use std::fmt;
use std::ops::Range;

/// A formula as in R: `cpu ~ 1 + n + n^2`. It has a constant unless `0 +` or `- 1` removes it.
/// Unlike in R, everything within a term is plain arithmetic: `n*m` is a product, `n^2` a square
/// (`I(n^2)` means the same).
#[derive(Debug, Clone, PartialEq)]
pub struct Formula {
    /// The column to explain.
    pub response: Term,
    /// The terms that explain it, without the constant.
    pub terms: Vec<Term>,
    /// Whether the formula has a constant.
    pub constant: bool,
}

/// A term and its position in the text.
#[derive(Debug, Clone)]
pub struct Term {
    /// The expression of each row.
    pub expression: Expression,
    /// Bytes of the formula's text.
    pub span: Range<usize>,
}

impl PartialEq for Term {
    fn eq(&self, other: &Self) -> bool {
        self.expression == other.expression
    }
}

/// Arithmetic over the columns of a row.
#[derive(Debug, Clone)]
pub enum Expression {
    /// A number.
    Number(f64),
    /// A column.
    Column {
        /// The name of the column.
        name: String,
        /// The position of the column in the text.
        span: Range<usize>,
    },
    /// An expression with the opposite sign.
    Negative(Box<Expression>),
    /// Two expressions, joined by an operator.
    Binary(Operator, Box<Expression>, Box<Expression>),
    /// A function of an expression.
    Call(Function, Box<Expression>),
}

impl PartialEq for Expression {
    fn eq(&self, other: &Self) -> bool {
        match (self, other) {
            (Expression::Number(a), Expression::Number(b)) => a == b,
            (Expression::Column { name: a, .. }, Expression::Column { name: b, .. }) => a == b,
            (Expression::Negative(a), Expression::Negative(b)) => a == b,
            (Expression::Binary(o, a, b), Expression::Binary(p, c, d)) => {
                o == p && a == c && b == d
            }
            (Expression::Call(f, a), Expression::Call(g, b)) => f == g && a == b,
            _ => false,
        }
    }
}

/// An operator between two numbers.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Operator {
    /// `+`
    Add,
    /// `-`
    Subtract,
    /// `*` or `:`
    Multiply,
    /// `/`
    Divide,
    /// `^` or `**`
    Raise,
}

/// A function of a number.
#[derive(
    Debug, Clone, Copy, PartialEq, Eq, strum::EnumString, strum::Display, strum::VariantNames,
)]
#[strum(serialize_all = "lowercase")]
pub enum Function {
    /// The natural logarithm.
    #[strum(serialize = "ln", to_string = "log")]
    Log,
    /// The logarithm to base 2.
    Log2,
    /// The logarithm to base 10.
    Log10,
    /// The square root.
    Sqrt,
    /// The exponential function.
    Exp,
    /// The absolute value.
    Abs,
}

impl Expression {
    /// The value of the expression; `column` returns the values of columns.
    pub fn value(&self, column: &impl Fn(&str) -> f64) -> f64 {
        match self {
            Expression::Number(number) => *number,
            Expression::Column { name, .. } => column(name),
            Expression::Negative(operand) => -operand.value(column),
            Expression::Binary(operator, left, right) => {
                let (left, right) = (left.value(column), right.value(column));
                match operator {
                    Operator::Add => left + right,
                    Operator::Subtract => left - right,
                    Operator::Multiply => left * right,
                    Operator::Divide => left / right,
                    Operator::Raise if right == 2.0 => left * left,
                    Operator::Raise => left.powf(right),
                }
            }
            Expression::Call(function, argument) => {
                let argument = argument.value(column);
                match function {
                    Function::Log => argument.ln(),
                    Function::Log2 => argument.log2(),
                    Function::Log10 => argument.log10(),
                    Function::Sqrt => argument.sqrt(),
                    Function::Exp => argument.exp(),
                    Function::Abs => argument.abs(),
                }
            }
        }
    }

    /// Calls `found` with each column and its position.
    pub fn columns<'a>(&'a self, found: &mut impl FnMut(&'a str, &Range<usize>)) {
        match self {
            Expression::Number(_) => {}
            Expression::Column { name, span } => found(name, span),
            Expression::Negative(one) | Expression::Call(_, one) => one.columns(found),
            Expression::Binary(_, one, other) => {
                one.columns(found);
                other.columns(found);
            }
        }
    }

    /// The precedence: an inner expression of lower precedence needs brackets.
    fn tightness(&self) -> u8 {
        match self {
            Expression::Binary(Operator::Add | Operator::Subtract, ..) => 0,
            Expression::Negative(_) => 0,
            Expression::Binary(Operator::Multiply | Operator::Divide, ..) => 1,
            Expression::Binary(Operator::Raise, ..) => 2,
            _ => 3,
        }
    }

    fn write(&self, f: &mut fmt::Formatter<'_>, least: u8) -> fmt::Result {
        if self.tightness() < least {
            f.write_str("(")?;
            self.write(f, 0)?;
            return f.write_str(")");
        }
        match self {
            Expression::Number(number) => write!(f, "{number}"),
            Expression::Column { name, .. } if is_plain(name) => f.write_str(name),
            Expression::Column { name, .. } => write!(f, "\"{name}\""),
            Expression::Negative(one) => {
                f.write_str("-")?;
                one.write(f, 1)
            }
            Expression::Binary(operator, one, other) => {
                let (sign, left, right) = match operator {
                    Operator::Add => (" + ", 0, 1),
                    Operator::Subtract => (" - ", 0, 1),
                    Operator::Multiply => ("*", 1, 2),
                    Operator::Divide => ("/", 1, 2),
                    Operator::Raise => ("^", 3, 3),
                };
                one.write(f, left)?;
                f.write_str(sign)?;
                other.write(f, right)
            }
            Expression::Call(function, one) => {
                write!(f, "{function}(")?;
                one.write(f, 0)?;
                f.write_str(")")
            }
        }
    }
}

/// Names that need no quotes.
fn is_plain(name: &str) -> bool {
    let word = |part: &str| {
        part.starts_with(|c: char| c.is_ascii_alphabetic() || c == '_')
            && part.chars().all(|c| c.is_ascii_alphanumeric() || c == '_')
    };
    name.split('.').all(word)
}

impl fmt::Display for Expression {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.write(f, 0)
    }
}

impl fmt::Display for Term {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        // Without brackets, a sum would be several terms.
        self.expression.write(f, 1)
    }
}

impl fmt::Display for Formula {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.response.expression.write(f, 0)?;
        f.write_str(if self.constant { " ~ 1" } else { " ~ 0" })?;
        self.terms.iter().try_for_each(|term| write!(f, " + {term}"))
    }
}

impl Formula {
    /// The distinct columns of the right side.
    pub fn inputs(&self) -> Vec<&str> {
        columns(&self.terms)
    }

    /// The distinct columns of both sides.
    pub fn columns(&self) -> Vec<&str> {
        columns(std::iter::once(&self.response).chain(&self.terms))
    }

    /// The names of the coefficients, in order.
    pub fn names(&self) -> Vec<String> {
        let constant = self.constant.then(|| "1".to_owned());
        constant.into_iter().chain(self.terms.iter().map(Term::to_string)).collect()
    }
}

/// The distinct columns of these terms.
fn columns<'a>(terms: impl IntoIterator<Item = &'a Term>) -> Vec<&'a str> {
    let mut all: Vec<&str> = Vec::new();
    for term in terms {
        term.expression.columns(&mut |name, _| {
            if !all.contains(&name) {
                all.push(name);
            }
        });
    }
    all
}
