//! What a target says about itself, safe to show.

/// At most this many characters of anything that a target says about itself.
const LIMIT: usize = 256;

/// Escapes `text` as [`ppt_text::escaped`] does, and cuts it to 256 characters.
pub fn escaped(text: &str) -> String {
    ppt_text::shortened(text, LIMIT)
}
