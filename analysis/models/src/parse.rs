//! The parser of formulas, by the grammar of `formula.pest`. Only this file names its rules.

use std::ops::Range;
use std::str::FromStr;

use pest::Parser as _;
use pest::iterators::Pair;
use pest_derive::Parser;
use strum::VariantNames;

use crate::error::{FormulaError, FormulaMistake, expected};
use crate::formula::{Expression, Formula, Function, Operator, Term};

#[derive(Parser)]
#[grammar = "formula.pest"]
struct FormulaGrammar;

/// The largest length of a formula in bytes.
const MAX_BYTES: usize = 4096;
/// The most nested brackets. Parsing and computing recurse.
const MAX_DEPTH: usize = 32;

impl FromStr for Formula {
    type Err = FormulaError;

    fn from_str(text: &str) -> Result<Formula, FormulaError> {
        let formula = read(text)?;
        for (at, term) in formula.terms.iter().enumerate() {
            if formula.terms[..at].contains(term) {
                let mistake = FormulaMistake::Repeated { term: term.to_string() };
                return Err(FormulaError { mistake, span: term.span.clone() });
            }
        }
        Ok(formula)
    }
}

fn read(text: &str) -> Result<Formula, FormulaError> {
    bounded(text)?;
    let mut pairs =
        FormulaGrammar::parse(Rule::formula, text).map_err(|error| mistake(text, &error))?;
    let mut response = None;
    let mut right = Right { terms: Vec::new(), constant: true };
    for part in pairs.next().into_iter().flat_map(Pair::into_inner) {
        match part.as_rule() {
            Rule::response => {
                let span = place(&part);
                let inner = part.into_inner().next();
                let expression = inner.map(sum).transpose()?;
                response = expression.map(|expression| Term { expression, span });
            }
            Rule::terms => right.read(part)?,
            _ => {}
        }
    }
    let Right { terms, constant } = right;
    let whole = 0..text.len();
    match response {
        Some(response) if constant || !terms.is_empty() => {
            Ok(Formula { response, terms, constant })
        }
        _ => Err(FormulaError { mistake: FormulaMistake::NoTerm, span: whole }),
    }
}

/// Refuses texts that are too long or nested too deeply.
fn bounded(text: &str) -> Result<(), FormulaError> {
    if text.len() > MAX_BYTES {
        let mistake = FormulaMistake::TooLong { bytes: text.len(), most: MAX_BYTES };
        return Err(FormulaError { mistake, span: 0..text.len() });
    }
    let mut depth = 0usize;
    for (at, byte) in text.bytes().enumerate() {
        match byte {
            b'(' => depth += 1,
            b')' => depth = depth.saturating_sub(1),
            _ => {}
        }
        if depth > MAX_DEPTH {
            let mistake = FormulaMistake::TooDeep { most: MAX_DEPTH };
            return Err(FormulaError { mistake, span: at..at + 1 });
        }
    }
    Ok(())
}

struct Right {
    terms: Vec<Term>,
    constant: bool,
}

impl Right {
    fn read(&mut self, pair: Pair<'_, Rule>) -> Result<(), FormulaError> {
        let mut negative = false;
        for part in pair.into_inner() {
            if part.as_rule() == Rule::sign {
                negative = part.as_str() == "-";
                continue;
            }
            let span = place(&part);
            let expression = product(part)?;
            let mistake = match (&expression, negative) {
                (Expression::Number(1.0), _) => {
                    self.constant = !negative;
                    continue;
                }
                (Expression::Number(0.0), false) => {
                    self.constant = false;
                    continue;
                }
                (Expression::Number(_), false) => FormulaMistake::Number,
                (_, true) => FormulaMistake::Minus,
                (_, false) => {
                    self.terms.push(Term { expression, span });
                    continue;
                }
            };
            return Err(FormulaError { mistake, span });
        }
        Ok(())
    }
}

fn place(pair: &Pair<'_, Rule>) -> Range<usize> {
    // Some rules end before the white space that follows them, some after it.
    let start = pair.as_span().start();
    start..start + pair.as_str().trim_end().len()
}

fn operator(pair: &Pair<'_, Rule>) -> Operator {
    match pair.as_str() {
        "+" => Operator::Add,
        "-" => Operator::Subtract,
        "/" => Operator::Divide,
        "^" | "**" => Operator::Raise,
        _ => Operator::Multiply,
    }
}

/// Joins operands from the left.
fn chain(
    pair: Pair<'_, Rule>,
    part: fn(Pair<'_, Rule>) -> Result<Expression, FormulaError>,
) -> Result<Expression, FormulaError> {
    let (mut so_far, mut join, mut negative) = (None, None, false);
    for inner in pair.into_inner() {
        match inner.as_rule() {
            Rule::minus => negative = true,
            Rule::sign | Rule::factor | Rule::raised => join = Some(operator(&inner)),
            _ => {
                let mut next = part(inner)?;
                if std::mem::take(&mut negative) {
                    next = Expression::Negative(Box::new(next));
                }
                so_far = Some(match (so_far, join) {
                    (Some(before), Some(join)) => {
                        Expression::Binary(join, Box::new(before), Box::new(next))
                    }
                    _ => next,
                });
            }
        }
    }
    Ok(so_far.unwrap_or(Expression::Number(f64::NAN)))
}

fn sum(pair: Pair<'_, Rule>) -> Result<Expression, FormulaError> {
    chain(pair, product)
}

fn product(pair: Pair<'_, Rule>) -> Result<Expression, FormulaError> {
    chain(pair, power)
}

fn power(pair: Pair<'_, Rule>) -> Result<Expression, FormulaError> {
    chain(pair, atom)
}

fn atom(pair: Pair<'_, Rule>) -> Result<Expression, FormulaError> {
    let mut found = Expression::Number(f64::NAN);
    for part in pair.into_inner() {
        let span = place(&part);
        match part.as_rule() {
            Rule::number => found = Expression::Number(part.as_str().parse().unwrap_or(f64::NAN)),
            Rule::sum => found = sum(part)?,
            Rule::call => found = call(part)?,
            Rule::column => {
                let name = part.as_str().trim_matches('"').to_owned();
                found = Expression::Column { name, span };
            }
            _ => {}
        }
    }
    Ok(found)
}

fn call(pair: Pair<'_, Rule>) -> Result<Expression, FormulaError> {
    let mut function = None;
    let mut inner = Expression::Number(f64::NAN);
    for part in pair.into_inner() {
        match part.as_rule() {
            // As in R, `I(…)` is plain arithmetic, as everything is here.
            Rule::function if part.as_str() == "I" => {}
            Rule::function => {
                function = Some(Function::from_str(part.as_str()).map_err(|_| {
                    let name = part.as_str().to_owned();
                    let mistake =
                        FormulaMistake::NoFunction { name, available: Function::VARIANTS };
                    FormulaError { mistake, span: place(&part) }
                })?);
            }
            Rule::sum => inner = sum(part)?,
            _ => {}
        }
    }
    Ok(match function {
        Some(function) => Expression::Call(function, Box::new(inner)),
        None => inner,
    })
}

fn mistake(text: &str, error: &pest::error::Error<Rule>) -> FormulaError {
    let (found, names, span) = expected(text, error, word);
    FormulaError { mistake: FormulaMistake::Expected { found, names }, span }
}

fn word(rule: &Rule) -> &'static str {
    match rule {
        Rule::tilde => "`~`",
        Rule::sign => "`+` or `-`",
        Rule::minus => "`-`",
        Rule::factor => "`*` or `/`",
        Rule::raised => "`^`",
        Rule::open => "`(`",
        Rule::close => "`)`",
        Rule::function => "a function",
        Rule::number => "a number",
        Rule::EOI => "the end",
        Rule::inside | Rule::quoted | Rule::column | Rule::plain => "a column",
        _ => "a term",
    }
}
