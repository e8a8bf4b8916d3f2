//! Exact decimal numbers.

/// `text`, a decimal number, times `scale`, rounded down to an integer. None for text that is not a
/// number, and for a number that an i64 cannot hold.
pub(crate) fn scaled(text: &str, scale: u64) -> Option<i64> {
    let text = text.trim();
    let (negative, digits) = match text.strip_prefix('-') {
        Some(rest) => (true, rest),
        None => (false, text.strip_prefix('+').unwrap_or(text)),
    };
    let (whole, fraction) = digits.split_once('.').unwrap_or((digits, ""));
    let is_plain = |text: &str| text.bytes().all(|byte| byte.is_ascii_digit());
    if !is_plain(whole) || !is_plain(fraction) || whole.len() + fraction.len() == 0 {
        return exponent(text, scale);
    }
    let scale = i128::from(scale);
    let whole: i128 = if whole.is_empty() { 0 } else { whole.parse().ok()? };
    // 18 digits are more than any scale resolves.
    let fraction = &fraction[..fraction.len().min(18)];
    let part = match fraction.parse::<i128>() {
        Ok(part) => part.checked_mul(scale)? / 10_i128.pow(fraction.len() as u32),
        Err(_) => 0,
    };
    let number = whole.checked_mul(scale)?.checked_add(part)?;
    i64::try_from(if negative { -number } else { number }).ok()
}

/// Like [`scaled`] for numbers such as `1.5e-3`, with the precision of a double.
fn exponent(text: &str, scale: u64) -> Option<i64> {
    let number = text.parse::<f64>().ok().filter(|_| text.contains(['e', 'E']))? * scale as f64;
    let fits = number.is_finite() && number.abs() < i64::MAX as f64;
    fits.then_some(number.round() as i64)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn decimals_are_exact() {
        assert_eq!(scaled("1700000000.123456789", 1_000_000_000), Some(1_700_000_000_123_456_789));
        assert_eq!(scaled("-0.5", 1000), Some(-500));
        assert_eq!(scaled(".25", 1000), Some(250));
        assert_eq!(scaled("7.", 1), Some(7));
        assert_eq!(scaled("+12", 1), Some(12));
        assert_eq!(scaled("1.5e-3", 1_000_000), Some(1500));
        assert_eq!(scaled("0.0000000019", 1_000_000_000), Some(1), "the rest is below the scale");
    }

    #[test]
    fn other_text_is_no_number() {
        for text in ["", ".", "-", "1,5", "1_000", "0x10", "nan", "inf", "1e400", "1 2", "١"] {
            assert_eq!(scaled(text, 1), None, "{text}");
        }
        assert_eq!(scaled("9300000000", 1_000_000_000), None, "more than an i64");
    }
}
