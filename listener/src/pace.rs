//! How long the drain may sleep.

use std::time::Duration;

use crate::options::Options;

/// How to choose the time between two looks at the cursors.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Rate {
    /// Follow peaks at once and forget them slowly: see [`PeakHold`].
    #[default]
    Peak,
    /// The policy of the paper (section III.C.2), to compare with: it loses bursts.
    Paper,
}

/// The policy at work.
#[derive(Debug, Clone)]
pub(crate) enum Pace {
    Peak(PeakHold),
    Paper(Paper),
}

impl Pace {
    pub fn new(options: &Options) -> Self {
        match options.rate {
            Rate::Peak => Pace::Peak(PeakHold::new(options.shortest, options.longest)),
            Rate::Paper => Pace::Paper(Paper::default()),
        }
    }

    /// The sleep after the first look: what it found says nothing about a rate.
    pub fn first(&self) -> Duration {
        match self {
            Pace::Peak(pace) => pace.shortest,
            Pace::Paper(pace) => pace.sleep,
        }
    }

    /// Whether it can look no more often than after this sleep.
    pub fn is_shortest(&self, sleep: Duration) -> bool {
        sleep
            <= match self {
                Pace::Peak(pace) => pace.shortest,
                Pace::Paper(_) => Duration::from_secs_f64(Paper::SHORTEST),
            }
    }

    /// The next sleep, when in the time `since` the last look the busiest ring gained `gained`
    /// times its number of slots (which may be more than once over).
    pub fn next(&mut self, gained: f64, since: Duration) -> Duration {
        match self {
            Pace::Peak(pace) => pace.next(gained, since),
            Pace::Paper(pace) => pace.next(gained, since),
        }
    }
}

/// Peak-hold pacing: sleep a quarter of the time in which the busiest ring would fill, and forget
/// a peak only slowly, because bursts come again.
///
/// The rule speaks of each ring: `r = max(now, r · 0.8^(dt / 100 ms))`, sleep for the least `N / r`
/// of them all. Fading is the same for all, so the busiest ring's peak is all that must be kept,
/// here as rings filled per second.
#[derive(Debug, Clone)]
pub struct PeakHold {
    shortest: Duration,
    longest: Duration,
    peak: f64,
}

impl PeakHold {
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

    /// The next sleep, for a gain in rings since the last look.
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

/// The paper's pacing: where a look found less than an eighth or more than seven eighths of a ring,
/// sleep for the time that fills half of it.
#[derive(Debug, Clone)]
pub(crate) struct Paper {
    sleep: Duration,
}

impl Default for Paper {
    fn default() -> Self {
        Self { sleep: Duration::from_millis(100) }
    }
}

impl Paper {
    const SHORTEST: f64 = 0.01;
    const LONGEST: f64 = 2.0;

    fn next(&mut self, gained: f64, since: Duration) -> Duration {
        // It sees what it can read: a ring that was lapped is a full one.
        let read = gained.min(1.0);
        if !(1.0 / 8.0..=7.0 / 8.0).contains(&read) {
            let rate = read / since.as_secs_f64().max(1e-9);
            let sleep = (0.5 / rate).clamp(Self::SHORTEST, Self::LONGEST);
            self.sleep = Duration::from_secs_f64(sleep);
        }
        self.sleep
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const SHORTEST: Duration = Duration::from_micros(500);
    const LONGEST: Duration = Duration::from_millis(10);
    const MS: Duration = Duration::from_millis(1);

    fn pace() -> PeakHold {
        PeakHold::new(SHORTEST, LONGEST)
    }

    #[test]
    fn the_paper_aims_at_half_a_ring_outside_of_its_thresholds() {
        let mut pace = Paper::default();
        let tenth = Duration::from_millis(100);
        assert_eq!(pace.next(0.5, tenth), tenth, "between the thresholds nothing changes");
        assert_eq!(pace.next(0.1, tenth), Duration::from_millis(500));
        assert_eq!(pace.next(0.0, tenth), Duration::from_secs(2));
        assert_eq!(pace.next(30.0, tenth), Duration::from_millis(50), "laps are not seen");
        assert_eq!(pace.next(1.0, Duration::from_millis(10)), Duration::from_millis(10));
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
        let mut pace = PeakHold::new(LONGEST, SHORTEST);
        assert_eq!(pace.next(0.0, MS), LONGEST);
    }
}
