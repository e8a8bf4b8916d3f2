//! The distribution of a field's latest values.

use ppt_stats::Sketch;

/// The values of the latest one or two equal periods.
#[derive(Debug, Clone)]
pub(crate) struct Recent {
    /// Length of a period in ns; None: a single period.
    stretch: Option<u64>,
    /// The number of the second period.
    current: u64,
    halves: [RecentHalf; 2],
}

/// The values of a period.
#[derive(Debug, Clone, Default)]
pub(crate) struct RecentHalf {
    pub sketch: Sketch,
    pub max: Option<f64>,
    pub sum: f64,
}

impl Recent {
    pub fn new(stretch: Option<u64>) -> Self {
        Recent { stretch, current: 0, halves: Default::default() }
    }

    /// The period to which values at `now` belong.
    pub fn at(&mut self, now: u64) -> &mut RecentHalf {
        let stretch = self.stretch.map_or(0, |stretch| now / stretch);
        if stretch > self.current {
            let last = std::mem::take(&mut self.halves[1]);
            self.halves[0] = if stretch == self.current + 1 { last } else { RecentHalf::default() };
            self.current = stretch;
        }
        &mut self.halves[1]
    }

    /// All values remembered at `now`, and the start of their period.
    pub fn all(&self, now: u64) -> (RecentHalf, u64) {
        let Some(stretch) = self.stretch else { return (self.halves[1].clone(), 0) };
        let is_over = (now / stretch).saturating_sub(self.current);
        let mut all = if is_over < 2 { self.halves[1].clone() } else { RecentHalf::default() };
        if is_over == 0 {
            all.join(&self.halves[0]);
        }
        (all, (now / stretch).saturating_sub(1) * stretch)
    }
}

impl RecentHalf {
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

    fn join(&mut self, other: &RecentHalf) {
        self.sketch.join(&other.sketch);
        self.sum += other.sum;
        self.max = match (self.max, other.max) {
            (Some(one), Some(two)) => Some(one.max(two)),
            (one, two) => one.or(two),
        };
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_older_than_two_stretches_is_forgotten() {
        let mut recent = Recent::new(Some(10));
        recent.at(5).add(1.0);
        recent.at(15).add(2.0);
        let (all, since) = recent.all(19);
        assert_eq!((all.sketch.count(), all.max, all.sum, since), (2, Some(2.0), 3.0, 0));
        let (all, since) = recent.all(25);
        assert_eq!((all.sketch.count(), all.max, since), (1, Some(2.0), 10), "nothing came since");
        assert_eq!(recent.all(35).0.sketch.count(), 0);
        recent.at(45).add(3.0);
        assert_eq!(recent.all(45).0.max, Some(3.0));
        // A late value is counted in the current period.
        recent.at(15).add(4.0);
        assert_eq!(recent.all(45).0.max, Some(4.0));
    }

    #[test]
    fn large_and_small_numbers_are_what_they_are() {
        for value in [1e30, -1e30, 1e-30, f64::MAX, f64::INFINITY] {
            let mut half = RecentHalf::default();
            half.add(value);
            half.add(f64::NAN);
            let median = half.sketch.quantile(0.5).unwrap();
            assert!(median == value || (median / value - 1.0).abs() < 1e-3, "{median} of {value}");
            assert_eq!((half.sketch.count(), half.max), (1, Some(value)));
        }
    }
}
