//! Mistakes in `emit` and `buffer`.

use crate::language::Language;
use crate::schema::{DEFAULT_SLOTS, MAX_NAME_BYTES, MAX_SLOTS, MIN_SLOTS};
use crate::wording::{Short, Wording, say};

/// A mistake in `emit` or `buffer`.
#[derive(Debug, Clone)]
pub(crate) enum BufferMistake {
    UnknownLanguage { word: String, suggestion: Option<&'static str> },
    LanguageTwice { word: String },
    BufferTwice,
    BadSlots { nearest: u64 },
    StemIsNoName { stem: String },
    StemIsNotAllowed { why: String },
    LargeRing { bytes: u64, stride: u32 },
}

impl BufferMistake {
    /// The stable name of the rule.
    pub fn code(&self) -> &'static str {
        match self {
            BufferMistake::UnknownLanguage { .. } => "unknown-language",
            BufferMistake::LanguageTwice { .. } => "language-twice",
            BufferMistake::BufferTwice => "buffer-twice",
            BufferMistake::BadSlots { .. } => "bad-slots",
            BufferMistake::StemIsNoName { .. } => "buffer-name",
            BufferMistake::StemIsNotAllowed { .. } => "buffer-name",
            BufferMistake::LargeRing { .. } => "large-ring",
        }
    }

    /// Message, label and help.
    pub fn wording(&self) -> Wording {
        match self {
            BufferMistake::UnknownLanguage { word, suggestion } => {
                let words: Vec<_> = Language::spellings().collect();
                let (last, first) = words.split_last().expect("there are some");
                let expected = format!("expected `{}` or `{last}`", first.join("`, `"));
                let all = format!("write `emit {};` or some of these", words.join(", "));
                say(format!("ppt does not generate `{}`", Short(word)), expected)
                    .meant(*suggestion, all)
            }
            BufferMistake::LanguageTwice { word } => {
                say(format!("`{word}` is named twice"), "named before")
            }
            BufferMistake::BufferTwice => say("the buffer is named twice", "named again here")
                .help("all frames of a file share one buffer; put others into a file of their own"),
            BufferMistake::BadSlots { nearest } => say(
                format!("slots must be a power of two from {MIN_SLOTS} to {MAX_SLOTS}"),
                "not such a number",
            )
            .help(format!("the nearest is {nearest}; without a number it is {DEFAULT_SLOTS}")),
            BufferMistake::StemIsNoName { stem } => say(
                format!("the buffer is named after the file, and `{}` is not a name", Short(stem)),
                "expected a `buffer` line",
            )
            .help(format!("add `buffer {};`", proposed_name(stem))),
            BufferMistake::StemIsNotAllowed { why } => say(
                format!("the buffer is named after the file, but {why}"),
                "expected a `buffer` line",
            )
            .help("add `buffer NAME;` with another name"),
            BufferMistake::LargeRing { bytes, stride } => say(
                format!("each thread's ring has {} MiB", bytes >> 20),
                format!("slots of {stride} bytes"),
            )
            .help(
                "fewer slots are usually enough; `ppt attach --slots` sets more for one capture \
                 (`option allow \"large-ring\";` silences this)",
            ),
        }
    }
}

/// A valid name similar to a file's stem.
fn proposed_name(stem: &str) -> String {
    let mut name: String = stem
        .chars()
        .map(|c| if c.is_ascii_alphanumeric() { c } else { '_' })
        .take(MAX_NAME_BYTES - 1)
        .collect();
    while name.contains("__") {
        name = name.replace("__", "_");
    }
    let name = name.trim_matches('_');
    match name.bytes().next() {
        None => "example".to_owned(),
        Some(first) if first.is_ascii_digit() => format!("b{name}"),
        Some(_) => name.to_owned(),
    }
}
