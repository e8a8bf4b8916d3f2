//! Numbers.

use crate::ast::SourceWord;
use crate::diagnostic::DiagnosticSink;
use crate::mistake::{NumberFault, SyntaxMistake};
use crate::schema::MAX_NAME_BYTES;

/// The value of a decimal or hexadecimal number. Anything else is reported.
pub(super) fn value(word: &SourceWord, sink: &mut DiagnosticSink) -> Option<i128> {
    match read(&word.text) {
        Ok(value) => Some(value),
        Err(fault) => {
            let text = word.text.clone();
            sink.report(word.span.clone(), SyntaxMistake::BadNumber { text, fault });
            None
        }
    }
}

fn read(text: &str) -> Result<i128, NumberFault> {
    let (sign, digits) = match text.strip_prefix('-') {
        Some(digits) => (-1, digits),
        None => (1, text),
    };
    let hex = digits.strip_prefix("0x").or_else(|| digits.strip_prefix("0X"));
    let (radix, digits) = hex.map_or((10, digits), |digits| (16, digits));
    if digits.is_empty() || !digits.chars().all(|digit| digit.is_digit(radix)) {
        return Err(NumberFault::Malformed);
    }
    if radix == 10 && digits.len() > 1 && digits.starts_with('0') {
        return Err(NumberFault::LeadingZero);
    }
    // Longer words are cut, and their remainder is another number.
    if text.len() > MAX_NAME_BYTES {
        return Err(NumberFault::TooLarge);
    }
    match i128::from_str_radix(digits, radix) {
        Ok(value) if value <= i128::from(u64::MAX) => Ok(sign * value),
        _ => Err(NumberFault::TooLarge),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers() {
        assert_eq!(read("16384"), Ok(16384));
        assert_eq!(read("-1"), Ok(-1));
        assert_eq!(read("0"), Ok(0));
        assert_eq!(read("0xff"), Ok(255));
        assert_eq!(read("18446744073709551615"), Ok(i128::from(u64::MAX)));
        assert_eq!(read("18446744073709551616"), Err(NumberFault::TooLarge));
        assert_eq!(read(&"9".repeat(64)), Err(NumberFault::TooLarge));
        assert_eq!(read("010"), Err(NumberFault::LeadingZero));
        for text in ["16k", "1.5", "0x", "1_000", "0xg"] {
            assert_eq!(read(text), Err(NumberFault::Malformed), "{text}");
        }
    }
}
