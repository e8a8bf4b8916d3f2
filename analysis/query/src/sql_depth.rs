//! The nesting depth of a text of SQL.

/// The largest depth of parentheses, brackets, CASEs and signs. The parser and planning descend by
/// recursion.
pub const MAX_NESTING: usize = 40;

/// The largest depth of queries, or of calls such as CAST. Each level may double the time of planning, or of
/// searching for a mistake.
pub const MAX_QUERIES: usize = 10;

/// The recursion limit of the parser, with enough steps for every level of nesting. With less, the parser
/// would refuse a text by an error message of its own.
pub(crate) const RECURSION: usize = 10 * MAX_NESTING;

/// Calls with keywords in them, which the parser tries to read in more than one way.
const SLOW_CALLS: [&str; 10] = [
    "cast",
    "try_cast",
    "safe_cast",
    "convert",
    "position",
    "substring",
    "overlay",
    "ceil",
    "floor",
    "trim",
];

/// Keywords before an operand, or before a statement.
const PREFIXES: [&str; 6] = ["not", "interval", "explain", "analyze", "verbose", "prior"];

/// Keywords that a query begins with.
const QUERIES: [&str; 4] = ["select", "with", "values", "from"];

/// Keywords that join two expressions, or two queries.
pub(crate) const JOINING: [&str; 13] = [
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

/// A word, a text in quotes, or a character.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Token<'a>(pub &'a [u8]);

impl Token<'_> {
    pub fn is_one_of(self, words: &[&str]) -> bool {
        words.iter().any(|word| self.0.eq_ignore_ascii_case(word.as_bytes()))
    }

    /// Whether it ends an operand, so that an operator may follow it.
    pub fn is_value(self) -> bool {
        !self.is_one_of(&JOINING)
            && (matches!(self.0[0], b')' | b']' | b'\'' | b'"' | b'_' | b'*')
                || self.0[0].is_ascii_alphanumeric()
                || self.0[0] >= 0x80)
    }
}

/// The tokens of a text, without spaces and comments.
pub(crate) fn tokens(text: &str) -> impl Iterator<Item = Token<'_>> {
    let mut rest = text.as_bytes();
    std::iter::from_fn(move || {
        loop {
            let byte = *rest.first()?;
            let len = match byte {
                b'\'' | b'"' => {
                    let end = rest[1..].iter().position(|other| *other == byte);
                    end.map_or(rest.len(), |end| end + 2)
                }
                b'-' if rest.starts_with(b"--") => {
                    rest.iter().position(|byte| *byte == b'\n').unwrap_or(rest.len())
                }
                b'/' if rest.starts_with(b"/*") => {
                    rest.windows(2).position(|pair| pair == b"*/").map_or(rest.len(), |at| at + 2)
                }
                b'_' | b'a'..=b'z' | b'A'..=b'Z' | b'0'..=b'9' | 0x80.. => {
                    let is_word =
                        |byte: &u8| *byte == b'_' || byte.is_ascii_alphanumeric() || *byte >= 0x80;
                    rest.iter().position(|byte| !is_word(byte)).unwrap_or(rest.len())
                }
                _ => 1,
            };
            let (token, after) = rest.split_at(len);
            rest = after;
            let is_comment = token.starts_with(b"--") || token.starts_with(b"/*");
            if !token[0].is_ascii_whitespace() && !is_comment {
                return Some(Token(token));
            }
        }
    })
}

/// A nesting depth.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) struct Nesting {
    /// Parentheses, brackets, CASEs, and signs before an operand.
    pub levels: usize,
    /// Queries, and calls that are read in more than one way.
    pub queries: usize,
}

/// An open bracket or CASE.
#[derive(Debug, Clone, Copy)]
struct OpenBracket {
    is_case: bool,
    /// The nesting within it.
    nesting: Nesting,
}

impl Nesting {
    /// The greatest depths of a text.
    pub fn deepest(text: &str) -> Nesting {
        let (mut deepest, mut open): (Nesting, Vec<OpenBracket>) = (Nesting::default(), Vec::new());
        // Signs and prefixes that wait for their operand.
        let mut signs = 0;
        let mut before: Option<Token<'_>> = None;
        for token in tokens(text) {
            let mut around = open.last().map_or(Nesting::default(), |outer| outer.nesting);
            let is_case = token.is_one_of(&["case"]);
            match token.0[0] {
                b'(' | b'[' | b'{' => {
                    around.levels += 1 + signs;
                    around.queries +=
                        usize::from(before.is_some_and(|token| token.is_one_of(&SLOW_CALLS)));
                    open.push(OpenBracket { is_case, nesting: around });
                    signs = 0;
                }
                b')' | b']' | b'}' => {
                    // A CASE without END ends here, too.
                    while open.pop().is_some_and(|inner| inner.is_case) {}
                    signs = 0;
                }
                b';' => {
                    open.clear();
                    signs = 0;
                }
                b'-' | b'+' | b'~' | b'!' | b'@' if !before.is_some_and(Token::is_value) => {
                    signs += 1;
                }
                _ if token.is_one_of(&PREFIXES) => signs += 1,
                _ if is_case => {
                    around.levels += 1 + signs;
                    open.push(OpenBracket { is_case, nesting: around });
                    signs = 0;
                }
                _ if token.is_one_of(&["end"]) => {
                    if open.last().is_some_and(|inner| inner.is_case) {
                        open.pop();
                    }
                    signs = 0;
                }
                _ if token.is_one_of(&QUERIES) && before.is_some_and(|token| token.0 == b"(") => {
                    if let Some(query) = open.last_mut() {
                        query.nesting.queries += 1;
                    }
                    signs = 0;
                }
                _ => signs = 0,
            }
            let here = open.last().map_or(Nesting::default(), |outer| outer.nesting);
            deepest.levels = deepest.levels.max(here.levels + signs);
            deepest.queries = deepest.queries.max(here.queries);
            before = Some(token);
        }
        deepest
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nesting_is_counted() {
        let all = [
            ("SELECT a FROM t", 0, 0),
            ("SELECT ((a)), (b)", 2, 0),
            ("SELECT [a, [b]], c[d[1]]", 2, 0),
            ("SELECT {'a': {'b': 1}}", 2, 0),
            ("CASE WHEN CASE a WHEN 1 THEN 2 END = 2 THEN CASE WHEN b THEN 3 END END", 2, 0),
            ("(CASE WHEN a) + (CASE WHEN b THEN 1 END)", 2, 0),
            ("NOT NOT a AND NOT b", 2, 0),
            ("- - 1 - - - 2", 2, 0),
            ("NOT (NOT (a))", 4, 0),
            ("a IS NOT NULL", 1, 0),
            ("EXPLAIN ANALYZE SELECT 1", 2, 0),
            ("SELECT '((((' -- ((((\n FROM \"((\" /* (( */", 0, 0),
            ("SELECT (SELECT 1), (SELECT (SELECT 2))", 2, 2),
            ("SELECT * FROM (WITH a AS (SELECT 1) SELECT * FROM a)", 2, 2),
            ("CAST(cast(a AS INT) AS TEXT) || cast(b AS TEXT)", 2, 2),
            ("((a; ((b", 2, 0),
            ("))) end (a)", 1, 0),
        ];
        for (text, levels, queries) in all {
            assert_eq!(Nesting::deepest(text), Nesting { levels, queries }, "{text}");
        }
    }
}
