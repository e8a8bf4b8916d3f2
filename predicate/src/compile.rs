//! Compiles a syntax tree into a program for one kind of frame.

use crate::ast::{ComparedValue, Comparison, Expr, Literal, Operand};
use crate::error::{PlacedProblem, Problem};
use crate::fields::{ExpressionFields, Field, Read};
use crate::like::Pattern;
use crate::number::{As, ComparedNumber, NumberOrigin, Raw};
use crate::program::Node;
use crate::ranges::Ranges;
use crate::text_column::{Test, TextColumn};
use crate::types::Type;

/// The state of a compilation.
pub(crate) struct Compiler<'a> {
    fields: &'a ExpressionFields<'a>,
    /// Names that are not values of an enum. Another kind of frame may have them.
    pub doubts: Vec<PlacedProblem>,
}

/// The literals that a field is compared with.
enum Against<'a> {
    Compare(Comparison, &'a Literal),
    Between(&'a Literal, &'a Literal),
    In(&'a [Literal]),
}

impl Against<'_> {
    fn literals(&self) -> Vec<&Literal> {
        match self {
            Against::Compare(_, with) => vec![with],
            Against::Between(low, high) => vec![low, high],
            Against::In(list) => list.iter().collect(),
        }
    }

    /// Whether it selects certain values, rather than all others.
    fn is_choice(&self) -> bool {
        matches!(
            self,
            Against::In(_) | Against::Compare(Comparison::Equal | Comparison::Unequal, _)
        )
    }
}

impl<'a> Compiler<'a> {
    pub fn new(fields: &'a ExpressionFields<'a>) -> Self {
        Compiler { fields, doubts: Vec::new() }
    }

    pub fn node(&mut self, expr: &Expr) -> Result<Node, PlacedProblem> {
        Ok(match expr {
            Expr::All(all) => Node::All(self.nodes(all)?),
            Expr::Any(all) => Node::Any(self.nodes(all)?),
            Expr::Not(of) => Node::Not(Box::new(self.node(of)?)),
            Expr::Bare(of) => self.bare(of)?,
            Expr::Comparison(left, comparison, right) => {
                self.comparison(left, *comparison, right)?
            }
            Expr::Between { of, negated, low, high } => match (of, low, high) {
                (Operand::Field(name), Operand::Literal(low), Operand::Literal(high)) => {
                    let field = self.fields.find(name)?;
                    self.against(field, &Against::Between(low, high), *negated)?
                }
                _ => {
                    let low = self.comparison(of, Comparison::AtLeast, low)?;
                    let high = self.comparison(of, Comparison::AtMost, high)?;
                    let range = Node::All([low, high].into());
                    if *negated { Node::Not(Box::new(range)) } else { range }
                }
            },
            Expr::In { of, negated, list } => {
                self.against(self.field(of)?, &Against::In(list), *negated)?
            }
            Expr::Like { of, negated, pattern } => {
                let field = self.field(of)?;
                let test = Test::Like(Pattern::new(pattern));
                match &field.read {
                    Read::Text(words) if field.ty == Type::Text => {
                        Node::Text { of: words.clone(), test, negated: *negated }
                    }
                    Read::Enum { value, names, .. } => {
                        let known = names.iter();
                        let known =
                            known.map(|(number, name)| (number, test.holds(name.as_bytes())));
                        let known = known.collect();
                        Node::Enum { of: whole(value), known, test, negated: *negated }
                    }
                    _ => {
                        let problem = Problem::NoText { field: field.name.clone(), ty: field.ty };
                        return Err(PlacedProblem::new(of.span().clone(), problem));
                    }
                }
            }
            Expr::IsNull { of, negated } => match &self.field(of)?.read {
                Read::Number(source) => Node::NumberIsNull(whole(source), *negated),
                Read::Enum { value, .. } => Node::NumberIsNull(whole(value), *negated),
                Read::Text(words) => Node::TextIsNull(words.clone(), *negated),
            },
        })
    }

    fn nodes(&mut self, all: &[Expr]) -> Result<Box<[Node]>, PlacedProblem> {
        all.iter().map(|expr| self.node(expr)).collect()
    }

    fn field(&self, of: &Operand) -> Result<&'a Field, PlacedProblem> {
        match of {
            Operand::Field(name) => self.fields.find(name),
            Operand::Literal(literal) => {
                Err(PlacedProblem::new(literal.span.clone(), Problem::Constant))
            }
        }
    }

    fn bare(&self, of: &Operand) -> Result<Node, PlacedProblem> {
        let what = match of {
            Operand::Literal(Literal { value: ComparedValue::Bool(value), .. }) => {
                return Ok(Node::Constant(*value));
            }
            Operand::Literal(_) => {
                return Err(PlacedProblem::new(of.span().clone(), Problem::Constant));
            }
            Operand::Field(name) => {
                let field = self.fields.find(name)?;
                if let (Type::Bool, Read::Number(source)) = (field.ty, &field.read) {
                    return Ok(Node::Numbers(whole(source), Ranges::new(vec![(1, 1)])));
                }
                field.name.clone()
            }
        };
        Err(PlacedProblem::new(of.span().clone(), Problem::NoCondition { what }))
    }

    fn comparison(
        &mut self,
        left: &Operand,
        comparison: Comparison,
        right: &Operand,
    ) -> Result<Node, PlacedProblem> {
        match (left, right) {
            (Operand::Field(name), Operand::Literal(with)) => {
                self.against(self.fields.find(name)?, &Against::Compare(comparison, with), false)
            }
            (Operand::Literal(with), Operand::Field(name)) => {
                let against = Against::Compare(comparison.mirrored(), with);
                self.against(self.fields.find(name)?, &against, false)
            }
            (Operand::Field(one), Operand::Field(other)) => {
                let (one, other) = (self.fields.find(one)?, self.fields.find(other)?);
                two(one, comparison, other).ok_or_else(|| {
                    let with = format!("`{}`, which is {}", other.name, other.ty);
                    mismatch(one, with, right)
                })
            }
            (Operand::Literal(_), Operand::Literal(_)) => {
                let span = left.span().start..right.span().end;
                Err(PlacedProblem::new(span, Problem::Constant))
            }
        }
    }

    fn against(
        &mut self,
        field: &Field,
        against: &Against<'_>,
        negated: bool,
    ) -> Result<Node, PlacedProblem> {
        match &field.read {
            Read::Number(source) => numbers(field, source, against, negated),
            Read::Text(words) => {
                let test = test(field, against)?;
                Ok(Node::Text { of: words.clone(), test, negated })
            }
            Read::Enum { .. } if against.is_choice() => {
                let test = test(field, against)?;
                self.values(field, against, &test, negated)
            }
            Read::Enum { value, names, .. } => {
                let test = test(field, against)?;
                let known =
                    names.iter().map(|(number, name)| (number, test.holds(name.as_bytes())));
                let known = known.collect();
                Ok(Node::Enum { of: whole(value), known, test, negated })
            }
        }
    }

    /// A selection of enum values.
    fn values(
        &mut self,
        field: &Field,
        against: &Against<'_>,
        test: &Test,
        negated: bool,
    ) -> Result<Node, PlacedProblem> {
        let Read::Enum { value, names, .. } = &field.read else {
            return Ok(Node::Constant(false));
        };
        let unequal = matches!(test, Test::Compare(Comparison::Unequal, _));
        let mut values = Vec::new();
        for literal in against.literals() {
            let ComparedValue::Text(name) = &literal.value else { continue };
            let named = names.iter().filter(|entry| entry.1 == name);
            let before = values.len();
            values.extend(named.map(|entry| (entry.0, entry.0)));
            // A value without a name is shown as its number.
            let number = name.parse::<i128>().ok().filter(|number| number.to_string() == *name);
            values.extend(
                number.filter(|number| names.get(*number).is_none()).map(|number| (number, number)),
            );
            if values.len() == before {
                let available = names.iter().map(|name| name.1.to_owned()).collect();
                let (field, name) = (field.name.clone(), name.clone());
                let problem = Problem::NoValue { field, name, available };
                self.doubts.push(PlacedProblem::new(literal.span.clone(), problem));
            }
        }
        Ok(Node::Numbers(whole(value), Ranges::new(values).negated(unequal != negated)))
    }
}

fn whole(source: &NumberOrigin) -> ComparedNumber {
    ComparedNumber { source: source.clone(), compared: As::Whole }
}

/// The type in which a field is compared, unless the other side requires a wider one.
fn compared(ty: Type) -> As {
    match ty {
        Type::Single => As::Single,
        Type::Double => As::Double,
        _ => As::Whole,
    }
}

/// A comparison of two fields. `None` if their types differ.
fn two(one: &Field, comparison: Comparison, other: &Field) -> Option<Node> {
    let is_number = |ty| matches!(ty, Type::Whole | Type::Single | Type::Double | Type::Duration);
    let is_text = |ty| matches!(ty, Type::Text | Type::Enum);
    let words = |field: &Field| match &field.read {
        Read::Text(words) | Read::Enum { words, .. } => Some(TextColumn::clone(words)),
        Read::Number(_) => None,
    };
    match (one.ty, other.ty) {
        (a, b)
            if is_number(a) && is_number(b) || a == b && [Type::Bool, Type::Time].contains(&a) =>
        {
            let (Read::Number(one), Read::Number(other)) = (&one.read, &other.read) else {
                return None;
            };
            let compared = compared(a).max(compared(b));
            let number =
                |source: &NumberOrigin| ComparedNumber { source: source.clone(), compared };
            Some(Node::TwoNumbers(number(one), comparison, number(other)))
        }
        (a, b) if is_text(a) && is_text(b) || a == b && a == Type::Bytes => {
            Some(Node::TwoTexts(words(one)?, comparison, words(other)?))
        }
        _ => None,
    }
}

/// A test of a numeric field.
fn numbers(
    field: &Field,
    source: &NumberOrigin,
    against: &Against<'_>,
    negated: bool,
) -> Result<Node, PlacedProblem> {
    let literals = against.literals();
    let values =
        literals.iter().map(|literal| raw(field, literal)).collect::<Result<Vec<_>, _>>()?;
    // The types of all values determine the type of the comparison.
    let is_real = values.iter().any(|value| matches!(value, Raw::Double(_)));
    let compared = if is_real { As::Double } else { compared(field.ty) };
    let keys: Vec<i128> = values.iter().map(|value| compared.key(*value)).collect();
    let ranges = match (against, &keys[..]) {
        (Against::Compare(comparison, _), [key]) => Ranges::comparing(*comparison, *key),
        (Against::Between(..), [low, high]) => Ranges::new(vec![(*low, *high)]),
        (_, keys) => Ranges::new(keys.iter().map(|key| (*key, *key)).collect()),
    };
    Ok(Node::Numbers(ComparedNumber { source: source.clone(), compared }, ranges.negated(negated)))
}

/// The number of a literal, for this field.
fn raw(field: &Field, literal: &Literal) -> Result<Raw, PlacedProblem> {
    use Type::{Bool, Double, Duration, Single, Time, Whole};
    let unit = field.unit.as_str();
    let value = match (field.ty, &literal.value) {
        (Whole | Single | Double | Duration, ComparedValue::Whole(value)) => Raw::Whole(*value),
        (Whole | Single | Double | Duration, ComparedValue::Real(value)) => Raw::Double(*value),
        (Duration, ComparedValue::Duration(value)) => Raw::Whole((*value).into()),
        (Whole | Single | Double, ComparedValue::Duration(value)) if unit == "ns" => {
            Raw::Whole((*value).into())
        }
        (Whole | Single | Double, ComparedValue::Size(value))
            if ["", "B", "byte", "bytes"].contains(&unit) =>
        {
            Raw::Whole((*value).into())
        }
        (Bool, ComparedValue::Bool(value)) => Raw::Whole((*value).into()),
        (Time, ComparedValue::Text(text)) => match crate::literal::time(text) {
            Some(ns) => Raw::Whole(ns.into()),
            None => {
                let problem = Problem::NoTime { text: text.clone() };
                return Err(PlacedProblem::new(literal.span.clone(), problem));
            }
        },
        _ => return Err(unfit(field, literal)),
    };
    Ok(value)
}

/// A test of a field of text, bytes or names.
fn test(field: &Field, against: &Against<'_>) -> Result<Test, PlacedProblem> {
    let bytes = |literal: &Literal| match (field.ty, &literal.value) {
        (Type::Text | Type::Enum, ComparedValue::Text(text)) => Ok(text.clone().into_bytes()),
        (Type::Bytes, ComparedValue::Bytes(bytes)) => Ok(bytes.clone()),
        _ => Err(unfit(field, literal)),
    };
    Ok(match against {
        Against::Compare(comparison, with) => Test::Compare(*comparison, bytes(with)?),
        Against::Between(low, high) => Test::Between(bytes(low)?, bytes(high)?),
        Against::In(list) => {
            let mut list = list.iter().map(bytes).collect::<Result<Vec<_>, _>>()?;
            list.sort_unstable();
            Test::In(list)
        }
    })
}

fn unfit(field: &Field, literal: &Literal) -> PlacedProblem {
    let with = match literal.value {
        ComparedValue::Null => return PlacedProblem::new(literal.span.clone(), Problem::Null),
        ComparedValue::Whole(_) | ComparedValue::Real(_) => "a number",
        ComparedValue::Duration(_) => "a duration",
        ComparedValue::Size(_) => "a size in bytes",
        ComparedValue::Text(_) => "text",
        ComparedValue::Bytes(_) => "bytes",
        ComparedValue::Bool(_) => "true or false",
    };
    mismatch(field, with.to_owned(), &Operand::Literal(literal.clone()))
}

fn mismatch(field: &Field, with: String, at: &Operand) -> PlacedProblem {
    let (field, ty, unit) = (field.name.clone(), field.ty, field.unit.clone());
    PlacedProblem::new(at.span().clone(), Problem::Mismatch { field, ty, unit, with })
}
