//! Mistakes of syntax.

use super::names::NameKind;
use crate::wording::{Short, Wording, say};

/// A mistake of syntax.
#[derive(Debug, Clone)]
pub(crate) enum SyntaxMistake {
    OpenComment,
    Expected { expected: String, label: String, found: String, help: Option<String> },
    NotADeclaration { found: String, suggestion: Option<String> },
    NotAnEdge { found: String },
    LaterDeclaration { word: String },
    StrayBrace,
    OpenBrace { kind: NameKind, name: String },
    BadNumber { text: String, fault: NumberFault },
}

impl SyntaxMistake {
    /// The stable name of the rule.
    pub fn code(&self) -> &'static str {
        match self {
            SyntaxMistake::OpenComment => "open-comment",
            SyntaxMistake::Expected { .. } => "syntax",
            SyntaxMistake::NotADeclaration { .. } => "syntax",
            SyntaxMistake::NotAnEdge { .. } => "syntax",
            SyntaxMistake::LaterDeclaration { .. } => "reserved-word",
            SyntaxMistake::StrayBrace => "stray-brace",
            SyntaxMistake::OpenBrace { .. } => "open-brace",
            SyntaxMistake::BadNumber { .. } => "bad-number",
        }
    }

    /// Message, label and help.
    pub fn wording(&self) -> Wording {
        match self {
            SyntaxMistake::OpenComment => say("this comment never ends", "expected `*/` after this")
                .help("everything from here to the end of the file is part of the comment"),
            SyntaxMistake::Expected { expected, label, found, help } => Wording {
                message: format!("expected {expected}, found {found}"),
                label: format!("expected {label}"),
                help: help.clone(),
            },
            SyntaxMistake::NotADeclaration { found, suggestion } => say(
                format!("expected a declaration, found {found}"),
                "expected `emit`, `buffer`, `option`, `enum`, `frame`, `counter`, `histogram` or `edge`",
            )
            .meant(
                suggestion.as_deref(),
                "a frame looks like `frame example { int kind, who; time start, end; }`",
            ),
            SyntaxMistake::NotAnEdge { found } => say(
                format!("expected an edge, found {found}"),
                "expected `edge`, as the file holds nothing else",
            )
            .help("an edge looks like `edge sent -> received within 500ms nearest;`"),
            SyntaxMistake::LaterDeclaration { word } => say(
                format!("`{word}` is reserved for a later version of the frame language"),
                "not supported yet",
            ),
            SyntaxMistake::StrayBrace => say("this `}` closes nothing", "no frame or enum is open here")
                .help("remove it, or look for an extra brace above"),
            SyntaxMistake::OpenBrace { kind, name } => say(
                format!("the {kind} `{}` is not closed", Short(name)),
                "this brace has no partner",
            )
            .help(format!("add `}}` after the last line of `{}`", Short(name))),
            SyntaxMistake::BadNumber { text, fault } => {
                let message = format!("`{}` is not a number here", Short(text));
                match fault {
                    NumberFault::Malformed => say(message, "expected a whole number")
                        .help("numbers are decimal (`16384`, `-1`) or hexadecimal (`0x4000`)"),
                    NumberFault::LeadingZero => say(message, "begins with 0")
                        .help("C would read it as octal: write it without the 0, or as `0x…`"),
                    NumberFault::TooLarge => say(message, "too large for 64 bits"),
                }
            }
        }
    }
}

/// Why a number is invalid.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum NumberFault {
    Malformed,
    LeadingZero,
    TooLarge,
}
