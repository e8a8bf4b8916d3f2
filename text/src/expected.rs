//! What a parser expected, and what it found.

use crate::escape::escaped;

/// The names of what may follow: `a, b or c`; `none` without names.
pub fn alternatives(names: &[&str], none: &str) -> String {
    match names {
        [] => none.to_owned(),
        [one] => (*one).to_owned(),
        [most @ .., last] => format!("{} or {last}", most.join(", ")),
    }
}

/// The character at which a parser stopped; None is the end of the text.
pub fn quoted_char(found: Option<char>) -> String {
    found.map_or("the end".to_owned(), |char| format!("`{}`", escaped(&char.to_string())))
}
