//! Bounds of SQL that planning survives: expressions that are trees as deep as they are long.

use ppt_predicate::without_units;

use crate::error::QueryError;

/// Operators of one expression. Planning walks the tree of each, several times, by recursion.
pub const MAX_OPERATORS: usize = 500;

/// Words that join two expressions, or two queries.
const WORDS: [&str; 13] = [
    "and",
    "or",
    "not",
    "union",
    "intersect",
    "except",
    "join",
    "like",
    "ilike",
    "between",
    "in",
    "is",
    "at",
];

/// SQL as the engine takes it: numbers have no units, and expressions are not too long.
///
/// # Errors
/// An expression has more than [`MAX_OPERATORS`] operators.
pub fn prepared(text: &str) -> Result<String, QueryError> {
    within_limits(text)?;
    Ok(without_units(text))
}

/// Refuses a text with an expression of more than [`MAX_OPERATORS`] operators. Those of a list are
/// expressions of their own, as are statements.
///
/// # Errors
/// It has one.
pub fn within_limits(text: &str) -> Result<(), QueryError> {
    let count = longest(text);
    match count > MAX_OPERATORS {
        true => Err(QueryError::TooLong { count, most: MAX_OPERATORS }),
        false => Ok(()),
    }
}

/// The operators of the longest expression. A parenthesis counts with what it stands in.
fn longest(text: &str) -> usize {
    let bytes = text.as_bytes();
    // `all` is the sum of `open`: what is open and what is around it are one tree.
    let (mut most, mut all, mut open) = (0usize, 0usize, vec![0usize]);
    // What is before is a value, so that a sign behind it is an operator.
    let mut after_value = false;
    let mut at = 0;
    while let Some(&byte) = bytes.get(at) {
        let rest = &bytes[at..];
        let len = match byte {
            b'\'' | b'"' => {
                let end = rest[1..].iter().position(|it| *it == byte);
                end.map_or(rest.len(), |it| it + 2)
            }
            b'-' if rest.starts_with(b"--") => {
                rest.iter().position(|it| *it == b'\n').unwrap_or(rest.len())
            }
            b'/' if rest.starts_with(b"/*") => {
                rest.windows(2).position(|it| it == b"*/").map_or(rest.len(), |it| it + 2)
            }
            b'_' | b'a'..=b'z' | b'A'..=b'Z' | b'0'..=b'9' | 0x80.. => {
                let is_word = |it: &u8| *it == b'_' || it.is_ascii_alphanumeric() || *it >= 0x80;
                rest.iter().position(|it| !is_word(it)).unwrap_or(rest.len())
            }
            _ => 1,
        };
        let token = &rest[..len];
        at += len;
        if token[0].is_ascii_whitespace() || token.starts_with(b"--") || token.starts_with(b"/*") {
            continue;
        }
        let is_word = WORDS.iter().any(|it| token.eq_ignore_ascii_case(it.as_bytes()));
        let top = open.len() - 1;
        match token[0] {
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
                // An operator of two characters is one.
                if after_value =>
            {
                (open[top], all) = (open[top] + 1, all + 1);
            }
            _ if is_word => (open[top], all) = (open[top] + 1, all + 1),
            _ => {}
        }
        most = most.max(all);
        after_value = !is_word
            && (matches!(token[0], b')' | b']' | b'\'' | b'"' | b'_' | b'*')
                || token[0].is_ascii_alphanumeric()
                || token[0] >= 0x80);
    }
    most
}

#[cfg(test)]
mod tests {
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
            assert_eq!(longest(text), count, "{text}");
        }
        let long = vec!["a"; MAX_OPERATORS + 2].join(" + ");
        assert!(within_limits(&long).is_err());
        assert!(within_limits(&long[4..]).is_ok());
        let listed = vec!["-1"; 100_000].join(",");
        assert!(within_limits(&format!("a IN ({listed})")).is_ok());
        assert!(within_limits(&"(a+".repeat(30_000)).is_err());
    }
}
