//! Units: the base unit of a series, and exact conversion to it.

/// The conversion of a unit to its base unit.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct BaseUnit {
    /// The base unit, which ends the name of a series; empty if OpenMetrics has none.
    pub base: &'static str,
    factor: i128,
    /// Decimal places that a number is shifted by.
    places: u32,
}

impl BaseUnit {
    /// No conversion.
    pub const NONE: BaseUnit = BaseUnit::new("", 1, 0);
    /// The unit of durations without a stated unit.
    pub const NANOSECONDS: BaseUnit = BaseUnit::new("seconds", 1, 9);

    const fn new(base: &'static str, factor: i128, places: u32) -> BaseUnit {
        BaseUnit { base, factor, places }
    }

    /// The unit that a frame file names. An unknown unit does not appear in the name.
    pub fn read(text: &str) -> BaseUnit {
        match text {
            "ns" => BaseUnit::NANOSECONDS,
            "us" | "µs" | "μs" => BaseUnit::new("seconds", 1, 6),
            "ms" => BaseUnit::new("seconds", 1, 3),
            "s" | "sec" | "second" | "seconds" => BaseUnit::new("seconds", 1, 0),
            "min" => BaseUnit::new("seconds", 60, 0),
            "h" => BaseUnit::new("seconds", 3600, 0),
            "B" | "byte" | "bytes" => BaseUnit::new("bytes", 1, 0),
            "kB" | "KB" => BaseUnit::new("bytes", 1000, 0),
            "MB" => BaseUnit::new("bytes", 1_000_000, 0),
            "GB" => BaseUnit::new("bytes", 1_000_000_000, 0),
            "KiB" => BaseUnit::new("bytes", 1 << 10, 0),
            "MiB" => BaseUnit::new("bytes", 1 << 20, 0),
            "GiB" => BaseUnit::new("bytes", 1 << 30, 0),
            "%" => BaseUnit::new("ratio", 1, 2),
            _ => BaseUnit::NONE,
        }
    }

    /// A number of this unit in the base unit.
    pub fn decimal(self, number: i128) -> String {
        let number = number.saturating_mul(self.factor);
        let scale = 10u128.pow(self.places);
        let (whole, part) = (number.unsigned_abs() / scale, number.unsigned_abs() % scale);
        let sign = if number < 0 { "-" } else { "" };
        if part == 0 {
            return format!("{sign}{whole}");
        }
        let part = format!("{part:0width$}", width = self.places as usize);
        format!("{sign}{whole}.{}", part.trim_end_matches('0'))
    }

    /// The bound of a bucket, in the spelling of Prometheus: its programs compare the text.
    pub fn bound(self, number: i128) -> String {
        let number = number.saturating_mul(self.factor) as f64 / 10f64.powi(self.places as i32);
        let short = format!("{number:e}");
        let (digits, exponent) = short.split_once('e').unwrap_or((&short, "0"));
        let exponent: i32 = exponent.parse().unwrap_or_default();
        if number != 0.0 && !(-4..21).contains(&exponent) {
            let sign = if exponent < 0 { '-' } else { '+' };
            return format!("{digits}e{sign}{:02}", exponent.unsigned_abs());
        }
        let plain = number.to_string();
        if plain.contains('.') { plain } else { plain + ".0" }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_are_exact_in_the_base_unit() {
        let decimal = |unit: &str, number| BaseUnit::read(unit).decimal(number);
        assert_eq!(decimal("ns", 1_500_000_001), "1.500000001");
        assert_eq!(decimal("us", -1), "-0.000001");
        assert_eq!(decimal("ms", 2000), "2");
        assert_eq!(decimal("min", 3), "180");
        assert_eq!(decimal("KiB", u64::MAX.into()), "18889465931478580853760");
        assert_eq!(decimal("%", 1250), "12.5");
        assert_eq!(decimal("frames", -7), "-7");
        assert_eq!(BaseUnit::read("frames").base, "");
    }

    #[test]
    fn bounds_are_spelt_as_prometheus_spells_them() {
        let bound = |unit: &str, number| BaseUnit::read(unit).bound(number);
        assert_eq!(bound("ns", 255), "2.55e-07");
        assert_eq!(bound("ns", 1_048_575), "0.001048575");
        assert_eq!(bound("ns", 68_719_476_735), "68.719476735");
        assert_eq!(bound("n", 9), "9.0");
        assert_eq!(bound("n", 0), "0.0");
        assert_eq!(bound("n", i128::from(u64::MAX)), "18446744073709552000.0");
    }
}
