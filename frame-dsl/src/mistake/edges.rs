//! Mistakes in edges.

use crate::edge::MAX_EDGES;
use crate::wording::{Short, Wording, say};

/// A mistake in an edge.
#[derive(Debug, Clone)]
pub(crate) enum EdgeMistake {
    TooManyEdges { count: usize },
    EdgeTwice { from: String, to: String, same: bool },
    EdgeOfNoPoint { name: String },
    NoSuchPoint { buffer: String, name: String, suggestion: Option<String> },
    EdgeNeverMatches { from: String, to: String, out: Vec<String>, ins: Vec<String> },
    BadDuration { text: String, fault: DurationFault },
    UnknownPolicy { word: String, suggestion: Option<&'static str> },
}

impl EdgeMistake {
    /// The stable name of the rule.
    pub fn code(&self) -> &'static str {
        match self {
            EdgeMistake::TooManyEdges { .. } => "too-many-edges",
            EdgeMistake::EdgeTwice { .. } => "edge-twice",
            EdgeMistake::EdgeOfNoPoint { .. } => "edge-end",
            EdgeMistake::NoSuchPoint { .. } => "edge-end",
            EdgeMistake::EdgeNeverMatches { .. } => "edge-types",
            EdgeMistake::BadDuration { .. } => "bad-duration",
            EdgeMistake::UnknownPolicy { .. } => "unknown-policy",
        }
    }

    /// Message, label and help.
    pub fn wording(&self) -> Wording {
        match self {
            EdgeMistake::TooManyEdges { count } => say(
                format!("{count} edges; a file has at most {MAX_EDGES}"),
                "the first one too many",
            ),
            EdgeMistake::EdgeTwice { from, to, same } => {
                let ends = format!("{} -> {}", Short(from), Short(to));
                match same {
                    true => say(format!("the edge `{ends}` is there twice"), "given again here"),
                    false => say(
                        format!("the edge `{ends}` says two things"),
                        "something else than before",
                    ),
                }
            }
            EdgeMistake::EdgeOfNoPoint { name } => {
                say(format!("`{}` is a frame, but no point", Short(name)), "expected a point")
                    .help(format!("write `frame {} @point {{ … }}`", Short(name)))
            }
            EdgeMistake::NoSuchPoint { buffer, name, suggestion } => say(
                format!("the buffer `{}` has no frame `{}`", Short(buffer), Short(name)),
                "expected a point of this file",
            )
            .meant(suggestion.as_deref(), "points of other programs have another buffer"),
            EdgeMistake::EdgeNeverMatches { from, to, out, ins } => {
                let list = |types: &[String]| match types {
                    [] => "nothing".to_owned(),
                    types => format!("`{}`", types.join("`, `")),
                };
                say(
                    format!(
                        "nothing that goes out of `{}` comes into `{}`",
                        Short(from),
                        Short(to)
                    ),
                    format!("{} goes out, {} comes in", list(out), list(ins)),
                )
                .help("data is the same on both sides if `@out` and `@in` name one hash type")
            }
            EdgeMistake::BadDuration { text, fault } => {
                let said = match fault {
                    DurationFault::NoUnit => {
                        say(format!("`{}` has no unit", Short(text)), "expected a unit after this")
                    }
                    DurationFault::UnknownUnit(_) => say(
                        format!("`{}` has an unknown unit", Short(text)),
                        "not a length of time",
                    ),
                    DurationFault::Malformed => say(
                        format!("`{}` is not a length of time", Short(text)),
                        "expected whole nanoseconds",
                    ),
                    DurationFault::Zero => {
                        say("nothing follows within no time", "expected a length of time above 0")
                    }
                    DurationFault::TooLong => {
                        say(format!("`{}` is too long", Short(text)), "more than 292 years")
                    }
                };
                let meant = match fault {
                    DurationFault::UnknownUnit(suggestion) => *suggestion,
                    _ => None,
                };
                said.meant(meant, "units are ns, us, ms, s, min and h: `within 500ms`")
            }
            EdgeMistake::UnknownPolicy { word, suggestion } => say(
                format!("there is no policy `{}`", Short(word)),
                "expected `all`, `nearest` or `fifo`",
            )
            .meant(
                *suggestion,
                "`all` takes every match, `nearest` the latest cause, `fifo` one after the other",
            ),
        }
    }
}

/// Why a duration is invalid.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum DurationFault {
    NoUnit,
    UnknownUnit(Option<&'static str>),
    Malformed,
    Zero,
    TooLong,
}
