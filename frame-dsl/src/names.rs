//! Names, and the names that the generators derive from them.

use crate::schema::MAX_NAME_BYTES;

/// Whether `name` is a letter or `_`, followed by letters, digits and `_`, all ASCII, and has at
/// most [`MAX_NAME_BYTES`].
pub fn is_identifier(name: &str) -> bool {
    let mut bytes = name.bytes();
    bytes.next().is_some_and(|first| first.is_ascii_alphabetic() || first == b'_')
        && bytes.all(|byte| byte.is_ascii_alphanumeric() || byte == b'_')
        && name.len() <= MAX_NAME_BYTES
}

/// The spelling of types and enum values in Rust: `job` → `Job`, `LOG_IN` → `LogIn`, `sessionKey` →
/// `SessionKey`. The checker rejects two names with the same spelling.
pub fn upper_camel(name: &str) -> String {
    let mut camel = String::with_capacity(name.len());
    for part in name.split('_') {
        let shouted = !part.bytes().any(|byte| byte.is_ascii_lowercase());
        let mut chars = part.chars();
        camel.extend(chars.next().map(|first| first.to_ascii_uppercase()));
        camel.extend(chars.map(|c| if shouted { c.to_ascii_lowercase() } else { c }));
    }
    camel
}

/// The C macro that writes a frame in one statement: `PPT_WRITE_JOB`, `PPT_BEGIN_REQUEST`.
pub fn block_macro(verb: &str, frame: &str) -> String {
    format!("PPT_{verb}_{frame}").to_ascii_uppercase()
}

/// The macro that identifies the header declaring a frame or a buffer: `PPT_FRAME_JOB_IS_OF`.
pub fn claim_macro(what: &str, name: &str) -> String {
    format!("PPT_{what}_{name}_IS_OF").to_ascii_uppercase()
}

/// The enum of the field that ppt adds to a span or a chain: `RequestEdge`, `EncodeStep`.
pub fn mark_enum(frame: &str, field: &str) -> String {
    format!("{}{}", upper_camel(frame), upper_camel(field))
}

/// The macro that sets a field of the thread's frame in C: `WRITE_JOB_KIND`.
pub fn field_macro(frame: &str, field: &str) -> String {
    format!("WRITE_{frame}_{field}").to_ascii_uppercase()
}

/// The macro that stamps such a field: `WRITE_JOB_START_TIMESTAMP`.
pub fn stamp_macro(frame: &str, field: &str) -> String {
    field_macro(frame, field) + "_TIMESTAMP"
}

/// A value of an enum in C: `JOB_KIND_LOGIN`. Values of a frame's own enum are named after the
/// frame: `SERVER_REQUEST_BEGIN`.
pub fn enumerator(buffer: &str, of: &str, value: &str) -> String {
    format!("{buffer}_{of}_{value}").to_ascii_uppercase()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn camel() {
        for (name, camel) in [
            ("job", "Job"),
            ("LOGIN", "Login"),
            ("LOG_IN", "LogIn"),
            ("primary_loop", "PrimaryLoop"),
            ("sessionKey", "SessionKey"),
            ("in_", "In"),
            ("HTTP2", "Http2"),
            ("SELF", "Self"),
        ] {
            assert_eq!(upper_camel(name), camel);
        }
    }

    #[test]
    fn identifiers() {
        assert!(is_identifier("a") && is_identifier("_9") && is_identifier(&"x".repeat(64)));
        for name in ["", "9", "a b", "ä", "a-b", &"x".repeat(65)] {
            assert!(!is_identifier(name), "{name}");
        }
    }
}
