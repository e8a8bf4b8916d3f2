//! How long the drain may sleep.

use std::time::Duration;

/// Peak-hold pacing: sleep a quarter of the time in which the busiest ring would fill, and forget
/// a peak only slowly, because bursts come again.
///
/// The rule speaks of each ring: `r = max(now, r · 0.8^(dt / 100 ms))`, sleep for the least `N / r`
/// of them all. Fading is the same for all, so the busiest ring's peak is all that must be kept,
/// here as rings filled per second.
#[derive(Debug, Clone)]
pub struct Pace {
    shortest: Duration,
    longest: Duration,
    peak: f64,
}

impl Pace {
    /// Part of a ring that may fill during a sleep.
    const AIM: f64 = 0.25;
    /// What remains of a peak after [`Self::FADE_TIME`].
    const FADE: f64 = 0.8;
    /// Seconds.
    const FADE_TIME: f64 = 0.1;

    /// Sleeps between `shortest` and `longest`.
    pub fn new(shortest: Duration, longest: Duration) -> Self {
        Self { shortest, longest: longest.max(shortest), peak: 0.0 }
    }

    /// The next sleep, when in the time `since` the last look the busiest ring gained `gained`
    /// times its number of slots (which may be more than once over).
    pub fn next(&mut self, gained: f64, since: Duration) -> Duration {
        let seconds = since.as_secs_f64();
        let now = if seconds > 0.0 { gained / seconds } else { 0.0 };
        self.peak = now.max(self.peak * Self::FADE.powf(seconds / Self::FADE_TIME));
        let longest = self.longest.as_secs_f64();
        let shortest = self.shortest.as_secs_f64();
        // A peak of 0 divides to infinity, which the clamp takes care of.
        Duration::from_secs_f64((Self::AIM / self.peak).clamp(shortest, longest))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const SHORTEST: Duration = Duration::from_micros(500);
    const LONGEST: Duration = Duration::from_millis(10);
    const MS: Duration = Duration::from_millis(1);

    fn pace() -> Pace {
        Pace::new(SHORTEST, LONGEST)
    }

    #[test]
    fn idle_rings_allow_the_longest_sleep() {
        assert_eq!(pace().next(0.0, MS), LONGEST);
        assert_eq!(pace().next(0.0, Duration::ZERO), LONGEST);
    }

    #[test]
    fn a_quarter_of_a_ring_fills_during_a_sleep() {
        // 50 rings a second: a quarter takes 5 ms.
        let sleep = pace().next(0.05, MS);
        assert!(sleep.abs_diff(Duration::from_millis(5)) < Duration::from_micros(1), "{sleep:?}");
    }

    #[test]
    fn a_lapped_ring_is_polled_as_often_as_allowed() {
        assert_eq!(pace().next(1e9, MS), SHORTEST);
        assert_eq!(pace().next(f64::INFINITY, MS), SHORTEST);
    }

    #[test]
    fn a_peak_fades_by_a_fifth_each_tenth_of_a_second() {
        let mut pace = pace();
        pace.next(0.1, MS); // 100 rings a second: 2.5 ms
        let sleep = pace.next(0.0, Duration::from_millis(100));
        assert!(
            sleep.abs_diff(Duration::from_micros(3125)) < Duration::from_micros(1),
            "{sleep:?}"
        );
        let mut fine = self::pace();
        fine.next(0.1, MS);
        let last = (0..100).map(|_| fine.next(0.0, MS)).last().unwrap();
        assert!(last.abs_diff(sleep) < Duration::from_micros(1), "however often it is asked");
    }

    #[test]
    fn limits_that_contradict_each_other_are_borne() {
        let mut pace = Pace::new(LONGEST, SHORTEST);
        assert_eq!(pace.next(0.0, MS), LONGEST);
    }
}
