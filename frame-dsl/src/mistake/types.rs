//! Mistakes in the types of fields.

use crate::schema::MAX_FRAME_BYTES;
use crate::wording::{Short, Wording, say};

/// A mistake in the type of a field.
#[derive(Debug, Clone)]
pub(crate) enum TypeMistake {
    UnknownType { word: String, suggestion: Option<String> },
    FrameAsType { word: String },
    LaterType { word: String },
    NoLength { word: String, name: String },
    BadLength { length: i128 },
    IntervalOfBytes { word: String },
    HashShape { word: String, what: &'static str },
    RawOfNoHash,
    IntervalArray,
}

impl TypeMistake {
    /// The stable name of the rule.
    pub fn code(&self) -> &'static str {
        match self {
            TypeMistake::UnknownType { .. } => "unknown-type",
            TypeMistake::FrameAsType { .. } => "unknown-type",
            TypeMistake::LaterType { .. } => "reserved-word",
            TypeMistake::NoLength { .. } => "no-length",
            TypeMistake::BadLength { .. } => "bad-length",
            TypeMistake::IntervalOfBytes { .. } => "bad-interval",
            TypeMistake::HashShape { .. } => "hash-shape",
            TypeMistake::RawOfNoHash => "raw-place",
            TypeMistake::IntervalArray => "bad-interval",
        }
    }

    /// Message, label and help.
    pub fn wording(&self) -> Wording {
        match self {
            TypeMistake::UnknownType { word, suggestion } => {
                let text = say(format!("unknown type `{}`", Short(word)), "not a type");
                match suggestion {
                    Some(word) => text.help(format!("did you mean `{word}`?")),
                    None => text.help(
                        "types are int, float, double, time, i8 … u64, f32, f64, bool, duration, \
                         char, bytes and the enums of this file",
                    ),
                }
            }
            TypeMistake::FrameAsType { word } => {
                say(format!("`{}` is a frame, not a type", Short(word)), "not a type")
                    .help("frames do not contain frames: list its fields here")
            }
            TypeMistake::LaterType { word } => say(
                format!("`{word}` is reserved for a later version of the frame language"),
                "not a type yet",
            ),
            TypeMistake::NoLength { word, name } => {
                say(format!("`{word}` needs a length"), "expected `[` after this")
                    .help(format!("write `{word} {}[16]`", Short(name)))
            }
            TypeMistake::BadLength { length } => say(
                format!("{length} is not a possible length"),
                format!("expected 1 … {MAX_FRAME_BYTES}"),
            ),
            TypeMistake::IntervalOfBytes { word } => {
                say(format!("there is no interval of `{word}`"), "has no start and end")
                    .help("most intervals are of `time`: `interval time handle;`")
            }
            TypeMistake::HashShape { word, what } => say(
                format!("a `{word}` identifies one thing, and {what} is no thing"),
                "expected one value",
            )
            .help(format!("write a field of its own for each: `{word} first, second;`")),
            TypeMistake::RawOfNoHash => {
                say("`@raw` belongs to a field of type `hash` or `hash128`", "no hash")
                    .help("other types are stored as they are anyway")
            }
            TypeMistake::IntervalArray => {
                say("there are no arrays of intervals", "expected no `[`")
                    .help("write one interval per element, or two arrays of times")
            }
        }
    }
}
