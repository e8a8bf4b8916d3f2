//! The distribution of a field's latest values.

use ppt_stats::Sketch;

/// The values of the latest one or two equal periods.
#[derive(Debug, Clone)]
pub(crate) struct RecentNumbers {
    /// The length of a period in ns. None if all time is one period.
    period: Option<u64>,
    /// The number of the second period.
    current: u64,
    /// The values of the two periods, earlier first.
    periods: [PeriodNumbers; 2],
}

/// The values of a period.
#[derive(Debug, Clone, Default)]
pub(crate) struct PeriodNumbers {
    pub sketch: Sketch,
    pub max: Option<f64>,
    pub sum: f64,
}

impl RecentNumbers {
    pub fn new(period: Option<u64>) -> Self {
        RecentNumbers { period, current: 0, periods: Default::default() }
    }

    /// The period to which values at `now` belong.
    pub fn period_at(&mut self, now: u64) -> &mut PeriodNumbers {
        let number = self.period.map_or(0, |period| now / period);
        if number > self.current {
            let last = std::mem::take(&mut self.periods[1]);
            let follows = number == self.current + 1;
            self.periods[0] = if follows { last } else { PeriodNumbers::default() };
            self.current = number;
        }
        &mut self.periods[1]
    }

    /// The values remembered at `now`.
    pub fn remembered(&self, now: u64) -> PeriodNumbers {
        let elapsed = self.period.map_or(0, |period| (now / period).saturating_sub(self.current));
        match elapsed {
            0 => {
                let mut numbers = self.periods[1].clone();
                numbers.join(&self.periods[0]);
                numbers
            }
            1 => self.periods[1].clone(),
            _ => PeriodNumbers::default(),
        }
    }

    /// The start of the values remembered at `now`, in ns.
    pub fn remembered_since(&self, now: u64) -> u64 {
        self.period.map_or(0, |period| (now / period).saturating_sub(1) * period)
    }
}

impl PeriodNumbers {
    /// Adds a value; NaN is ignored.
    #[inline]
    pub fn add(&mut self, value: f64) {
        if value.is_nan() {
            return;
        }
        self.max = Some(self.max.map_or(value, |max| max.max(value)));
        self.sum += value;
        self.sketch.add(value);
    }

    fn join(&mut self, other: &PeriodNumbers) {
        self.sketch.join(&other.sketch);
        self.sum += other.sum;
        self.max = match (self.max, other.max) {
            (Some(max), Some(other)) => Some(max.max(other)),
            (max, other) => max.or(other),
        };
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn values_of_earlier_periods_are_forgotten() {
        let mut recent = RecentNumbers::new(Some(10));
        recent.period_at(5).add(1.0);
        recent.period_at(15).add(2.0);
        let numbers = recent.remembered(19);
        assert_eq!((numbers.sketch.count(), numbers.max, numbers.sum), (2, Some(2.0), 3.0));
        assert_eq!(recent.remembered_since(19), 0);
        let numbers = recent.remembered(25);
        assert_eq!((numbers.sketch.count(), numbers.max), (1, Some(2.0)), "nothing came since");
        assert_eq!(recent.remembered_since(25), 10);
        assert_eq!(recent.remembered(35).sketch.count(), 0);
        recent.period_at(45).add(3.0);
        assert_eq!(recent.remembered(45).max, Some(3.0));
        // A late value is counted in the current period.
        recent.period_at(15).add(4.0);
        assert_eq!(recent.remembered(45).max, Some(4.0));
    }

    #[test]
    fn large_and_small_numbers_are_what_they_are() {
        for value in [1e30, -1e30, 1e-30, f64::MAX, f64::INFINITY] {
            let mut numbers = PeriodNumbers::default();
            numbers.add(value);
            numbers.add(f64::NAN);
            let median = numbers.sketch.quantile(0.5).unwrap();
            assert!(median == value || (median / value - 1.0).abs() < 1e-3, "{median} of {value}");
            assert_eq!((numbers.sketch.count(), numbers.max), (1, Some(value)));
        }
    }
}
