//! Decimal numbers of seconds as nanoseconds, exactly.

/// Significant decimal places. Further digits are cut off.
const DIGITS: usize = 9;

/// Parses `-0.000006523` as -6523. `None` if it is not such a number, or does not fit 64 bits.
pub(super) fn ns(text: &str) -> Option<i64> {
    let (sign, text) = match text.as_bytes().first()? {
        b'-' => (-1, &text[1..]),
        b'+' => (1, &text[1..]),
        _ => (1, text),
    };
    let (whole, part) = text.split_once('.').unwrap_or((text, "0"));
    let is_number = |text: &str| !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit());
    if !is_number(whole) || !is_number(part) {
        return None;
    }
    let part = &part[..part.len().min(DIGITS)];
    let part = part.parse::<i64>().ok()? * 10i64.pow((DIGITS - part.len()) as u32);
    let ns = whole.parse::<i64>().ok()?.checked_mul(1_000_000_000)?.checked_add(part)?;
    Some(sign * ns)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn seconds_are_ns() {
        for (text, expected) in [
            ("0.000000012", 12),
            ("-0.000006747", -6747),
            ("+1.5", 1_500_000_000),
            ("42", 42_000_000_000),
            ("650.123", 650_123_000_000),
            ("0.0000000019", 1),
        ] {
            assert_eq!(ns(text), Some(expected), "{text}");
        }
        for text in
            ["", "-", "+-1", "1.", ".5", "1e3", "0x1", "nan", "1.2.3", " 1", "9999999999999", "1.é"]
        {
            assert_eq!(ns(text), None, "{text}");
        }
    }

    proptest! {
        #[test]
        fn all_ns_are_read(value in -4_000_000_000_000_000_000i64..4_000_000_000_000_000_000) {
            let (s, part) = (value.unsigned_abs() / 1_000_000_000, value.unsigned_abs() % 1_000_000_000);
            let sign = if value < 0 { "-" } else { "" };
            prop_assert_eq!(ns(&format!("{sign}{s}.{part:09}")), Some(value));
        }

        #[test]
        fn nothing_panics(text in ".*") {
            ns(&text);
        }
    }
}
