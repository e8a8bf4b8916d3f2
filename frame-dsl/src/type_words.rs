//! The words that name types.

use crate::stored::PLAIN;

/// The identity types.
pub(crate) const HASHES: [&str; 2] = ["hash", "hash128"];

/// The words that name types. They are reserved only as names of enums.
pub(crate) fn type_words<'w>() -> impl Iterator<Item = &'w str> {
    let plain = PLAIN.iter().map(|entry| entry.1);
    ["int", "float", "double", "time"]
        .into_iter()
        .chain(plain)
        .chain(["char", "bytes"])
        .chain(HASHES)
}

/// Whether the word names a type, or is the first word of one.
pub(crate) fn is_type_word(word: &str) -> bool {
    type_words().any(|known| known == word) || word == "interval"
}
