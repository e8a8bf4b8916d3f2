//! Mistakes in attributes.

use crate::wording::{Short, Wording, say};

/// A mistake in an attribute.
#[derive(Debug, Clone)]
pub(crate) enum AttributeMistake {
    UnknownAttribute { name: String, suggestion: Option<&'static str> },
    AttributeTwice { name: String },
    AttributeOnFrame { name: String },
    AttributeOnField { name: String },
    AttributeArguments { name: String, form: &'static str },
    AtTwice,
    AtNotTime,
    AtArray,
    AtCpuClock { word: &'static str },
    ClockNotTime,
    ClockIsFixed { time: &'static str },
    ThreadType,
    ThreadOfPoint,
    ThreadTwice,
}

impl AttributeMistake {
    /// The stable name of the rule.
    pub fn code(&self) -> &'static str {
        match self {
            AttributeMistake::UnknownAttribute { .. } => "unknown-attribute",
            AttributeMistake::AttributeTwice { .. } => "attribute-twice",
            AttributeMistake::AttributeOnFrame { .. } => "attribute-place",
            AttributeMistake::AttributeOnField { .. } => "attribute-place",
            AttributeMistake::AttributeArguments { .. } => "attribute-form",
            AttributeMistake::AtTwice => "at-twice",
            AttributeMistake::ThreadType | AttributeMistake::ThreadOfPoint => "thread-place",
            AttributeMistake::ThreadTwice => "thread-twice",
            AttributeMistake::AtNotTime => "at-place",
            AttributeMistake::AtArray => "at-place",
            AttributeMistake::AtCpuClock { .. } => "at-place",
            AttributeMistake::ClockNotTime => "clock-place",
            AttributeMistake::ClockIsFixed { .. } => "clock-place",
        }
    }

    /// Message, label and help.
    pub fn wording(&self) -> Wording {
        match self {
            AttributeMistake::UnknownAttribute { name, suggestion } => say(
                format!("unknown attribute `@{}`", Short(name)),
                "kept in the schema without a meaning",
            )
            .meant(
                suggestion.map(|word| format!("@{word}")).as_deref(),
                "known are @at, @unit, @clock, @group, @name, @track, @flow, @counter, @span, @chain, @point, @key, @in, @out, @raw and @thread",
            ),
            AttributeMistake::AttributeTwice { name } => {
                say(format!("`@{}` is given twice", Short(name)), "given again here")
            }
            AttributeMistake::AttributeOnFrame { name } => {
                say(format!("`@{name}` belongs to a field"), "this is a frame")
            }
            AttributeMistake::AttributeOnField { name } => {
                say(format!("`@{name}` belongs to a frame"), "this is a field")
                    .help(format!("write it after the frame's name: `frame NAME @{name} {{ … }}`"))
            }
            AttributeMistake::AttributeArguments { name, form } => {
                let has_arguments = form.strip_prefix('@') != Some(name.as_str());
                let rule = if has_arguments { format!("is written `{form}`") } else { "takes no arguments".into() };
                say(format!("`@{name}` {rule}"), format!("expected `{form}`"))
            }
            AttributeMistake::AtTwice => {
                say("`@at` is given twice; a frame has only one time", "given again here")
            }
            AttributeMistake::ThreadType => {
                say("`@thread` belongs to a field of type `u32` or `i32`", "no number of a thread")
                    .help("what gettid(2) says fits: `u32 thread @thread;`; 0 is the thread that writes the frame")
            }
            AttributeMistake::ThreadOfPoint => {
                say("`@thread` has no meaning in a point", "the thread that writes it passes it")
            }
            AttributeMistake::ThreadTwice => {
                say("`@thread` is given twice; a frame is about one thread", "given again here")
            }
            AttributeMistake::AtNotTime => {
                say("`@at` belongs to a field of type `time`", "not a point in time")
            }
            AttributeMistake::AtArray => say("`@at` belongs to one point in time", "an array has several"),
            AttributeMistake::AtCpuClock { word } => {
                say(format!("the clock `{word}` does not place a frame in time"), "counts CPU time")
                    .help("put `@at` on a field of another clock, or leave it out")
            }
            AttributeMistake::ClockNotTime => {
                say("`@clock` belongs to a field of type `time`", "not a point in time")
            }
            AttributeMistake::ClockIsFixed { time } => {
                say(format!("the clock of `{time}` cannot be chosen"), "has no effect on it")
                    .help("choose the kind of time with `option time ns CLOCK;`")
            }
        }
    }
}
