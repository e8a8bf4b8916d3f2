//! The canonical form of a frame file. Only white space changes: every word, sign and comment
//! stays, in the same order.
//!
//! Each declaration, field line and enum value has its own line. Braces indent by four spaces.
//! There is at most one empty line in a row. A block that was on one line from `{` to `}` stays on
//! one line if it fits. A comment at the start of a line stays there, and so does a comment at the
//! end of one.

mod lexer;
mod lines;

use crate::compile::{CompileFailure, decode};
use crate::diagnostic::DiagnosticSink;
use crate::parse::parse;
use crate::text::DecodedText;
use lexer::{Token, tokens};
use lines::{FormattedLines, WIDTH, width};

const INDENT: usize = 4;

/// Returns the canonical form of a frame file. It has the line ends of the first line, no byte
/// order mark, and the same schema. `file_name` appears in diagnostics.
///
/// # Errors
/// The file is not in the frame language. Semantic mistakes (an unknown type, a reserved name) do
/// not prevent formatting.
pub fn format(source: &[u8], file_name: &str) -> Result<String, CompileFailure> {
    let mut sink = DiagnosticSink::default();
    let decoded = decode(source, &mut sink);
    let mut formatted = String::new();
    if !sink.has_errors() {
        let text = DecodedText::new(&decoded, &mut sink);
        parse(&text, &mut sink);
        if !sink.has_errors() {
            formatted = Printer::new(&tokens(&text)).print();
        }
    }
    if sink.has_errors() {
        return Err(CompileFailure::new(sink.finish(), file_name, decoded));
    }
    let crlf = decoded.find('\n').is_some_and(|at| decoded[..at].ends_with('\r'));
    Ok(if crlf { formatted.replace('\n', "\r\n") } else { formatted })
}

/// The kind of the declaration with open braces.
#[derive(Clone, Copy, PartialEq, Eq)]
enum OpenDeclaration {
    Enum,
    Frame,
}

/// How a token follows the previous one.
enum Join {
    Glued,
    Spaced,
    /// A new line for a declaration, field or value.
    Line {
        empty_before: bool,
    },
    /// A continuation line.
    Continued,
}

struct Printer<'a> {
    tokens: &'a [Token<'a>],
    /// For each token, the first one from there on that is not a comment.
    code: Vec<Option<&'a str>>,
    lines: FormattedLines,
    /// The open braces.
    block: Option<OpenDeclaration>,
    /// Whether all of the open braces fit on one line.
    flat: bool,
    in_brackets: bool,
    /// The word that the current declaration begins with.
    declaration: &'a str,
    /// Whether the next word begins a line.
    boundary: bool,
    /// Whether the line so far consists of comments only.
    only_comments: bool,
}

impl<'a> Printer<'a> {
    fn new(tokens: &'a [Token<'a>]) -> Printer<'a> {
        let mut code = vec![None; tokens.len() + 1];
        for (index, token) in tokens.iter().enumerate().rev() {
            code[index] = if token.is_comment { code[index + 1] } else { Some(token.text) };
        }
        Printer {
            tokens,
            code,
            lines: FormattedLines::default(),
            block: None,
            flat: false,
            in_brackets: false,
            declaration: "",
            boundary: true,
            only_comments: false,
        }
    }

    fn print(mut self) -> String {
        for (index, token) in self.tokens.iter().enumerate() {
            let join = self.join(index);
            self.only_comments =
                token.is_comment && (self.only_comments || matches!(join, Join::Line { .. }));
            let indent = if self.block.is_some() && token.text != "}" { INDENT } else { 0 };
            match join {
                Join::Line { empty_before } => self.lines.begin(indent, empty_before),
                Join::Continued => self.lines.begin(indent + INDENT, false),
                Join::Spaced => self.lines.space(),
                Join::Glued => {}
            }
            if token.is_comment {
                self.lines.comment(token.text);
            } else {
                self.lines.code(token.text);
                self.after(index);
            }
        }
        self.lines.finish()
    }

    fn join(&self, index: usize) -> Join {
        let token = &self.tokens[index];
        let Some(before) = index.checked_sub(1).map(|before| &self.tokens[before]) else {
            return Join::Line { empty_before: false };
        };
        let broken = token.breaks > 0;
        let opens = !before.is_comment && before.text == "{";
        let line = Join::Line { empty_before: token.breaks > 1 && !opens };
        let closes = self.block.is_some() && self.code[index] == Some("}");
        let boundary = self.boundary || (closes && !self.flat);
        if token.is_comment {
            return match (broken, boundary) {
                (false, _) => Join::Spaced,
                (true, true) => line,
                (true, false) => Join::Continued,
            };
        }
        match token.text {
            ";" if !before.is_comment || !broken => Join::Glued,
            "}" if self.flat && opens => Join::Glued,
            "}" if self.flat => Join::Spaced,
            "}" => Join::Line { empty_before: false },
            _ if boundary && self.only_comments && !broken => Join::Spaced,
            _ if boundary && self.flat => Join::Spaced,
            _ if boundary => line,
            _ if before.is_comment && broken => Join::Continued,
            _ if !self.flat && self.may_break_after(before) && !self.fits(index) => Join::Continued,
            text if before.is_comment => {
                if matches!(text, "," | ")" | "]") {
                    Join::Glued
                } else {
                    Join::Spaced
                }
            }
            text => spacing(before.text, text),
        }
    }

    fn after(&mut self, index: usize) {
        let token = self.tokens[index].text;
        if self.boundary && self.block.is_none() && token != ";" {
            self.declaration = token;
        }
        let was_boundary = std::mem::replace(&mut self.boundary, false);
        match (self.block, token) {
            (_, "(") => self.in_brackets = true,
            (_, ")") => self.in_brackets = false,
            (None, "{") => {
                let block = if self.declaration == "enum" {
                    OpenDeclaration::Enum
                } else {
                    OpenDeclaration::Frame
                };
                self.block = Some(block);
                self.flat = self.is_flat(index);
                self.boundary = true;
            }
            (Some(_), "}") => {
                self.block = None;
                self.flat = false;
                self.boundary = true;
            }
            (None | Some(OpenDeclaration::Frame), ";") => self.boundary = true,
            (Some(OpenDeclaration::Enum), ",") => self.boundary = true,
            // `emit` needs no semicolon: it ends with the last language.
            (None, _) if self.declaration == "emit" && !was_boundary && token != "," => {
                self.boundary = !matches!(self.code[index + 1], Some("," | ";"));
            }
            _ => {}
        }
    }

    fn may_break_after(&self, token: &Token<'_>) -> bool {
        !token.is_comment && token.text == "," && !self.in_brackets
    }

    /// Whether the list element that begins there fits into the line, with the comma after it.
    fn fits(&self, index: usize) -> bool {
        let mut brackets = 0;
        let ends = |token: &Token<'_>| {
            match token.text {
                "(" => brackets += 1,
                ")" => brackets -= 1,
                _ => {}
            }
            token.is_comment || token.text == ";" || (token.text == "," && brackets == 0)
        };
        let rest = &self.tokens[index..];
        let length = rest.iter().position(ends).unwrap_or(0);
        // A comment may exceed the line width.
        let piece = &rest[..length + usize::from(!rest[length].is_comment)];
        self.lines.column() + 1 + flat_width(piece) <= WIDTH
    }

    /// Whether the block that this brace opens is put on one line.
    fn is_flat(&self, open: usize) -> bool {
        let rest = &self.tokens[open + 1..];
        let close = rest.iter().position(|token| !token.is_comment && token.text == "}");
        let Some(close) = close else { return false };
        let inside = &rest[..=close];
        let one_line = |token: &Token<'_>| token.breaks == 0 && !token.text.contains('\n');
        close == 0
            || (inside.iter().all(one_line)
                && self.lines.column() + 1 + flat_width(inside) <= WIDTH)
    }
}

/// Characters of tokens on one line.
fn flat_width(tokens: &[Token<'_>]) -> usize {
    let gap = |pair: &[Token<'_>]| {
        let comments = pair.iter().any(|token| token.is_comment);
        usize::from(comments || matches!(spacing(pair[0].text, pair[1].text), Join::Spaced))
    };
    let gaps: usize = tokens.windows(2).map(gap).sum();
    gaps + tokens.iter().map(|token| width(token.text)).sum::<usize>()
}

/// The spacing between two words or signs on one line.
fn spacing(before: &str, after: &str) -> Join {
    match (before, after) {
        (_, "," | ";" | "(" | ")" | "[" | "]" | ".") | ("(" | "[" | "@" | ".", _) => Join::Glued,
        _ => Join::Spaced,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn becomes(source: &str, expected: &str) {
        let once = format(source.as_bytes(), "a.frame").unwrap();
        assert_eq!(once, expected);
        assert_eq!(format(once.as_bytes(), "a.frame").unwrap(), expected, "a second time");
    }

    #[test]
    fn words_and_signs() {
        becomes(
            "emit C ,C++\nemit Rust  option   time ns\tmonotonic ;buffer b\n0x10\n;;\n\
             enum E:u8{A=-1,B}\nframe f@group( net )@x{int a [ 3 ],b @ unit(\"a ; b\",2);};",
            "emit C, C++\nemit Rust\noption time ns monotonic;\nbuffer b 0x10;;\n\
             enum E : u8 { A = -1, B }\nframe f @group(net) @x { int a[3], b @unit(\"a ; b\", 2); };\n",
        );
        becomes(
            "edge a->client.b  within 1.5ms\n nearest ;edge c.d -> e;",
            "edge a -> client.b within 1.5ms nearest;\nedge c.d -> e;\n",
        );
        becomes("", "");
        becomes("\n\n// only\n\n", "// only\n");
    }

    #[test]
    fn blocks_of_several_lines() {
        becomes(
            "enum E {\nA, B = 2,\n\n\n\nC }\nframe f { int a; int b;\n\n}\n\n\nframe g {\n}",
            "enum E {\n    A,\n    B = 2,\n\n    C\n}\nframe f {\n    int a;\n    int b;\n}\n\n\
             frame g {}\n",
        );
    }

    #[test]
    fn long_lines() {
        let names: Vec<String> = (0..30).map(|number| format!("field{number:02}")).collect();
        let list = |names: &[String]| names.join(", ");
        becomes(
            &format!("frame f {{ int {}; }}", list(&names)),
            &format!(
                "frame f {{\n    int {},\n        {},\n        {};\n}}\n",
                list(&names[..10]),
                list(&names[10..20]),
                list(&names[20..]),
            ),
        );
    }

    #[test]
    fn comments_stay_where_they_are() {
        becomes(
            "/* a */ frame f { // b\n/// c\nint d, // e\n/// g\n h /* i */ [ 2 ]/*j*/; /* k */ int l; // m\n\
             \n // n\n}// o\n// p",
            "/* a */ frame f { // b\n    /// c\n    int d, // e\n        /// g\n        \
             h /* i */ [2] /*j*/; /* k */\n    int l; // m\n\n    // n\n} // o\n// p\n",
        );
        becomes(
            "enum E { A, // a\nB // b\n// c\n}",
            "enum E {\n    A, // a\n    B  // b\n    // c\n}\n",
        );
        becomes(
            "emit C // a\n// b\n;frame f{int/**/a;}",
            "emit C // a\n    // b\n    ;\nframe f { int /**/ a; }\n",
        );
    }

    #[test]
    fn comments_of_several_lines() {
        becomes(
            "frame f {\n  /* a\n   * b  \n\n   */\n  int a;\n/* c\nd */ int e; }",
            "frame f {\n    /* a\n   * b\n\n   */\n    int a;\n    /* c\nd */ int e;\n}\n",
        );
        becomes("  /* a\n * b\n      */\nframe f {}", "/* a\n * b\n */\nframe f {}\n");
    }

    #[test]
    fn comments_after_lines_stand_in_a_column() {
        becomes(
            "emit C; // a\nbuffer b 16; // c\n\nframe f { // d\nint a; // e\nlonger_than_that b; // g\nint h;\n}",
            "emit C;      // a\nbuffer b 16; // c\n\nframe f { // d\n    int a;              // e\n    \
             longer_than_that b; // g\n    int h;\n}\n",
        );
        // Comments of very different lines are not aligned.
        let long = "x".repeat(40);
        becomes(
            &format!("frame f {{\n    int a; // b\n    int {long}; // c\n}}\n"),
            &format!("frame f {{\n    int a; // b\n    int {long}; // c\n}}\n"),
        );
    }

    #[test]
    fn line_ends_and_byte_order_marks() {
        becomes(
            "\u{feff}frame f {\r\nint a;/* b \r\n c */\r\n}",
            "frame f {\r\n    int a; /* b\r\n c */\r\n}\r\n",
        );
        becomes("frame f {\nint a;\r\n}\r\n", "frame f {\n    int a;\n}\n");
    }

    #[test]
    fn what_does_not_parse_is_refused() {
        let failure = format(b"frame f { int a }", "a.frame").unwrap_err();
        assert!(failure.to_string().contains("expected `;`"), "{failure}");
        assert!(format(b"frame f { itn a; }", "a.frame").is_ok(), "parses");
        for source in [&b"\xff"[..], b"frame f { int a; } /*", b"frame f {", b"\0"] {
            assert!(format(source, "a.frame").is_err(), "{source:?}");
        }
    }
}
