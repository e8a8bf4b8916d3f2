//! Text from a target, made safe for a terminal and for a cell.

use std::io::Write;

/// Appends `text` with `\t`, `\n`, `\\`, and `\xNN` for other control characters (DEL and C1
/// included) and for what is not UTF-8.
pub(crate) fn escape_into(text: &[u8], out: &mut Vec<u8>) {
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
                _ if char.is_control() => hex_bytes(bytes, out),
                _ => out.extend_from_slice(bytes),
            }
        }
        hex_bytes(chunk.invalid(), out);
    }
}

fn hex_bytes(bytes: &[u8], out: &mut Vec<u8>) {
    for byte in bytes {
        // Writing to a Vec cannot fail.
        let _ = write!(out, "\\x{byte:02x}");
    }
}

/// Escapes text from a target for a message, as in a TSV cell. It also escapes the characters that
/// change the direction of the text around them.
pub fn escape(text: &str) -> String {
    let mut out = Vec::with_capacity(text.len());
    for part in text.split_inclusive(directs) {
        let plain = part.trim_end_matches(directs);
        escape_into(plain.as_bytes(), &mut out);
        hex_bytes(&part.as_bytes()[plain.len()..], &mut out);
    }
    String::from_utf8_lossy(&out).into_owned()
}

fn directs(c: char) -> bool {
    matches!(c, '\u{61c}' | '\u{200e}' | '\u{200f}')
        || matches!(c, '\u{202a}'..='\u{202e}' | '\u{2066}'..='\u{2069}')
}

/// Appends `text` as a JSON string: what is not UTF-8 becomes U+FFFD, control characters (DEL and
/// C1 included) `\u00NN`.
pub(crate) fn json_string(text: &[u8], out: &mut Vec<u8>) {
    out.push(b'"');
    for chunk in text.utf8_chunks() {
        for char in chunk.valid().chars() {
            match char {
                '"' => out.extend_from_slice(b"\\\""),
                '\\' => out.extend_from_slice(b"\\\\"),
                '\n' => out.extend_from_slice(b"\\n"),
                '\t' => out.extend_from_slice(b"\\t"),
                _ if char.is_control() => {
                    let _ = write!(out, "\\u{:04x}", u32::from(char));
                }
                _ => out.extend_from_slice(char.encode_utf8(&mut [0; 4]).as_bytes()),
            }
        }
        if !chunk.invalid().is_empty() {
            out.extend_from_slice("\u{fffd}".as_bytes());
        }
    }
    out.push(b'"');
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn messages_keep_their_direction() {
        assert_eq!(escape("a\u{202e}\u{2066}b\n"), r"a\xe2\x80\xae\xe2\x81\xa6b\n");
    }

    #[test]
    fn nothing_that_a_terminal_obeys_gets_through() {
        let hostile = b"a\tb\nc\\d\x1b[31m\x7f\xc2\x9bm\xff\r\xc3\xa9";
        let mut out = Vec::new();
        escape_into(hostile, &mut out);
        let expected = r"a\tb\nc\\d\x1b[31m\x7f\xc2\x9bm\xff\x0dé";
        assert_eq!(String::from_utf8(out).unwrap(), expected);

        let mut out = Vec::new();
        json_string(hostile, &mut out);
        let text: String = serde_json::from_slice(&out).unwrap();
        assert_eq!(text, "a\tb\nc\\d\x1b[31m\x7f\u{9b}m\u{fffd}\ré");
        assert!(!String::from_utf8(out).unwrap().chars().any(char::is_control));
    }
}
