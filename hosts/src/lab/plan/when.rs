//! In which cells a phase runs. Nothing outside this file names a rule of `when.pest`.

use std::ops::Range;

use pest::Parser as _;
use pest::error::{ErrorVariant, InputLocation};
use pest::iterators::Pair;
use pest_derive::Parser;
use ppt_text::nearest;

use super::error::Mistake;
use super::matrix::{Axis, ParameterValue};

#[derive(Parser)]
#[grammar = "lab/plan/when.pest"]
struct Grammar;

/// Limits on the predicate's bytes and its nesting, because the parser recurses.
const MAX_BYTES: usize = 4096;
const DEEPEST: usize = 32;

/// A predicate over the parameters of a cell.
#[derive(Debug, Clone, PartialEq)]
pub(super) enum When {
    All(Vec<When>),
    Any(Vec<When>),
    Not(Box<When>),
    /// Whether the parameter has one of these values.
    In(usize, Vec<ParameterValue>),
    Compare(usize, Relation, ParameterValue),
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Relation {
    Equal,
    Unequal,
    Less,
    AtMost,
    Greater,
    AtLeast,
}

/// The mistake and its byte range in the predicate.
type Wrong = (Mistake, Range<usize>);

impl When {
    /// Parses a predicate over these axes.
    pub(super) fn parse(text: &str, axes: &[Axis]) -> Result<When, Wrong> {
        if text.len() > MAX_BYTES {
            return Err((Mistake::WhenTooLong { most: MAX_BYTES }, 0..text.len()));
        }
        let nots = text.to_ascii_lowercase().matches("not").count();
        if text.matches('(').count() + nots > DEEPEST {
            return Err((Mistake::WhenTooDeep { most: DEEPEST }, 0..text.len()));
        }
        let mut pairs = Grammar::parse(Rule::when, text).map_err(|error| expected(text, &error))?;
        let any = pairs.next().into_iter().flat_map(Pair::into_inner).next();
        any.map_or(Ok(When::All(Vec::new())), |pair| read(pair, axes))
    }

    /// Evaluates the predicate for the parameters, which are in the order of the axes.
    pub(super) fn holds(&self, parameters: &[ParameterValue]) -> bool {
        match self {
            When::All(all) => all.iter().all(|when| when.holds(parameters)),
            When::Any(any) => any.iter().any(|when| when.holds(parameters)),
            When::Not(of) => !of.holds(parameters),
            When::In(at, list) => list.contains(&parameters[*at]),
            When::Compare(at, relation, value) => {
                let order = parameters[*at].order(value);
                match relation {
                    Relation::Equal => order.is_eq(),
                    Relation::Unequal => order.is_ne(),
                    Relation::Less => order.is_lt(),
                    Relation::AtMost => order.is_le(),
                    Relation::Greater => order.is_gt(),
                    Relation::AtLeast => order.is_ge(),
                }
            }
        }
    }
}

fn read(pair: Pair<'_, Rule>, axes: &[Axis]) -> Result<When, Wrong> {
    let rule = pair.as_rule();
    let mut parts = pair.into_inner();
    match rule {
        Rule::any | Rule::all => {
            let parts = parts.filter(|part| !matches!(part.as_rule(), Rule::or | Rule::and));
            let mut read: Vec<When> =
                parts.map(|part| read(part, axes)).collect::<Result<_, _>>()?;
            Ok(match read.len() {
                1 => read.remove(0),
                _ if rule == Rule::any => When::Any(read),
                _ => When::All(read),
            })
        }
        Rule::negation => {
            let of = parts.find(|part| part.as_rule() == Rule::one);
            let of = of.map_or(Ok(When::All(Vec::new())), |pair| read(pair, axes))?;
            Ok(When::Not(Box::new(of)))
        }
        Rule::list | Rule::test => compared(parts, axes),
        _ => parts.next().map_or(Ok(When::All(Vec::new())), |part| read(part, axes)),
    }
}

fn compared<'i>(parts: impl Iterator<Item = Pair<'i, Rule>>, axes: &[Axis]) -> Result<When, Wrong> {
    let (mut axis, mut negated, mut relation, mut values) = (0, false, None, Vec::new());
    for part in parts {
        let span = part.as_span().start()..part.as_span().end();
        match part.as_rule() {
            Rule::name => axis = find(part.as_str(), axes).map_err(|error| (error, span))?,
            Rule::not => negated = true,
            Rule::within => {}
            Rule::relation => relation = Some(relation_of(part.as_str())),
            _ => {
                let value = literal(part);
                let is = &axes[axis];
                if let Some(other) =
                    is.values.iter().find(|parameter_value| !parameter_value.is_like(&value))
                {
                    let mistake = Mistake::WhenType {
                        axis: is.name.clone(),
                        is: other.kind(),
                        compared: value.kind(),
                    };
                    return Err((mistake, span));
                }
                values.push(value);
            }
        }
    }
    Ok(match (relation, values.pop()) {
        (Some(relation), Some(value)) => When::Compare(axis, relation, value),
        (_, last) => {
            values.extend(last);
            let list = When::In(axis, values);
            if negated { When::Not(Box::new(list)) } else { list }
        }
    })
}

fn find(name: &str, axes: &[Axis]) -> Result<usize, Mistake> {
    axes.iter().position(|axis| axis.name == name).ok_or_else(|| Mistake::NoAxis {
        name: name.to_owned(),
        nearest: nearest(name, axes.iter().map(|axis| &*axis.name)).map(str::to_owned),
        available: axes.iter().map(|axis| axis.name.clone()).collect(),
    })
}

fn relation_of(text: &str) -> Relation {
    match text {
        "=" => Relation::Equal,
        "<" => Relation::Less,
        "<=" => Relation::AtMost,
        ">" => Relation::Greater,
        ">=" => Relation::AtLeast,
        _ => Relation::Unequal,
    }
}

fn literal(pair: Pair<'_, Rule>) -> ParameterValue {
    let text = pair.as_str();
    match pair.into_inner().next().map(|pair| pair.as_rule()) {
        Some(Rule::number) => match text.parse() {
            Ok(whole) => ParameterValue::Whole(whole),
            Err(_) => ParameterValue::Real(text.parse().unwrap_or(f64::NAN)),
        },
        Some(Rule::truth) => ParameterValue::Truth(text.eq_ignore_ascii_case("true")),
        _ => ParameterValue::Text(text.trim_matches('\'').to_owned()),
    }
}

/// The text found, and the tokens expected.
fn expected(text: &str, error: &pest::error::Error<Rule>) -> Wrong {
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
    let span = at..at + found.map_or(0, char::len_utf8);
    (Mistake::When { found, names }, span)
}

fn word(rule: &Rule) -> &'static str {
    match rule {
        Rule::name => "a parameter of the matrix",
        Rule::relation => "a comparison",
        Rule::literal | Rule::number | Rule::text | Rule::truth | Rule::inside => "a value",
        Rule::not | Rule::negation => "`not`",
        Rule::EOI => "the end",
        _ => "a test",
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn axes() -> Vec<Axis> {
        let load = ["none", "cpu"].map(|text| ParameterValue::Text(text.to_owned())).to_vec();
        vec![
            Axis { name: "load".to_owned(), values: load },
            Axis {
                name: "size".to_owned(),
                values: vec![ParameterValue::Whole(48), ParameterValue::Whole(1400)],
            },
            Axis { name: "quiet".to_owned(), values: vec![ParameterValue::Truth(true)] },
        ]
    }

    fn holds(text: &str) -> bool {
        let cell = [
            ParameterValue::Text("cpu".to_owned()),
            ParameterValue::Whole(48),
            ParameterValue::Truth(true),
        ];
        When::parse(text, &axes()).unwrap_or_else(|error| panic!("{text}: {error:?}")).holds(&cell)
    }

    #[test]
    fn predicates_are_true_or_false() {
        for text in [
            "load = 'cpu'",
            "load <> 'none' and size < 100",
            "not load = 'none'",
            "size = 48.0",
            "size in (1, 48)",
            "load NOT IN ('none') AND (size > 1000 OR size <= 48)",
            "quiet = true",
            "size > 1000 or not (load = 'none' or size = 1)",
        ] {
            assert!(holds(text), "{text}");
            assert!(!holds(&format!("not ({text})")), "not ({text})");
        }
    }

    #[test]
    fn mistakes_have_a_place() {
        let mistake = |text: &str| {
            let (mistake, span) = When::parse(text, &axes()).unwrap_err();
            (mistake.to_string(), span)
        };
        let (text, span) = mistake("lode = 'cpu'");
        assert_eq!(text, "the matrix has no `lode`; it has: load, size, quiet");
        assert_eq!(span, 0..4);
        let (text, span) = mistake("size = 'cpu'");
        assert_eq!(text, "`size` is a number, and is compared with text");
        assert_eq!(span, 7..12);
        assert_eq!(mistake("load ="), ("expected a value, found the end".to_owned(), 6..6));
        assert!(mistake(&"(".repeat(40)).0.contains("brackets and `not`s"));
        assert!(mistake(&"not ".repeat(40)).0.contains("brackets and `not`s"));
    }
}
