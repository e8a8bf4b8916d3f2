//! Patterns of LIKE: `%` matches any text, `_` any character, `\` escapes them.

/// A pattern.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Pattern(Vec<Piece>);

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Piece {
    Any,
    One,
    Char(char),
}

impl Pattern {
    pub fn new(text: &str) -> Pattern {
        let mut pieces = Vec::new();
        let mut chars = text.chars().peekable();
        while let Some(it) = chars.next() {
            pieces.push(match it {
                '%' => Piece::Any,
                '_' => Piece::One,
                '\\' => Piece::Char(chars.next_if(|c| ['%', '_', '\\'].contains(c)).unwrap_or(it)),
                it => Piece::Char(it),
            });
        }
        pieces.dedup_by(|one, other| (*one, *other) == (Piece::Any, Piece::Any));
        Pattern(pieces)
    }

    /// Whether the whole of `text` matches. Takes at most the product of both lengths.
    pub fn fits(&self, text: &str) -> bool {
        let pieces = &self.0;
        let mut rest = text.chars();
        let mut piece = 0;
        // Where to continue if the part after the last `%` does not match: `%` takes one more
        // character.
        let mut again: Option<(usize, std::str::Chars<'_>)> = None;
        loop {
            let mut after = rest.clone();
            let fits = match (pieces.get(piece), after.next()) {
                (Some(Piece::Any), _) => {
                    again = Some((piece + 1, rest.clone()));
                    piece += 1;
                    continue;
                }
                (None, None) => return true,
                (Some(Piece::One), Some(_)) => true,
                (Some(Piece::Char(wanted)), Some(found)) => *wanted == found,
                _ => false,
            };
            if fits {
                (piece, rest) = (piece + 1, after);
                continue;
            }
            let Some((from, text)) = &mut again else { return false };
            if text.next().is_none() {
                return false;
            }
            (piece, rest) = (*from, text.clone());
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn patterns() {
        let fits = |pattern: &str, text: &str| Pattern::new(pattern).fits(text);
        for (pattern, text) in [
            ("", ""),
            ("%", ""),
            ("%%", "abc"),
            ("a%", "a"),
            ("%c", "abc"),
            ("a_c", "aüc"),
            ("%b%d", "abcbd"),
            ("a\\%", "a%"),
            ("a\\_c", "a_c"),
            ("\\\\", "\\"),
            ("a\\b", "a\\b"),
            ("a\\", "a\\"),
            ("%aab", "aaaab"),
        ] {
            assert!(fits(pattern, text), "{pattern} {text}");
        }
        for (pattern, text) in
            [("", "a"), ("_", ""), ("a", "A"), ("a%b", "abc"), ("a\\%", "ab"), ("%a_", "aa b")]
        {
            assert!(!fits(pattern, text), "{pattern} {text}");
        }
    }

    #[test]
    fn a_hostile_pattern_takes_no_exponential_time() {
        assert!(!Pattern::new(&"%a".repeat(200)).fits(&"a".repeat(199)));
        assert!(!Pattern::new(&format!("{}b", "%a".repeat(100))).fits(&"a".repeat(4000)));
    }
}
