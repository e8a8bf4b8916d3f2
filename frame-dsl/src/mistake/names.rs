//! Mistakes in names.

use std::fmt::{self, Display};

use crate::schema::MAX_NAME_BYTES;
use crate::wording::{Short, Wording, say};

/// A mistake in a name.
#[derive(Debug, Clone)]
pub(crate) enum NameMistake {
    NameTooLong { name: String, bytes: usize },
    Keyword { name: String, languages: String },
    ReservedWord { name: String },
    Macro { name: String },
    OurPrefix { name: String },
    Underscores { name: String },
    BecomesSelf { kind: NameKind, name: String },
    MethodName { name: String },
    TakenName { kind: NameKind, name: String, language: &'static str },
    StdBuffer,
    TypeWord { name: String },
    Twice { kind: NameKind, name: String },
    FrameAndEnum { name: String },
    SameGenerated { language: &'static str, generated: String, first: String, second: String },
}

impl NameMistake {
    /// The stable name of the rule.
    pub fn code(&self) -> &'static str {
        match self {
            NameMistake::NameTooLong { .. } => "name-too-long",
            NameMistake::Keyword { .. } => "keyword",
            NameMistake::ReservedWord { .. } => "reserved-word",
            NameMistake::Macro { .. } => "macro-name",
            NameMistake::OurPrefix { .. } => "ppt-name",
            NameMistake::Underscores { .. } => "underscores",
            NameMistake::BecomesSelf { .. } => "becomes-self",
            NameMistake::MethodName { .. } => "method-name",
            NameMistake::TakenName { .. } => "taken-name",
            NameMistake::StdBuffer => "buffer-name",
            NameMistake::TypeWord { .. } => "type-name",
            NameMistake::Twice { .. } => "duplicate-name",
            NameMistake::FrameAndEnum { .. } => "duplicate-name",
            NameMistake::SameGenerated { .. } => "name-clash",
        }
    }

    /// Message, label and help.
    pub fn wording(&self) -> Wording {
        match self {
            NameMistake::NameTooLong { name, bytes } => say(
                format!("the name `{}` has {bytes} bytes", Short(name)),
                format!("at most {MAX_NAME_BYTES} bytes"),
            ),
            NameMistake::Keyword { name, languages } => {
                say(format!("`{name}` is a keyword in {languages}"), "cannot be a name")
                    .other_name(name)
            }
            NameMistake::ReservedWord { name } => {
                say(format!("`{name}` is reserved in the frame language"), "cannot be a name")
                    .other_name(name)
            }
            NameMistake::Macro { name } => {
                say(format!("`{name}` is a macro or a type in C and C++"), "cannot be a name")
                    .other_name(name)
            }
            NameMistake::OurPrefix { name } => say(
                format!("`{}` begins with a prefix of generated names", Short(name)),
                "names that begin with `ppt_`, `ppt1_` or `pptframe` are reserved",
            ),
            NameMistake::Underscores { name } => say(
                format!("C and C++ reserve names such as `{}`", Short(name)),
                "no `_` at the beginning and no `__` inside",
            ),
            NameMistake::BecomesSelf { kind, name } => say(
                format!("the {kind} `{name}` would be called `Self` in Rust"),
                "`Self` is a keyword in Rust",
            )
            .help("choose another name"),
            NameMistake::MethodName { name } => say(
                format!("a frame cannot be called `{name}`"),
                "the generated C++ has a function of that name inside frames",
            )
            .other_name(name),
            NameMistake::TakenName { kind, name, language } => say(
                format!("the {kind} `{name}` has a name that {language} output needs for itself"),
                "used by the generated code",
            )
            .other_name(name),
            NameMistake::StdBuffer => say(
                "a buffer cannot be called `std`",
                "inside the generated C++ it would hide the standard library",
            )
            .other_name("std"),
            NameMistake::TypeWord { name } => {
                say(format!("`{name}` is already a type"), "an enum of this name could not be used")
                    .other_name(name)
            }
            NameMistake::Twice { kind, name } => say(
                format!("the {kind} `{}` is declared twice", Short(name)),
                "declared again here",
            ),
            NameMistake::FrameAndEnum { name } => say(
                format!("`{}` is the name of a frame and of an enum", Short(name)),
                "both are types in C++ and Rust",
            ),
            NameMistake::SameGenerated { language, generated, first, second } => say(
                format!("{first} and {second} would both be called `{generated}` in {language}"),
                format!("`{generated}` again"),
            )
            .help("rename one of the two"),
        }
    }
}

/// The kind of thing that a name stands for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum NameKind {
    Buffer,
    Tag,
    Enum,
    Value,
    Frame,
    Field,
    Step,
    Counter,
    Histogram,
    HashType,
}

impl Display for NameKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            NameKind::Buffer => "buffer",
            NameKind::Tag => "tag",
            NameKind::Enum => "enum",
            NameKind::Value => "value",
            NameKind::Frame => "frame",
            NameKind::Field => "field",
            NameKind::Step => "step",
            NameKind::Counter => "counter",
            NameKind::Histogram => "histogram",
            NameKind::HashType => "hash type",
        })
    }
}
