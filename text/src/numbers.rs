//! Numbers for people, on a terminal or a page.

use crate::escape::escaped;

/// `1234567` as `1,234,567`.
pub fn grouped(number: u64) -> String {
    let digits = number.to_string();
    let mut out = String::with_capacity(digits.len() * 4 / 3);
    for (index, digit) in digits.chars().enumerate() {
        if index > 0 && (digits.len() - index).is_multiple_of(3) {
            out.push(',');
        }
        out.push(digit);
    }
    out
}

/// A number with three significant digits; more for large integers.
pub fn three(value: f64) -> String {
    let size = value.abs();
    if !value.is_finite() {
        return value.to_string();
    }
    if value.fract() == 0.0 && size < 1e15 {
        let sign = if value < 0.0 { "-" } else { "" };
        return format!("{sign}{}", grouped(size as u64));
    }
    match size {
        1e15.. => format!("{value:.2e}"),
        999.5.. => {
            let sign = if value < 0.0 { "-" } else { "" };
            format!("{sign}{}", grouped(size.round() as u64))
        }
        99.95.. => format!("{value:.0}"),
        9.995.. => format!("{value:.1}"),
        0.9995.. => format!("{value:.2}"),
        1e-3.. => format!("{value:.3}"),
        _ => format!("{value:.2e}"),
    }
}

/// ns with a suitable unit.
pub fn duration(ns: f64) -> String {
    let units = [(1e9, "s"), (1e6, "ms"), (1e3, "µs")];
    // 999.9 of a unit are shown as 1 of the next.
    let unit = units.into_iter().find(|(each, _)| ns.abs() >= each * 0.9995);
    let (value, unit) = match unit {
        Some((each, unit)) => (ns / each, unit),
        None => return format!("{} ns", three(ns)),
    };
    let digits = match value.abs() {
        999.5.. => 0,
        99.95.. => 0,
        9.995.. => 1,
        _ => 2,
    };
    if value.abs() >= 1000.0 {
        format!("{} {unit}", three(value.round()))
    } else {
        format!("{value:.digits$} {unit}")
    }
}

/// A field's number with its unit.
pub fn measured(value: f64, unit: &str) -> String {
    match unit {
        "ns" => duration(value),
        "" => three(value),
        unit => format!("{} {unit}", three(value)),
    }
}

/// A sum, which may be negative.
pub fn counted_up(sum: i128) -> String {
    let sign = if sum < 0 { "-" } else { "" };
    format!("{sign}{}", grouped(u64::try_from(sum.unsigned_abs()).unwrap_or(u64::MAX)))
}

/// A bucket of a histogram: `from ≤ value < to`. Values are integers, or durations in ns unless a
/// unit is given.
pub fn bucket(of: Option<(Option<i128>, Option<i128>)>, unit: &str, is_time: bool) -> String {
    let value = |value: i128| match (unit, is_time) {
        ("", true) => duration(value as f64),
        (unit, _) => measured(value as f64, &escaped(unit)),
    };
    match of {
        Some((Some(lo), Some(hi))) if lo + 1 == hi => value(lo),
        Some((Some(lo), Some(hi))) => format!("{} to {}", value(lo), value(hi)),
        Some((Some(lo), None)) => format!("{} or more", value(lo)),
        Some((None, Some(hi))) => format!("below {}", value(hi)),
        _ => "–".to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn three_digits_are_enough() {
        let all = [0.0, 12.0, 12.345, 123.45, 999.96, 1234.6, 1e7, 0.01234, 1.5e-7, -2.5, -1e6];
        let texts = all.map(three);
        let expected = [
            "0",
            "12",
            "12.3",
            "123",
            "1,000",
            "1,235",
            "10,000,000",
            "0.012",
            "1.50e-7",
            "-2.50",
            "-1,000,000",
        ];
        assert_eq!(texts, expected);
    }

    #[test]
    fn durations_have_the_unit_that_fits() {
        let all = [0.0, 12.0, 999.0, 12_000.0, 48_123.0, 1_200_000.0, 999_990.0, 5.07e9, 3e12];
        let texts = all.map(duration);
        let expected = [
            "0 ns", "12 ns", "999 ns", "12.0 µs", "48.1 µs", "1.20 ms", "1.00 ms", "5.07 s",
            "3,000 s",
        ];
        assert_eq!(texts, expected);
        assert_eq!(duration(-1500.0), "-1.50 µs");
    }
}
