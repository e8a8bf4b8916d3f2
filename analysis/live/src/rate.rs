//! Counts in each of the latest seconds.

const SECOND: u64 = 1_000_000_000;

/// The number of seconds remembered.
pub const SECONDS: usize = 60;

/// Counts per second of a clock.
#[derive(Debug, Clone)]
pub(crate) struct Rate {
    total: u64,
    /// The latest second with a count.
    newest: u64,
    /// Counts, indexed by the second modulo their number.
    seconds: [u64; SECONDS],
}

impl Default for Rate {
    fn default() -> Self {
        Rate { total: 0, newest: 0, seconds: [0; SECONDS] }
    }
}

impl Rate {
    /// Adds `count` at `ns`.
    pub fn add(&mut self, ns: u64, count: u64) {
        let second = ns / SECOND;
        if second > self.newest {
            let passed = (second - self.newest).min(SECONDS as u64);
            (0..passed).for_each(|number| *self.slot(second - number) = 0);
            self.newest = second;
        }
        self.total = self.total.saturating_add(count);
        if self.remembers(second) {
            let slot = self.slot(second);
            *slot = slot.saturating_add(count);
        }
    }

    /// The sum of all counts.
    pub fn total(&self) -> u64 {
        self.total
    }

    /// The recent rate per second, from the last complete second and the current one. `began` is the time
    /// of the first count in ns.
    pub fn per_second(&self, now: u64, began: u64) -> f64 {
        let second = now / SECOND;
        let before = second.checked_sub(1).map_or(0, |number| self.in_second(number));
        let count = self.in_second(second).saturating_add(before);
        let span = (SECOND + now % SECOND).min(now.saturating_sub(began)).max(SECOND / 10);
        count as f64 * SECOND as f64 / span as f64
    }

    /// The counts of the complete seconds before `now`, oldest first.
    pub fn history(&self, now: u64) -> Vec<u64> {
        let second = now / SECOND;
        let first = second.saturating_sub(SECONDS as u64);
        (first..second).map(|number| self.in_second(number)).collect()
    }

    fn in_second(&self, second: u64) -> u64 {
        if self.remembers(second) { self.seconds[(second % SECONDS as u64) as usize] } else { 0 }
    }

    fn remembers(&self, second: u64) -> bool {
        second <= self.newest && self.newest - second < SECONDS as u64
    }

    fn slot(&mut self, second: u64) -> &mut u64 {
        &mut self.seconds[(second % SECONDS as u64) as usize]
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_steady_rate_is_known_at_any_moment() {
        let mut rate = Rate::default();
        for tenth in 0..50 {
            rate.add(7 * SECOND + tenth * SECOND / 10, 100);
            let now = 7 * SECOND + (tenth + 1) * SECOND / 10;
            let per_second = rate.per_second(now, 7 * SECOND);
            assert!((per_second - 1000.0).abs() < 101.0, "{tenth}: {per_second}");
        }
        assert_eq!(rate.total(), 5000);
        assert_eq!(rate.history(12 * SECOND)[7..], [1000; 5]);
    }

    #[test]
    fn silence_is_a_rate_of_none() {
        let mut rate = Rate::default();
        rate.add(SECOND, 10);
        assert_eq!(rate.per_second(10 * SECOND, 0), 0.0);
        rate.add(200 * SECOND, 1);
        assert_eq!(rate.history(201 * SECOND).iter().sum::<u64>(), 1, "the first is forgotten");
        rate.add(100 * SECOND, 5);
        assert_eq!(rate.history(201 * SECOND).iter().sum::<u64>(), 1, "that is too long ago");
        assert_eq!(rate.total(), 16);
        rate.add(u64::MAX, 1);
        assert_eq!(rate.total(), 17);
    }
}
