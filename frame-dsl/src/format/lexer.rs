//! Splits text into words, signs and comments, each with the preceding line breaks.

use crate::text::DecodedText;

/// A word, number, string or sign of the language, or a comment.
#[derive(Debug)]
pub(super) struct Token<'a> {
    pub text: &'a str,
    pub is_comment: bool,
    /// Number of line breaks before this token.
    pub breaks: usize,
}

/// The tokens of a text that parses.
pub(super) fn tokens<'a>(text: &DecodedText<'a>) -> Vec<Token<'a>> {
    let source = text.source;
    let mut comments = text.comments().iter().peekable();
    let mut tokens = Vec::new();
    let mut at = 0;
    loop {
        let start = at + blanks(&source[at..]);
        if start == source.len() {
            return tokens;
        }
        let breaks = source[at..start].matches('\n').count();
        let comment = comments.next_if(|comment| comment.start == start);
        at = match comment {
            Some(comment) => comment.end,
            None => start + code_len(&source[start..]),
        };
        tokens.push(Token { text: &source[start..at], is_comment: comment.is_some(), breaks });
    }
}

fn blanks(rest: &str) -> usize {
    rest.len() - rest.trim_start_matches([' ', '\t', '\r', '\n']).len()
}

/// Bytes of the word, number, string or sign at the start of `rest`.
fn code_len(rest: &str) -> usize {
    let run = |from: usize, fits: fn(char) -> bool| {
        let end = rest[from..].find(|c| !fits(c));
        end.map_or(rest.len(), |end| from + end)
    };
    let in_word = |c: char| c.is_ascii_alphanumeric() || c == '_';
    let in_number = |c: char| c.is_ascii_alphanumeric() || c == '_' || c == '.';
    let mut chars = rest.chars();
    match (chars.next(), chars.next()) {
        (Some('"'), _) => run(1, |c| c != '"' && c != '\n') + 1,
        (Some('-'), Some('>')) => 2,
        (Some('-'), Some('0'..='9')) | (Some('0'..='9'), _) => run(1, in_number),
        (Some('a'..='z' | 'A'..='Z' | '_'), _) => match run(0, in_word) {
            // A language: `C++`.
            end if rest[end..].starts_with("++") => end + 2,
            end => end,
        },
        (first, _) => first.map_or(0, char::len_utf8),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::diagnostic::DiagnosticSink;

    #[test]
    fn words_numbers_strings_signs_comments() {
        let source = "a-1 \"b // c\"C++;\n\n /* d */0x1f// e \n@f(1.5)";
        let text = DecodedText::new(source, &mut DiagnosticSink::default());
        let tokens = tokens(&text);
        let words: Vec<&str> = tokens.iter().map(|token| token.text).collect();
        let expected = "a|-1|\"b // c\"|C++|;|/* d */|0x1f|// e |@|f|(|1.5|)";
        assert_eq!(words.join("|"), expected);
        let breaks: Vec<usize> = tokens.iter().map(|token| token.breaks).collect();
        assert_eq!(breaks, [0, 0, 0, 0, 0, 2, 0, 0, 1, 0, 0, 0, 0]);
        assert_eq!(tokens.iter().filter(|token| token.is_comment).count(), 2);
    }
}
