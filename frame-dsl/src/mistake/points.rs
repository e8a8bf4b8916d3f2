//! Mistakes in points.

use crate::role::MAX_IDENTITIES;
use crate::wording::{Short, Wording, say};

/// A mistake in a point.
#[derive(Debug, Clone)]
pub(crate) enum PointMistake {
    SideOfPlain { side: &'static str, name: String },
    SideOfNoHash { side: &'static str },
    SideTwice { side: &'static str, ty: String, name: String },
    TooManySides { side: &'static str },
    NoSides { name: String },
    TwoWidths { ty: String },
}

impl PointMistake {
    /// The stable name of the rule.
    pub fn code(&self) -> &'static str {
        match self {
            PointMistake::SideOfPlain { .. } => "side-place",
            PointMistake::SideOfNoHash { .. } => "side-place",
            PointMistake::SideTwice { .. } => "side-twice",
            PointMistake::TooManySides { .. } => "too-many-sides",
            PointMistake::NoSides { .. } => "no-side",
            PointMistake::TwoWidths { .. } => "hash-type",
        }
    }

    /// Message, label and help.
    pub fn wording(&self) -> Wording {
        match self {
            PointMistake::SideOfPlain { side, name } => {
                say(format!("`@{side}` belongs to a field of a point"), "this frame is none")
                    .help(format!("write `frame {} @point {{ … }}`", Short(name)))
            }
            PointMistake::SideOfNoHash { side } => say(
                format!("`@{side}` belongs to a field of type `hash` or `hash128`"),
                "identifies nothing",
            )
            .help(
                "`hash` is of the bytes that identify it; `hash … @raw` is a number that does so \
                 as it is",
            ),
            PointMistake::SideTwice { side, ty, name } => say(
                format!("the point `{}` has `@{side}({})` twice", Short(name), Short(ty)),
                "given again here",
            )
            .help("each thing has a hash type of its own: give one of them another name"),
            PointMistake::TooManySides { side } => say(
                format!("a point has at most {MAX_IDENTITIES} fields with `@{side}`"),
                "the first one too many",
            ),
            PointMistake::NoSides { name } => say(
                format!("the point `{}` does not say what comes in or goes out", Short(name)),
                "expected a field with `@in(…)` or `@out(…)` inside",
            )
            .help("mark what identifies the data: `hash id @in(messageid);`"),
            PointMistake::TwoWidths { ty } => say(
                format!(
                    "the hash type `{}` has 64 bits in one place and 128 in another",
                    Short(ty)
                ),
                "never equal to the other",
            )
            .help("use `hash` or `hash128` for both, or another hash type"),
        }
    }
}
