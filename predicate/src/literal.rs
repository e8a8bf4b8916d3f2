//! Converts literals to values.

use ppt_frame_dsl::SourceRange;

use crate::ast::ComparedValue;
use crate::error::{PlacedProblem, Problem};
use crate::units::UnitFactor;

/// The value of a number with an optional unit.
pub(crate) fn number(text: &str, span: SourceRange) -> Result<ComparedValue, PlacedProblem> {
    let fail = |problem| PlacedProblem::new(span.clone(), problem);
    let (negative, rest) = match text.strip_prefix('-') {
        Some(rest) => (true, rest.trim_start_matches(' ')),
        None => (false, text),
    };
    let digits = |text: &str| text.bytes().take_while(u8::is_ascii_digit).count();
    let (whole, mut rest) = rest.split_at(digits(rest));
    let mut part = None;
    if let Some(after) = rest.strip_prefix('.') {
        let (found, after) = after.split_at(digits(after));
        (part, rest) = (Some(found), after);
    }
    let sign = |value: i128| if negative { -value } else { value };
    if is_exponent(rest) || rest.is_empty() && part.is_some() {
        let text: String = text.chars().filter(|&c| c != ' ').collect();
        let value: f64 = text.parse().map_err(|_| fail(Problem::NoNumber))?;
        return if value.is_finite() {
            Ok(ComparedValue::Real(value))
        } else {
            Err(fail(Problem::TooLarge))
        };
    }
    if rest.is_empty() {
        let value = whole.parse::<i128>().map(sign).map_err(|_| fail(Problem::TooLarge))?;
        let range = i128::from(i64::MIN)..=i128::from(u64::MAX);
        return if range.contains(&value) {
            Ok(ComparedValue::Whole(value))
        } else {
            Err(fail(Problem::TooLarge))
        };
    }
    let Some(unit) = UnitFactor::by_name(rest) else {
        let at = span.end - rest.len()..span.end;
        let is_word = rest.bytes().all(|byte| byte.is_ascii_alphabetic() || !byte.is_ascii());
        return Err(if is_word {
            PlacedProblem::new(at, Problem::NoUnit { name: rest.to_owned() })
        } else {
            fail(Problem::NoNumber)
        });
    };
    // Exact: every digit counts, and a remainder is an error.
    let part = part.unwrap_or_default();
    let scale = 10i128.checked_pow(part.len() as u32);
    let digits = format!("{whole}{part}").parse::<i128>().ok();
    let product = digits.and_then(|digit| digit.checked_mul(unit.each.into()));
    let (Some(scale), Some(product)) = (scale, product) else {
        return Err(fail(Problem::TooLarge));
    };
    if product % scale != 0 {
        return Err(fail(Problem::Fraction));
    }
    let value = i64::try_from(sign(product / scale)).map_err(|_| fail(Problem::TooLarge))?;
    Ok(unit.value(value))
}

/// `e5`, `E-3`.
fn is_exponent(text: &str) -> bool {
    let Some(rest) = text.strip_prefix(['e', 'E']) else { return false };
    let digits = rest.strip_prefix(['+', '-']).unwrap_or(rest);
    !digits.is_empty() && digits.bytes().all(|byte| byte.is_ascii_digit())
}

/// The text between quotes, with doubled quotes reduced to one.
pub(crate) fn quoted(text: &str, quote: char) -> String {
    let inner = text.strip_prefix(quote).and_then(|text| text.strip_suffix(quote)).unwrap_or(text);
    let doubled: String = [quote, quote].iter().collect();
    inner.replace(&doubled, &quote.to_string())
}

/// The bytes of `X'00ff'`.
pub(crate) fn hex(text: &str, span: SourceRange) -> Result<ComparedValue, PlacedProblem> {
    let digits = quoted(&text[1..], '\'');
    let bytes = hex::decode(digits.as_bytes());
    bytes.map(ComparedValue::Bytes).map_err(|_| PlacedProblem::new(span, Problem::NoHex))
}

/// ns since the epoch at a time in UTC: `2026-11-21T15:04:05.5Z`, `2026-11-21 15:04:05`.
pub(crate) fn time(text: &str) -> Option<i64> {
    let time = humantime::parse_rfc3339_weak(text).ok()?;
    let since = time.duration_since(std::time::UNIX_EPOCH).ok()?;
    i64::try_from(since.as_nanos()).ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn value(text: &str) -> Result<ComparedValue, Problem> {
        number(text, 0..text.len()).map_err(|why| why.problem)
    }

    #[test]
    fn numbers_are_whole_real_or_have_a_unit() {
        assert_eq!(value("0"), Ok(ComparedValue::Whole(0)));
        assert_eq!(value("- 7"), Ok(ComparedValue::Whole(-7)));
        assert_eq!(value("18446744073709551615"), Ok(ComparedValue::Whole(u64::MAX.into())));
        assert_eq!(value("-9223372036854775808"), Ok(ComparedValue::Whole(i64::MIN.into())));
        assert_eq!(value("1.5"), Ok(ComparedValue::Real(1.5)));
        assert_eq!(value("1."), Ok(ComparedValue::Real(1.0)));
        assert_eq!(value("-1e-3"), Ok(ComparedValue::Real(-0.001)));
        assert_eq!(value("2E3"), Ok(ComparedValue::Real(2000.0)));
        assert_eq!(value("10ms"), Ok(ComparedValue::Duration(10_000_000)));
        assert_eq!(value("-1.5us"), Ok(ComparedValue::Duration(-1500)));
        assert_eq!(value("2µs"), Ok(ComparedValue::Duration(2000)));
        assert_eq!(value("0.000000001s"), Ok(ComparedValue::Duration(1)));
        assert_eq!(value("2d"), Ok(ComparedValue::Duration(172_800_000_000_000)));
        assert_eq!(value("4KiB"), Ok(ComparedValue::Size(4096)));
        assert_eq!(value("1.5kB"), Ok(ComparedValue::Size(1500)));
    }

    #[test]
    fn numbers_without_a_value_are_refused() {
        let no_unit = |name: &str| Err(Problem::NoUnit { name: name.to_owned() });
        assert_eq!(value("10msec"), no_unit("msec"));
        assert_eq!(value("4kb"), no_unit("kb"));
        assert_eq!(value("0.5ns"), Err(Problem::Fraction));
        assert_eq!(value("1.0005us"), Err(Problem::Fraction));
        assert_eq!(value("300000d"), Err(Problem::TooLarge));
        assert_eq!(value("18446744073709551616"), Err(Problem::TooLarge));
        assert_eq!(value("-9223372036854775809"), Err(Problem::TooLarge));
        assert_eq!(value(&"9".repeat(1000)), Err(Problem::TooLarge));
        assert_eq!(value(&format!("1.{}s", "0".repeat(1000))), Err(Problem::TooLarge));
        assert_eq!(value("1e999"), Err(Problem::TooLarge));
        assert_eq!(value("1..2"), Err(Problem::NoNumber));
        assert_eq!(value("1_000"), Err(Problem::NoNumber));
        assert_eq!(value("0x10"), Err(Problem::NoNumber));
    }

    #[test]
    fn quotes_stand_doubled_for_one() {
        assert_eq!(quoted("'it''s'", '\''), "it's");
        assert_eq!(quoted("''''", '\''), "'");
        assert_eq!(quoted("\"a\"\"b\"", '"'), "a\"b");
        assert_eq!(hex("X'00fF'", 0..7).ok(), Some(ComparedValue::Bytes(vec![0, 255])));
        assert!(hex("x'0'", 0..4).is_err() && hex("x'gg'", 0..5).is_err());
    }
}
