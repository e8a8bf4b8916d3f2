//! Mistakes in spans and chains, and in roles of frames.

use crate::schema::MAX_VALUES;
use crate::wording::{Short, Wording, say};

/// A mistake in the role of a frame: a span or a chain.
#[derive(Debug, Clone)]
pub(crate) enum RoleMistake {
    TwoKinds,
    TooManySteps { count: usize },
    StepForm { word: String },
    UnknownAcross { word: String, suggestion: Option<&'static str> },
    UnknownOrder { word: String },
    NoKey { kind: &'static str, name: String },
    KeyOfPlain { name: String },
    KeyType { what: &'static str },
    KeyOfAddr { kind: &'static str },
    HalfOfPlain { name: &'static str, frame: String },
    HalfOfChain { name: &'static str, frame: String },
    HalfOfKey { name: &'static str },
    HalfOfTime { name: &'static str },
    BothHalves,
    OwnField { kind: &'static str, name: String },
}

impl RoleMistake {
    /// The stable name of the rule.
    pub fn code(&self) -> &'static str {
        match self {
            RoleMistake::TwoKinds => "two-kinds",
            RoleMistake::TooManySteps { .. } => "chain-form",
            RoleMistake::StepForm { .. } => "chain-form",
            RoleMistake::UnknownAcross { .. } => "span-form",
            RoleMistake::UnknownOrder { .. } => "span-form",
            RoleMistake::NoKey { .. } => "no-key",
            RoleMistake::KeyOfPlain { .. } => "key-place",
            RoleMistake::KeyType { .. } | RoleMistake::KeyOfAddr { .. } => "key-place",
            RoleMistake::HalfOfPlain { .. } => "half-place",
            RoleMistake::HalfOfChain { .. } => "half-place",
            RoleMistake::HalfOfKey { .. } => "half-place",
            RoleMistake::HalfOfTime { .. } => "half-place",
            RoleMistake::BothHalves => "half-place",
            RoleMistake::OwnField { .. } => "own-field",
        }
    }

    /// Message, label and help.
    pub fn wording(&self) -> Wording {
        match self {
            RoleMistake::TwoKinds => {
                say("a frame is of one kind: `@span`, `@chain` or `@point`", "another kind").help(
                    "a span has a begin and an end; a chain has steps; a point has what comes in \
                     and goes out",
                )
            }
            RoleMistake::TooManySteps { count } => {
                say(format!("{count} steps; a chain has at most {MAX_VALUES}"), "too many steps")
            }
            RoleMistake::StepForm { word } => {
                say(format!("`{}` is not the name of a step", Short(word)), "expected a name")
                    .help("steps are named like the values of an enum: `@chain(start, send, recv)`")
            }
            RoleMistake::UnknownAcross { word, suggestion } => say(
                format!("`{}` does not say where the end of a span can be", Short(word)),
                "expected `process`, `host` or `everywhere`",
            )
            .meant(*suggestion, "`@span` alone means `@span(process)`"),
            RoleMistake::UnknownOrder { word } => say(
                format!("`{}` does not say which begin an end belongs to", Short(word)),
                "expected `fifo`",
            )
            .help("`fifo` means the earliest that has no end; without it, it is the latest"),
            RoleMistake::NoKey { kind, name } => say(
                format!("the {kind} `{}` has no key", Short(name)),
                "expected a field with `@key` inside",
            )
            .help(match *kind {
                "span" => "mark what a begin and its end have in common: `u64 id @key;`",
                _ => "mark what all steps of one thing have in common: `u64 id @key;`",
            }),
            RoleMistake::KeyOfPlain { name } => {
                say("`@key` belongs to a field of a span or a chain", "this frame is neither")
                    .help(format!("write `frame {} @span {{ … }}`, or `@chain(…)`", Short(name)))
            }
            RoleMistake::KeyType { what } => say(
                format!("{what} cannot be a key"),
                "frames that belong together have the same key",
            )
            .help("a key is an integer, a bool, an enum, `char[N]` or `bytes[N]`"),
            RoleMistake::KeyOfAddr { kind } => say(
                "an `addr` cannot be a key of frames of several processes",
                "in another process, the same address is other code",
            )
            .help(match *kind {
                "span" => "write `@span`, or `@span(process)`: then both halves are of one process",
                _ => "write `u64` if the number means the same in all of them",
            }),
            RoleMistake::HalfOfPlain { name, frame } => {
                say(format!("`@{name}` belongs to a field of a span"), "this frame is none")
                    .help(format!("write `frame {} @span {{ … }}`", Short(frame)))
            }
            RoleMistake::HalfOfChain { name, frame } => say(
                format!(
                    "`@{name}` belongs to a field of a span, and `{}` is a chain",
                    Short(frame)
                ),
                "a chain has steps",
            )
            .help("leave it out: every step of a chain has all fields"),
            RoleMistake::HalfOfKey { name } => say(
                format!("a key cannot be `@{name}`"),
                format!("only the frame of the {name} would have it"),
            )
            .help("the begin and the end of a span have the same key: leave one of the two out"),
            RoleMistake::HalfOfTime { name } => say(
                format!("the time of a frame cannot be `@{name}`"),
                format!("only the frame of the {name} would have a time"),
            )
            .help("both halves of a span have a time: leave one of the two out"),
            RoleMistake::BothHalves => {
                say("a field cannot be both `@begin` and `@end`", "given here")
                    .help("a field with neither is set by both: leave the two out")
            }
            RoleMistake::OwnField { kind, name } => say(
                format!("a {kind} cannot have a field `{name}`"),
                format!("ppt adds a field of that name to each {kind}"),
            )
            .other_name(name),
        }
    }
}
