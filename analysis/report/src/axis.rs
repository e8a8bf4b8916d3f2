//! Positions of values on an axis, and labels of its ticks.

use ppt_query::text::{duration, three};

/// An axis from the smallest value to the largest.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Axis {
    low: f64,
    high: f64,
    log: bool,
}

/// Ratio of the largest to the smallest value from which on the axis is logarithmic.
const WIDE: f64 = 50.0;

impl Axis {
    /// A linear axis from `low` to `high`.
    pub fn linear(low: f64, high: f64) -> Axis {
        let high = if high > low { high } else { low + low.abs().max(1.0) };
        Axis { low, high, log: false }
    }

    /// A logarithmic axis; both ends are above 0.
    pub fn log(low: f64, high: f64) -> Axis {
        let high = if high > low { high } else { low * 2.0 };
        Axis { low, high, log: true }
    }

    /// The axis that shows values best: logarithmic if none is negative and they differ by a factor of
    /// [`WIDE`], otherwise linear and including 0.
    pub fn covering(values: impl Iterator<Item = f64> + Clone) -> Axis {
        let finite = values.filter(|value| value.is_finite());
        let low = finite.clone().fold(f64::INFINITY, f64::min);
        let high = finite.clone().fold(f64::NEG_INFINITY, f64::max);
        if low > high {
            return Axis::linear(0.0, 1.0);
        }
        // A few zeros do not prevent a logarithmic axis: they are drawn at its lower end.
        let least = finite.filter(|&value| value > 0.0).fold(f64::INFINITY, f64::min);
        if low >= 0.0 && least.is_finite() && high / least >= WIDE {
            return Axis::log(least, high);
        }
        Axis::linear(low.min(0.0), high.max(0.0))
    }

    /// Whether it is logarithmic.
    pub fn is_log(&self) -> bool {
        self.log
    }

    /// The position of a value: 0 is the beginning, 1 the end.
    pub fn place(&self, value: f64) -> f64 {
        let place = if self.log {
            (value.max(self.low).ln() - self.low.ln()) / (self.high.ln() - self.low.ln())
        } else {
            (value - self.low) / (self.high - self.low)
        };
        if place.is_finite() { place.clamp(0.0, 1.0) } else { 0.0 }
    }

    /// About `count` round values within the axis.
    pub fn ticks(&self, count: usize) -> Vec<f64> {
        let count = count.max(1);
        if self.log {
            let first = self.low.log10().ceil() as i32;
            let last = self.high.log10().floor() as i32;
            if last - first >= 1 {
                let step = ((last - first) as usize / count + 1).max(1);
                return (first..=last).step_by(step).map(|number| 10f64.powi(number)).collect();
            }
        }
        let step = round_step((self.high - self.low) / count as f64);
        let first = (self.low / step).ceil() as i64;
        let ticks = (first..).take(4 * count + 2).map(|number| number as f64 * step);
        ticks.take_while(|&tick| tick <= self.high * (1.0 + 1e-9)).collect()
    }
}

/// The next greater 1, 2 or 5 times a power of ten.
pub fn round_step(least: f64) -> f64 {
    if least <= 0.0 || !least.is_finite() {
        return 1.0;
    }
    let ten = 10f64.powf(least.log10().floor());
    let each = [1.0, 2.0, 5.0, 10.0].into_iter().find(|value| value * ten >= least * (1.0 - 1e-9));
    each.unwrap_or(10.0) * ten
}

/// A round value with its unit, without trailing zeros.
pub fn label(value: f64, unit: &str) -> String {
    let text = match unit {
        "ns" if value == 0.0 => return "0".to_owned(),
        "ns" => duration(value),
        _ if value == 0.0 => return "0".to_owned(),
        // Removes rounding errors of added steps.
        _ => three((value * 1e12).round() / 1e12),
    };
    let (number, rest) = text.split_once(' ').unwrap_or((&text, ""));
    let number = if number.contains('.') && !number.contains('e') {
        number.trim_end_matches('0').trim_end_matches('.')
    } else {
        number
    };
    match (rest, unit) {
        ("", "" | "ns") => number.to_owned(),
        ("", unit) => format!("{number} {unit}"),
        (rest, _) => format!("{number} {rest}"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ticks_are_round() {
        assert_eq!(Axis::linear(0.0, 9.7).ticks(4), [0.0, 5.0]);
        assert_eq!(Axis::linear(0.0, 1.0).ticks(5), [0.0, 0.2, 0.4, 0.6000000000000001, 0.8, 1.0]);
        assert_eq!(Axis::linear(-3.0, 3.0).ticks(3), [-2.0, 0.0, 2.0]);
        assert_eq!(Axis::log(3.0, 3000.0).ticks(5), [10.0, 100.0, 1000.0]);
        assert_eq!(Axis::log(1.0, 1e12).ticks(4).len(), 4);
        assert_eq!(Axis::covering([7.0].into_iter()).ticks(1), [0.0]);
        let huge = Axis::linear(-1e300, 1e300).ticks(4);
        assert!(huge.len() < 20, "{huge:?}");
    }

    #[test]
    fn the_values_say_which_axis() {
        assert!(Axis::covering([1.0, 2.0, 200.0].into_iter()).is_log());
        assert!(Axis::covering([0.0, 2.0, 200.0].into_iter()).is_log());
        assert!(!Axis::covering([-1.0, 2.0, 200.0].into_iter()).is_log());
        assert!(!Axis::covering([1.0, 2.0].into_iter()).is_log());
        assert_eq!(Axis::covering([f64::NAN].into_iter()), Axis::linear(0.0, 1.0));
    }

    #[test]
    fn labels_have_no_idle_zeros() {
        assert_eq!(label(2e9, "ns"), "2 s");
        assert_eq!(label(1.5e6, "ns"), "1.5 ms");
        assert_eq!(label(1000.0, ""), "1,000");
        assert_eq!(label(0.6000000000000001, ""), "0.6");
        assert_eq!(label(20.0, "B"), "20 B");
        assert_eq!(label(0.0, "ns"), "0");
    }
}
