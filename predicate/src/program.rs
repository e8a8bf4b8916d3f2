//! A checked expression over one kind of frame, ready to run.

use crate::ast::Comparison;
use crate::number::ComparedNumber;
use crate::ranges::Ranges;
use crate::row::PredicateRow;
use crate::text_column::{Test, TextColumn};

/// A checked expression over one kind of frame.
#[derive(Debug, Clone)]
pub struct CheckedExpression(pub(crate) Node);

/// A step of a program.
#[derive(Debug, Clone)]
pub(crate) enum Node {
    Constant(bool),
    Numbers(ComparedNumber, Ranges),
    Text {
        of: TextColumn,
        test: Test,
        negated: bool,
    },
    /// The enum values that have a name, and whether they pass; others by their number.
    Enum {
        of: ComparedNumber,
        known: Box<[(i128, bool)]>,
        test: Test,
        negated: bool,
    },
    TwoNumbers(ComparedNumber, Comparison, ComparedNumber),
    TwoTexts(TextColumn, Comparison, TextColumn),
    NumberIsNull(ComparedNumber, bool),
    TextIsNull(TextColumn, bool),
    Not(Box<Node>),
    All(Box<[Node]>),
    Any(Box<[Node]>),
}

impl CheckedExpression {
    /// Whether a frame matches. `None` for SQL's NULL. Only frames with true are selected.
    #[inline]
    pub fn matches(&self, row: &PredicateRow<'_>) -> Option<bool> {
        self.0.holds(row)
    }
}

impl Node {
    #[inline]
    fn holds(&self, row: &PredicateRow<'_>) -> Option<bool> {
        match self {
            Node::Numbers(of, ranges) => of.get(row).map(|value| ranges.has(value)),
            other => other.other(row),
        }
    }

    #[inline(never)]
    fn other(&self, row: &PredicateRow<'_>) -> Option<bool> {
        match self {
            Node::Constant(value) => Some(*value),
            Node::Numbers(of, ranges) => of.get(row).map(|value| ranges.has(value)),
            Node::Text { of, test, negated } => Some(test.holds(&of.get(row)?) != *negated),
            Node::Enum { of, known, test, negated } => {
                let value = of.get(row)?;
                let holds = match known.binary_search_by_key(&value, |entry| entry.0) {
                    Ok(found) => known[found].1,
                    Err(_) => test.holds(value.to_string().as_bytes()),
                };
                Some(holds != *negated)
            }
            Node::TwoNumbers(left, comparison, right) => {
                let (left, right) = (left.get(row), right.get(row));
                Some(comparison.holds(left?.cmp(&right?)))
            }
            Node::TwoTexts(left, comparison, right) => {
                Some(comparison.holds(left.get(row)?.cmp(&right.get(row)?)))
            }
            Node::NumberIsNull(of, negated) => Some(of.get(row).is_none() != *negated),
            Node::TextIsNull(of, negated) => Some(of.get(row).is_none() != *negated),
            Node::Not(of) => of.holds(row).map(|hold| !hold),
            Node::All(all) => decide(all, row, false),
            Node::Any(all) => decide(all, row, true),
        }
    }
}

/// `decisive` if one of `all` has that result, otherwise NULL if one of them is NULL, otherwise the
/// opposite.
fn decide(all: &[Node], row: &PredicateRow<'_>, decisive: bool) -> Option<bool> {
    let mut result = Some(!decisive);
    for node in all {
        match node.holds(row) {
            Some(value) if value == decisive => return Some(decisive),
            Some(_) => {}
            None => result = None,
        }
    }
    result
}
