//! Expressions over several kinds of frames.

use crate::ast::Expr;
use crate::compile::Compiler;
use crate::error::{ExpressionError, PlacedProblem, Problem};
use crate::fields::ExpressionFields;
use crate::frame_kind::FrameKind;
use crate::parse;
use crate::program::CheckedExpression;

/// A parsed expression, not yet checked against frames.
#[derive(Debug, Clone)]
pub struct Predicate {
    text: String,
    whole: Expr,
}

impl Predicate {
    /// Reads an expression.
    ///
    /// # Errors
    /// Errors that do not depend on a schema: the text is too long or too deep, it is not an
    /// expression, or a literal is invalid.
    pub fn parse(text: &str) -> Result<Predicate, ExpressionError> {
        let whole = parse::parse(text).map_err(|why| why.over(text))?;
        Ok(Predicate { text: text.to_owned(), whole })
    }

    /// Returns the text.
    pub fn text(&self) -> &str {
        &self.text
    }

    /// Checks the expression against kinds of frames. The programs are in the order of `kinds`,
    /// with `None` for a kind that lacks a field.
    ///
    /// # Errors
    /// All kinds lack a field, a field is of another type, or no enum has a value of that name.
    /// Without kinds there is no error.
    pub fn compile(
        &self,
        kinds: &[FrameKind<'_>],
    ) -> Result<Vec<Option<CheckedExpression>>, ExpressionError> {
        self.programs(kinds).map_err(|why| why.over(&self.text))
    }

    fn programs(
        &self,
        kinds: &[FrameKind<'_>],
    ) -> Result<Vec<Option<CheckedExpression>>, PlacedProblem> {
        let mut names = Vec::new();
        self.whole.names(&mut names);
        // By name, why each kind lacks it.
        let mut missing: Vec<Vec<PlacedProblem>> = vec![Vec::new(); names.len()];
        let mut doubts: Option<Vec<PlacedProblem>> = None;
        let mut programs = Vec::new();
        for kind in kinds {
            let fields = ExpressionFields::new(*kind);
            let mut fits = true;
            for (name, missing) in names.iter().zip(&mut missing) {
                if let Err(why) = fields.find(name) {
                    missing.push(why);
                    fits = false;
                }
            }
            if !fits {
                programs.push(None);
                continue;
            }
            let mut compiler = Compiler::new(&fields);
            programs.push(Some(CheckedExpression(compiler.node(&self.whole)?)));
            let own = compiler.doubts;
            doubts = Some(match doubts {
                None => own,
                Some(doubts) => shared(doubts, &own),
            });
        }
        let why = match doubts {
            Some(doubts) => doubts.into_iter().next(),
            None if kinds.is_empty() => None,
            None => {
                Some(match missing.into_iter().find(|problems| problems.len() == kinds.len()) {
                    Some(problems) => unfit(problems),
                    None => PlacedProblem::new(0..self.text.len(), Problem::NoSingleKind),
                })
            }
        };
        why.map_or(Ok(programs), Err)
    }
}

/// The doubts that every kind of frame raises.
fn shared(doubts: Vec<PlacedProblem>, own: &[PlacedProblem]) -> Vec<PlacedProblem> {
    let shared = doubts.into_iter().filter_map(|mut why| {
        let same = own.iter().find(|problem| problem.span == why.span)?;
        if let (Problem::NoValue { available, .. }, Problem::NoValue { available: others, .. }) =
            (&mut why.problem, &same.problem)
        {
            add(available, others);
        }
        Some(why)
    });
    shared.collect()
}

/// Why no kind has a field: the closest match, with all names.
fn unfit(mut problems: Vec<PlacedProblem>) -> PlacedProblem {
    // A kind of that name without the field comes before those of other names.
    problems.sort_by_key(|problem| std::cmp::Reverse(problem.span.start));
    let mut problems = problems.into_iter();
    let mut why = problems.next().expect("there are kinds");
    for other in problems {
        match (&mut why.problem, &other.problem) {
            (Problem::NoField { available, .. }, Problem::NoField { available: others, .. })
            | (Problem::NoKind { available, .. }, Problem::NoKind { available: others, .. }) => {
                add(available, others);
            }
            _ => {}
        }
    }
    why
}

fn add(available: &mut Vec<String>, others: &[String]) {
    for other in others {
        if !available.contains(other) {
            available.push(other.clone());
        }
    }
}
