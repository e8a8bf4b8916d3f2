//! Limits for SQL, so that the parser and planning do not overflow the stack: an expression is a tree as
//! deep as the expression is long.

use std::collections::VecDeque;

use datafusion::sql::parser::{DFParserBuilder, Statement};
use ppt_predicate::without_units;

use crate::error::QueryError;
use crate::sql_depth::{JOINING, MAX_NESTING, MAX_QUERIES, Nesting, RECURSION, tokens};

/// The largest number of operators in one expression. Planning walks its tree several times, by recursion.
pub const MAX_OPERATORS: usize = 500;

/// Prepares SQL for the engine: removes the units of numbers, and refuses expressions that are too long
/// or too deep.
///
/// # Errors
/// [`QueryError::TooLong`]: an expression has more than [`MAX_OPERATORS`] operators. [`QueryError::TooDeep`]:
/// queries or parentheses are nested too deeply.
pub fn prepared(text: &str) -> Result<String, QueryError> {
    within_limits(text)?;
    Ok(without_units(text))
}

/// The statements of a text that [`prepared`] returned.
///
/// # Errors
/// The text is not valid SQL.
pub fn parsed(prepared: &str) -> Result<VecDeque<Statement>, QueryError> {
    let parser = DFParserBuilder::new(prepared).with_recursion_limit(RECURSION).build();
    Ok(parser.and_then(|mut parser| parser.parse_statements())?)
}

/// Refuses a text with an expression of more than [`MAX_OPERATORS`] operators, and one that nests deeper
/// than [`MAX_NESTING`] or [`MAX_QUERIES`]. Each element of a list counts as an expression of its own,
/// and so does each statement.
///
/// # Errors
/// The text has such an expression.
pub fn within_limits(text: &str) -> Result<(), QueryError> {
    let count = most_operators(text);
    if count > MAX_OPERATORS {
        return Err(QueryError::TooLong { count, limit: MAX_OPERATORS });
    }
    let deepest = Nesting::deepest(text);
    if deepest.queries > MAX_QUERIES {
        let constructs = "queries, or calls such as CAST,";
        return Err(QueryError::TooDeep { constructs, depth: deepest.queries, limit: MAX_QUERIES });
    }
    if deepest.levels > MAX_NESTING {
        let constructs = "parentheses, brackets, CASEs or signs";
        return Err(QueryError::TooDeep { constructs, depth: deepest.levels, limit: MAX_NESTING });
    }
    Ok(())
}

/// The number of operators in the longest expression. Operators in parentheses count for the expression
/// around them, too.
fn most_operators(text: &str) -> usize {
    // `all` is the sum of `open`: an open parenthesis and what is around it are one tree.
    let (mut most, mut all, mut open) = (0usize, 0usize, vec![0usize]);
    // Whether the token before is a value, so that a sign after it is an operator.
    let mut after_value = false;
    for token in tokens(text) {
        let top = open.len() - 1;
        match token.0[0] {
            b'(' => open.push(0),
            b'[' => {
                (open[top], all) = (open[top] + 1, all + 1);
                open.push(0);
            }
            b')' | b']' if top > 0 => {
                let inner = open.pop().unwrap_or_default();
                open[top - 1] += inner;
            }
            b',' => all -= std::mem::take(&mut open[top]),
            b';' => (all, open) = (0, vec![0]),
            b'-' | b'+' if !after_value => {}
            b'=' | b'<' | b'>' | b'!' | b'|' | b'&' | b'^' | b'~' | b'#' | b'+' | b'-' | b'*' | b'/'
            | b'%' | b':'
                // The second character of an operator does not follow a value, so it is not counted again.
                if after_value =>
            {
                (open[top], all) = (open[top] + 1, all + 1);
            }
            _ if token.is_one_of(&JOINING) => (open[top], all) = (open[top] + 1, all + 1),
            _ => {}
        }
        most = most.max(all);
        after_value = token.is_value();
    }
    most
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn operators_of_the_longest_expression_count() {
        let all = [
            ("SELECT a FROM t", 0),
            ("SELECT a + b - c FROM t WHERE x >= -1", 3),
            ("a IN (1, -2, +3, 'x OR y OR z')", 1),
            ("a[1][2] IS NULL", 3),
            ("a::INT::TEXT", 2),
            ("(a OR b) AND (c OR d)", 3),
            ("f(a + b, c + d + e) + 1", 3),
            ("a = 1 -- OR b OR c\n OR \"OR\" = 2 /* OR */", 3),
            ("a + b; c + d", 1),
            ("SELECT 1 UNION ALL SELECT 2 UNION SELECT 3", 2),
            ("a or b And not c", 3),
            ("a <> 1", 1),
            ("((((a))))", 0),
            ("'", 0),
            (")))) + 1", 1),
        ];
        for (text, count) in all {
            assert_eq!(most_operators(text), count, "{text}");
        }
        let long = vec!["a"; MAX_OPERATORS + 2].join(" + ");
        assert!(within_limits(&long).is_err());
        assert!(within_limits(&long[4..]).is_ok());
        let listed = vec!["-1"; 100_000].join(",");
        assert!(within_limits(&format!("a IN ({listed})")).is_ok());
        assert!(within_limits(&"(a+".repeat(30_000)).is_err());
    }

    /// The stack of a thread that answers a query. A test's own thread has too little for a parser that
    /// is not optimised.
    const STACK: usize = 32 << 20;

    proptest! {
        /// The parser never reports that it went too deep, whatever the nesting.
        #[test]
        fn text_within_the_limits_is_parsed(levels in proptest::collection::vec(0usize..16, 0..44)) {
            const NESTS: [(&str, &str); 16] = [
                ("(", ")"),
                ("a OR b AND NOT c = d + e * (", ")"),
                ("CASE WHEN ", " THEN 1 END"),
                ("CASE a WHEN 1 THEN 2 ELSE ", " END"),
                ("NOT ", ""),
                ("- ", ""),
                ("f(1, ", ")"),
                ("[", "]"),
                ("a[", "]"),
                ("{'a': ", "}"),
                ("CAST(", " AS INT)"),
                ("a BETWEEN 1 AND (", ")"),
                ("a IN (1, ", ")"),
                ("(SELECT ", ")"),
                ("EXISTS (SELECT 1 FROM (SELECT 2) WHERE ", ")"),
                ("INTERVAL ", ""),
            ];
            let opened: String = levels.iter().map(|&level| NESTS[level].0).collect();
            let closed: String = levels.iter().rev().map(|&level| NESTS[level].1).collect();
            let text = format!("SELECT {opened}1{closed}");
            if within_limits(&text).is_ok() {
                let is_deep = || {
                    parsed(&text).is_err_and(|error| matches!(error, QueryError::TooDeep { .. }))
                };
                let thread = std::thread::Builder::new().stack_size(STACK);
                let too_deep =
                    std::thread::scope(|scope| thread.spawn_scoped(scope, is_deep).unwrap().join());
                prop_assert!(!too_deep.unwrap(), "{}", text);
            }
        }
    }
}
