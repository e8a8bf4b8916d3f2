//! Mistakes in enums.

use crate::schema::{MAX_ENUMS, MAX_VALUES};
use crate::wording::{Short, Wording, say};

/// A mistake in an enum.
#[derive(Debug, Clone)]
pub(crate) enum EnumMistake {
    EmptyEnum { name: String },
    UnknownInteger { word: String, suggestion: Option<&'static str> },
    ValueOutOfRange { value: i128, integer: &'static str, least: i128, most: i128 },
    SameValue { name: String, other: String, value: i128 },
    TooManyEnums { count: usize, own: usize },
    TooManyValues { name: String, count: usize },
}

impl EnumMistake {
    /// The stable name of the rule.
    pub fn code(&self) -> &'static str {
        match self {
            EnumMistake::EmptyEnum { .. } => "empty-enum",
            EnumMistake::UnknownInteger { .. } => "unknown-integer",
            EnumMistake::ValueOutOfRange { .. } => "value-range",
            EnumMistake::SameValue { .. } => "same-value",
            EnumMistake::TooManyEnums { .. } => "too-many-enums",
            EnumMistake::TooManyValues { .. } => "too-many-values",
        }
    }

    /// Message, label and help.
    pub fn wording(&self) -> Wording {
        match self {
            EnumMistake::EmptyEnum { name } => {
                say(format!("the enum `{}` has no values", Short(name)), "expected a value inside")
            }
            EnumMistake::UnknownInteger { word, suggestion } => say(
                format!("`{}` is not an integer type", Short(word)),
                "expected one of `i8` … `i64`, `u8` … `u64`",
            )
            .meant(*suggestion, "without a type, an enum is an `i32`"),
            EnumMistake::ValueOutOfRange { value, integer, least, most } => say(
                format!("{value} does not fit `{integer}`"),
                format!("expected {least} … {most}"),
            )
            .help("name a larger type: `enum NAME : i64 { … }`"),
            EnumMistake::SameValue { name, other, value } => say(
                format!("`{}` and `{}` are both {value}", Short(other), Short(name)),
                "tables show the first one",
            ),
            EnumMistake::TooManyEnums { count, own } => {
                let said = say(
                    format!("{count} enums; a buffer has at most {MAX_ENUMS}"),
                    "the first one too many",
                );
                match own {
                    0 => said,
                    _ => {
                        said.help(format!("{own} of them are those of spans and chains, one each"))
                    }
                }
            }
            EnumMistake::TooManyValues { name, count } => say(
                format!("the enum `{}` has {count} values; at most {MAX_VALUES}", Short(name)),
                "too many values",
            ),
        }
    }
}
