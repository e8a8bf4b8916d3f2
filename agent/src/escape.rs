//! Makes text from a target safe to show.

/// Longest text from a target, in characters.
const LIMIT: usize = 256;

/// Escapes `text` as [`ppt_text::escaped`] does, and cuts it to 256 characters.
pub fn escaped(text: &str) -> String {
    ppt_text::shortened(text, LIMIT)
}
