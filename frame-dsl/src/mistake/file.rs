//! Mistakes of the file as a whole.

use crate::wording::{Wording, say};

/// A mistake of the file as a whole.
#[derive(Debug, Clone)]
pub(crate) enum FileMistake {
    SourceTooLong { most: usize },
    NotUtf8 { byte: u8 },
    Nul,
    NoFrames,
    SchemaTooLong { bytes: usize, most: usize },
    Unsaid { count: usize, errors: bool },
}

impl FileMistake {
    /// The stable name of the rule.
    pub fn code(&self) -> &'static str {
        match self {
            FileMistake::SourceTooLong { .. } => "file-too-long",
            FileMistake::NotUtf8 { .. } => "not-utf8",
            FileMistake::Nul => "nul-byte",
            FileMistake::NoFrames => "no-frames",
            FileMistake::SchemaTooLong { .. } => "schema-too-long",
            FileMistake::Unsaid { .. } => "more",
        }
    }

    /// Message, label and help.
    pub fn wording(&self) -> Wording {
        match self {
            FileMistake::SourceTooLong { most } => {
                say(format!("the file is longer than {most} bytes"), "the file begins here")
                    .help("is this a frame file?")
            }
            FileMistake::NotUtf8 { byte } => {
                say("the file is not UTF-8", format!("byte 0x{byte:02x} is not valid here"))
                    .help("save the file as UTF-8")
            }
            FileMistake::Nul => say("the file contains a NUL byte", "a NUL byte is here")
                .help("save the file as plain UTF-8 text"),
            FileMistake::NoFrames => say("the file declares no frame", "expected a frame")
                .help("a frame looks like `frame example { int kind, who; time start, end; }`"),
            FileMistake::SchemaTooLong { bytes, most } => say(
                format!(
                    "the schema would have {bytes} bytes; a program can contain at most {most}"
                ),
                "too much in this buffer",
            )
            .help("split the buffer, or shorten names and comments"),
            FileMistake::Unsaid { count, .. } => {
                say(format!("and {count} more"), "the last one shown is here")
            }
        }
    }
}
