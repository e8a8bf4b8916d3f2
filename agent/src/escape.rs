//! Text from a target, made harmless for a terminal.

/// At most this many characters of anything that a target says about itself.
const LIMIT: usize = 256;

/// Escapes everything but plain text in `text`, and cuts it to 256 characters.
pub fn escaped(text: &str) -> String {
    let mut out = String::new();
    for c in text.chars().take(LIMIT) {
        if c.is_control() || invisible(c) {
            out.extend(c.escape_default());
        } else {
            out.push(c);
        }
    }
    if text.chars().nth(LIMIT).is_some() {
        out.push('…');
    }
    out
}

/// Characters that nobody sees, or that change how others look: spaces of no width, separators,
/// directions.
fn invisible(c: char) -> bool {
    matches!(c, '\u{61c}' | '\u{200b}'..='\u{200f}' | '\u{2028}'..='\u{202e}')
        || matches!(c, '\u{2060}'..='\u{2069}' | '\u{feff}')
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn control_characters_do_not_get_through() {
        assert_eq!(escaped("a\x1b[31m\n\u{9b}b"), "a\\u{1b}[31m\\n\\u{9b}b");
        assert_eq!(escaped("a\u{202e}\u{2066}b"), "a\\u{202e}\\u{2066}b");
        assert_eq!(escaped(&"x".repeat(300)).chars().count(), 257);
    }
}
