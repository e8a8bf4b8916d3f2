//! Parses text into a syntax tree, using the grammar of `predicate.pest`. Only this file names its
//! rules.

use pest::Parser as _;
use pest::error::{ErrorVariant, InputLocation};
use pest::iterators::Pair;
use pest_derive::Parser;
use ppt_frame_dsl::SourceRange;

use crate::ast::{ComparedValue, Comparison, Expr, FieldName, Literal, NameSegment, Operand};
use crate::error::{PlacedProblem, Problem};
use crate::literal;

/// Most bytes of an expression.
pub const MAX_BYTES: usize = 16 << 10;
/// Deepest nesting of parentheses.
pub const MAX_DEPTH: usize = 16;

#[derive(Parser)]
#[grammar = "predicate.pest"]
struct Grammar;

/// The tree of an expression.
pub(crate) fn parse(text: &str) -> Result<Expr, PlacedProblem> {
    if text.len() > MAX_BYTES {
        let problem = Problem::TooLong { bytes: text.len(), most: MAX_BYTES };
        return Err(PlacedProblem::new(0..0, problem));
    }
    if let Some(at) = too_deep(text) {
        return Err(PlacedProblem::new(at..at + 1, Problem::TooDeep { most: MAX_DEPTH }));
    }
    let mut pairs = Grammar::parse(Rule::expression, text).map_err(|error| syntax(&error, text))?;
    let whole = pairs.next().and_then(|pair| pair.into_inner().next());
    any(whole.expect("an expression has conditions"))
}

/// The numbers in any SQL, with their positions.
pub(crate) fn numbers(text: &str) -> Vec<(SourceRange, &str)> {
    let Ok(mut pairs) = Grammar::parse(Rule::sql, text) else { return Vec::new() };
    let tokens = pairs.next().into_iter().flat_map(Pair::into_inner);
    let numbers = tokens.filter(|token| token.as_rule() == Rule::number);
    numbers.map(|number| (span(&number), number.as_str())).collect()
}

/// The position of the first parenthesis beyond the limit. The grammar recurses only at
/// parentheses.
fn too_deep(text: &str) -> Option<usize> {
    let (mut depth, mut quote) = (0usize, None);
    for (at, byte) in text.bytes().enumerate() {
        match (quote, byte) {
            (Some(end), _) if byte == end => quote = None,
            (Some(_), _) => {}
            (None, b'\'' | b'"') => quote = Some(byte),
            (None, b'(') => {
                depth += 1;
                if depth > MAX_DEPTH {
                    return Some(at);
                }
            }
            (None, b')') => depth = depth.saturating_sub(1),
            (None, _) => {}
        }
    }
    None
}

type Piece<'a> = Pair<'a, Rule>;

fn span(pair: &Piece<'_>) -> SourceRange {
    pair.as_span().start()..pair.as_span().end()
}

fn any(pair: Piece<'_>) -> Result<Expr, PlacedProblem> {
    joined(pair, Rule::all, all, Expr::Any)
}

fn all(pair: Piece<'_>) -> Result<Expr, PlacedProblem> {
    joined(pair, Rule::one, one, Expr::All)
}

fn joined(
    pair: Piece<'_>,
    rule: Rule,
    read: fn(Piece<'_>) -> Result<Expr, PlacedProblem>,
    join: fn(Vec<Expr>) -> Expr,
) -> Result<Expr, PlacedProblem> {
    let parts = pair.into_inner().filter(|pair| pair.as_rule() == rule).map(read);
    let mut parts = parts.collect::<Result<Vec<_>, _>>()?;
    Ok(if parts.len() == 1 { parts.remove(0) } else { join(parts) })
}

fn one(pair: Piece<'_>) -> Result<Expr, PlacedProblem> {
    let mut negated = false;
    let mut found = None;
    for part in pair.into_inner() {
        match part.as_rule() {
            Rule::not_word => negated = !negated,
            Rule::group => {
                let inner = part.into_inner().find(|pair| pair.as_rule() == Rule::any);
                found = Some(any(inner.expect("a group has conditions"))?);
            }
            _ => found = Some(test(part)?),
        }
    }
    let found = found.expect("NOT stands before a condition");
    Ok(if negated { Expr::Not(Box::new(found)) } else { found })
}

fn test(pair: Piece<'_>) -> Result<Expr, PlacedProblem> {
    let mut parts = pair.into_inner();
    let of = operand(parts.next().expect("a test has an operand"))?;
    let Some(tail) = parts.next() else { return Ok(Expr::Bare(of)) };
    let rule = tail.as_rule();
    let (mut negated, mut operands, mut literals) = (false, Vec::new(), Vec::new());
    let (mut comparison, mut strings) = (Comparison::Equal, Vec::new());
    for part in tail.into_inner() {
        match part.as_rule() {
            Rule::not_word => negated = true,
            Rule::operand => operands.push(operand(part)?),
            Rule::literal => literals.push(literal(part)?),
            Rule::string => strings.push((span(&part), literal::quoted(part.as_str(), '\''))),
            Rule::operator => comparison = operator(part.as_str()),
            _ => {}
        }
    }
    let mut operands = operands.into_iter();
    let mut next = || operands.next().expect("the grammar has it");
    Ok(match rule {
        Rule::comparison => Expr::Comparison(of, comparison, next()),
        Rule::between => {
            let (low, high) = (next(), next());
            Expr::Between { of, negated, low, high }
        }
        Rule::within => Expr::In { of, negated, list: literals },
        Rule::like => {
            if let Some((span, _)) = strings.get(1).filter(|string| string.1 != "\\") {
                return Err(PlacedProblem::new(span.clone(), Problem::Escape));
            }
            Expr::Like { of, negated, pattern: strings.swap_remove(0).1 }
        }
        _ => Expr::IsNull { of, negated },
    })
}

fn operator(text: &str) -> Comparison {
    match text {
        "=" => Comparison::Equal,
        "<>" | "!=" => Comparison::Unequal,
        "<" => Comparison::Less,
        "<=" => Comparison::AtMost,
        ">" => Comparison::Greater,
        _ => Comparison::AtLeast,
    }
}

fn operand(pair: Piece<'_>) -> Result<Operand, PlacedProblem> {
    let inner = pair.into_inner().next().expect("a literal or a field");
    match inner.as_rule() {
        Rule::literal => literal(inner).map(Operand::Literal),
        _ => {
            let span = span(&inner);
            let names = inner.into_inner().filter(|pair| pair.as_rule() == Rule::name);
            Ok(Operand::Field(FieldName { parts: names.map(part).collect(), span }))
        }
    }
}

fn part(pair: Piece<'_>) -> NameSegment {
    let text = match pair.as_str() {
        text if text.starts_with('"') => literal::quoted(text, '"'),
        text => text.to_owned(),
    };
    NameSegment { text, span: span(&pair) }
}

fn literal(pair: Piece<'_>) -> Result<Literal, PlacedProblem> {
    let inner = pair.into_inner().next().expect("one kind of literal");
    let (span, text) = (span(&inner), inner.as_str());
    let value = match inner.as_rule() {
        Rule::number => literal::number(text, span.clone())?,
        Rule::hex => literal::hex(text, span.clone())?,
        Rule::string => ComparedValue::Text(literal::quoted(text, '\'')),
        Rule::true_word => ComparedValue::Bool(true),
        Rule::false_word => ComparedValue::Bool(false),
        _ => ComparedValue::Null,
    };
    Ok(Literal { value, span })
}

fn syntax(error: &pest::error::Error<Rule>, text: &str) -> PlacedProblem {
    let at = match error.location {
        InputLocation::Pos(at) | InputLocation::Span((at, _)) => at,
    };
    let rest = text.get(at..).unwrap_or_default();
    // A whole word, or one character.
    let word = rest.find(|c: char| !c.is_alphanumeric() && c != '_').unwrap_or(rest.len());
    let len = match word {
        0 => rest.chars().next().map_or(0, char::len_utf8),
        word => word,
    };
    let found = match &rest[..len] {
        "" => "the end".to_owned(),
        "'" | "\"" => format!("a {} that nothing ends", &rest[..len]),
        found => format!("`{}`", ppt_text::escaped(found)),
    };
    let mut rules = match &error.variant {
        ErrorVariant::ParsingError { positives, .. } => positives.clone(),
        ErrorVariant::CustomError { .. } => Vec::new(),
    };
    rules.sort_unstable();
    let mut words: Vec<&str> = rules.into_iter().filter_map(in_words).collect();
    words.dedup();
    let mut said: Vec<&str> = Vec::new();
    for word in words {
        if !said.contains(&word) {
            said.push(word);
        }
    }
    let expected = ppt_text::alternatives(&said, "something else");
    PlacedProblem::new(at..at + len, Problem::Syntax { expected, found })
}

/// A description of a rule for people. `None` if it needs no mention.
fn in_words(rule: Rule) -> Option<&'static str> {
    Some(match rule {
        Rule::any | Rule::all | Rule::one | Rule::group | Rule::test => "a condition",
        Rule::comparison | Rule::operator => "a comparison",
        Rule::operand | Rule::field => "a field or a value",
        Rule::name | Rule::plain | Rule::quoted => "a field",
        Rule::literal | Rule::number | Rule::hex | Rule::true_word | Rule::false_word => "a value",
        Rule::string => "text in single quotes",
        Rule::is_null | Rule::is_word => "IS",
        Rule::between | Rule::between_word => "BETWEEN",
        Rule::within | Rule::in_word => "IN",
        Rule::like | Rule::like_word => "LIKE",
        Rule::or_word => "OR",
        Rule::and_word => "AND",
        Rule::not_word => "NOT",
        Rule::null_word => "NULL",
        Rule::escape_word => "ESCAPE",
        Rule::open => "`(`",
        Rule::close => "`)`",
        Rule::comma => "`,`",
        Rule::EOI => "the end",
        _ => return None,
    })
}
