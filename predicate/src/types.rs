//! Types of fields.

use std::fmt;

/// The type of a field in comparisons.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Type {
    /// An integer.
    Whole,
    /// A 32-bit float.
    Single,
    /// A 64-bit float.
    Double,
    /// A bool.
    Bool,
    /// A duration, in ns.
    Duration,
    /// A point in time.
    Time,
    /// A value of an enum.
    Enum,
    /// Text.
    Text,
    /// Opaque bytes.
    Bytes,
}

impl Type {
    /// The values that it can be compared with.
    pub(crate) fn compares_with(self) -> &'static str {
        match self {
            Type::Whole | Type::Single | Type::Double => "numbers, such as 10",
            Type::Bool => "true and false",
            Type::Duration => "durations, such as 10ms, and numbers of ns",
            Type::Time => "times in quotes, such as '2026-11-21T15:04:05.5Z'",
            Type::Enum => "names in quotes, such as 'LOGIN'",
            Type::Text => "text in quotes, such as 'abc'",
            Type::Bytes => "bytes in hex, such as X'00ff'",
        }
    }
}

impl fmt::Display for Type {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Type::Whole => "a whole number",
            Type::Single | Type::Double => "a floating-point number",
            Type::Bool => "a bool",
            Type::Duration => "a duration",
            Type::Time => "a point in time",
            Type::Enum => "an enum",
            Type::Text => "text",
            Type::Bytes => "bytes",
        })
    }
}
