//! Characters that a terminal, an editor or a browser interprets instead of showing them.

/// Whether `char` is never shown unescaped: control characters (C0, DEL, C1), zero-width
/// characters, line separators, and characters that change the direction of the text around them.
pub fn is_unsafe(char: char) -> bool {
    char.is_control()
        || matches!(char, '\u{61c}' | '\u{200b}'..='\u{200f}' | '\u{2028}'..='\u{202e}')
        || matches!(char, '\u{2060}'..='\u{2069}' | '\u{feff}')
}

/// Text for people, on one line: `\t`, `\n`, and `\xNN` for each byte of other unsafe characters.
/// Backslashes are not escaped, so this cannot be undone; [`escape_cell`] can.
pub fn escaped(text: &str) -> String {
    escaped_but(text, |_| false)
}

/// Text for people, on the lines of `text`. For texts of several lines in which untrusted names are
/// already escaped.
pub fn escaped_lines(text: &str) -> String {
    escaped_but(text, |char| char == '\n')
}

/// The first `most` characters of [`escaped`] text, and `…` if there are more.
pub fn shortened(text: &str, most: usize) -> String {
    let Some((end, _)) = text.char_indices().nth(most) else { return escaped(text) };
    escaped(&text[..end]) + "…"
}

fn escaped_but(text: &str, is_kept: impl Fn(char) -> bool) -> String {
    let is_escaped = |char: char| is_unsafe(char) && !is_kept(char);
    if !text.contains(is_escaped) {
        return text.to_owned();
    }
    let mut out = String::with_capacity(text.len() + 16);
    for char in text.chars() {
        match char {
            char if !is_escaped(char) => out.push(char),
            '\t' => out.push_str("\\t"),
            '\n' => out.push_str("\\n"),
            char => {
                for byte in char.encode_utf8(&mut [0; 4]).bytes() {
                    out.push_str("\\x");
                    out.extend(digits(byte).map(char::from));
                }
            }
        }
    }
    out
}

/// Appends text as a cell of a table: `\t`, `\n`, `\\`, and `\xNN` for each byte of other unsafe
/// characters and of invalid UTF-8. [`unescape_cell`] restores the bytes exactly.
pub fn escape_cell(text: &[u8], out: &mut Vec<u8>) {
    if text.iter().all(|&byte| (b' '..=b'~').contains(&byte) && byte != b'\\') {
        out.extend_from_slice(text);
        return;
    }
    for chunk in text.utf8_chunks() {
        for char in chunk.valid().chars() {
            let mut bytes = [0; 4];
            let bytes = char.encode_utf8(&mut bytes).as_bytes();
            match char {
                '\t' => out.extend_from_slice(b"\\t"),
                '\n' => out.extend_from_slice(b"\\n"),
                '\\' => out.extend_from_slice(b"\\\\"),
                char if is_unsafe(char) => escape_bytes(bytes, out),
                _ => out.extend_from_slice(bytes),
            }
        }
        escape_bytes(chunk.invalid(), out);
    }
}

fn escape_bytes(bytes: &[u8], out: &mut Vec<u8>) {
    for &byte in bytes {
        out.extend_from_slice(b"\\x");
        out.extend_from_slice(&digits(byte));
    }
}

/// Appends the bytes that [`escape_cell`] escaped. A backslash that does not start an escape stays.
pub fn unescape_cell(text: &[u8], out: &mut Vec<u8>) {
    let value = |high: u8, low: u8| {
        let digit = |byte: u8| char::from(byte).to_digit(16);
        Some((digit(high)? << 4 | digit(low)?) as u8)
    };
    let mut rest = text;
    while let [first, tail @ ..] = rest {
        let (byte, after) = match (first, tail) {
            (b'\\', [b't', tail @ ..]) => (b'\t', tail),
            (b'\\', [b'n', tail @ ..]) => (b'\n', tail),
            (b'\\', [b'r', tail @ ..]) => (b'\r', tail),
            (b'\\', [b'\\', tail @ ..]) => (b'\\', tail),
            (b'\\', [b'x', high, low, tail @ ..]) => match value(*high, *low) {
                Some(byte) => (byte, tail),
                None => (*first, rest.get(1..).unwrap_or_default()),
            },
            (other, tail) => (*other, tail),
        };
        out.push(byte);
        rest = after;
    }
}

/// Appends text as a JSON string: `\uNNNN` for unsafe characters, U+FFFD for invalid UTF-8.
pub fn json_string(text: &[u8], out: &mut Vec<u8>) {
    out.push(b'"');
    for chunk in text.utf8_chunks() {
        for char in chunk.valid().chars() {
            match char {
                '"' => out.extend_from_slice(b"\\\""),
                '\\' => out.extend_from_slice(b"\\\\"),
                '\n' => out.extend_from_slice(b"\\n"),
                '\t' => out.extend_from_slice(b"\\t"),
                char if is_unsafe(char) => out.extend_from_slice(unicode(char).as_bytes()),
                char => out.extend_from_slice(char.encode_utf8(&mut [0; 4]).as_bytes()),
            }
        }
        if !chunk.invalid().is_empty() {
            out.extend_from_slice("\u{fffd}".as_bytes());
        }
    }
    out.push(b'"');
}

/// Equivalent JSON without unsafe characters. These occur only in strings, except for the line
/// feeds between values, which stay.
pub fn escaped_json(json: &str) -> String {
    let is_escaped = |char: char| is_unsafe(char) && char != '\n';
    if !json.contains(is_escaped) {
        return json.to_owned();
    }
    let mut out = String::with_capacity(json.len() + 16);
    for char in json.chars() {
        if is_escaped(char) {
            out.push_str(&unicode(char));
        } else {
            out.push(char);
        }
    }
    out
}

/// The JSON escape. All unsafe characters are below U+10000.
fn unicode(char: char) -> String {
    format!("\\u{:04x}", u32::from(char))
}

/// Text with `?` for each unsafe character except those that `is_kept`: for comments in source
/// code, which have no escapes.
pub fn masked(text: &str, is_kept: impl Fn(char) -> bool) -> String {
    let shown = |char: char| if is_unsafe(char) && !is_kept(char) { '?' } else { char };
    text.chars().map(shown).collect()
}

/// Text of the same length in bytes, with another character for each unsafe one except those that
/// `is_kept`: byte offsets stay valid.
pub fn masked_in_place(text: &str, is_kept: impl Fn(char) -> bool) -> String {
    let is_masked = |char: char| is_unsafe(char) && !is_kept(char);
    let shown = |char: char| match (is_masked(char), char.len_utf8()) {
        (false, _) => char,
        (true, 1) => '?',
        (true, 2) => '\u{bf}',
        (true, _) => '\u{fffd}',
    };
    text.chars().map(shown).collect()
}

fn digits(byte: u8) -> [u8; 2] {
    const DIGITS: &[u8; 16] = b"0123456789abcdef";
    [DIGITS[usize::from(byte >> 4)], DIGITS[usize::from(byte & 15)]]
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    /// One character of each range, and both ends.
    const UNSAFE: &str = "\0\x1b\x7f\u{80}\u{9b}\u{9f}\u{61c}\u{200b}\u{200d}\u{200f}\u{2028}\u{202e}\
                          \u{2060}\u{2066}\u{2069}\u{feff}";

    fn cell(text: &[u8]) -> String {
        let mut out = Vec::new();
        escape_cell(text, &mut out);
        String::from_utf8(out).unwrap()
    }

    #[test]
    fn the_set_has_exactly_these_characters() {
        let known = |code: u32| {
            matches!(code, 0..=0x1f | 0x7f..=0x9f | 0x61c | 0x200b..=0x200f | 0x2028..=0x202e)
                || matches!(code, 0x2060..=0x2069 | 0xfeff)
        };
        for char in '\0'..=char::MAX {
            assert_eq!(is_unsafe(char), known(u32::from(char)), "{char:?}");
        }
    }

    #[test]
    fn people_read_what_a_character_is() {
        assert_eq!(escaped("a\tb\nc\\d\x1b[31m"), r"a\tb\nc\d\x1b[31m");
        assert_eq!(escaped("a\u{202e}\u{9b}é"), r"a\xe2\x80\xae\xc2\x9bé");
        assert_eq!(escaped_lines("a\n\rb"), "a\n\\x0db");
        assert!(!escaped(UNSAFE).contains(is_unsafe));
        assert_eq!(escaped("plain é"), "plain é");
        assert_eq!(shortened("abc", 3), "abc");
        assert_eq!(shortened("ab\u{202e}d", 3), r"ab\xe2\x80\xae…");
    }

    #[test]
    fn cells_have_bytes_as_well() {
        let hostile = b"a\tb\nc\\d\x1b[31m\x7f\xc2\x9bm\xff\r\xc3\xa9\xe2\x80\xae";
        assert_eq!(cell(hostile), r"a\tb\nc\\d\x1b[31m\x7f\xc2\x9bm\xff\x0dé\xe2\x80\xae");
    }

    #[test]
    fn masks_keep_places() {
        assert_eq!(masked("a\tb\u{202e}\x1b", |char| char == '\t'), "a\tb??");
        let text = masked_in_place("a\n\t\x1b\u{9b}\u{202e}b", |char| char == '\n' || char == '\t');
        assert_eq!(text, "a\n\t?\u{bf}\u{fffd}b");
        assert_eq!(text.find('b'), "a\n\t\x1b\u{9b}\u{202e}b".find('b'));
    }

    proptest! {
        #[test]
        fn cells_and_json_can_be_undone(
            bytes in prop::collection::vec(any::<u8>(), 0..40),
            text in prop_oneof![".*", Just(UNSAFE.to_owned()), r"[\\xtn0-9a-f]{0,12}"],
        ) {
            for text in [&bytes[..], text.as_bytes()] {
                let escaped = cell(text);
                prop_assert!(!escaped.contains(is_unsafe), "{escaped:?}");
                let mut back = Vec::new();
                unescape_cell(escaped.as_bytes(), &mut back);
                prop_assert_eq!(&back, text);
            }
            let mut json = Vec::new();
            json_string(text.as_bytes(), &mut json);
            let json = String::from_utf8(json).unwrap();
            prop_assert!(!json.contains(is_unsafe), "{json:?}");
            prop_assert_eq!(&serde_json::from_str::<String>(&json).unwrap(), &text);
            let value = serde_json::json!({ text.clone(): [text.clone()] });
            let pretty = serde_json::to_string_pretty(&value).unwrap();
            let escaped = escaped_json(&pretty);
            prop_assert!(!escaped.replace('\n', "").contains(is_unsafe), "{escaped:?}");
            prop_assert_eq!(serde_json::from_str::<serde_json::Value>(&escaped).unwrap(), value);
            prop_assert_eq!(masked_in_place(&text, |_| false).len(), text.len());
        }
    }
}
