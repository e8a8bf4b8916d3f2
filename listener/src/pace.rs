//! Determines how long the drain may sleep.

use std::time::Duration;

use ppt_segment::abi::OWNER_HISTORY;

use crate::options::{ListenerOptions, Rate, Silence};

/// The state of the policy.
#[derive(Debug, Clone)]
pub(crate) enum Pace {
    Peak(PeakHold),
    Paper(Paper),
}

impl Pace {
    pub fn new(options: &ListenerOptions) -> Self {
        match options.rate {
            Rate::Peak => Pace::Peak(PeakHold::new(options.shortest)),
            Rate::Paper => Pace::Paper(Paper::default()),
        }
    }

    /// The sleep after the first look, which gives no rate.
    pub fn first(&self) -> Duration {
        match self {
            Pace::Peak(pace) => pace.shortest,
            Pace::Paper(pace) => pace.sleep,
        }
    }

    /// Whether this sleep is the shortest possible.
    pub fn is_shortest(&self, sleep: Duration) -> bool {
        sleep
            <= match self {
                Pace::Peak(pace) => pace.shortest,
                Pace::Paper(_) => Duration::from_secs_f64(Paper::SHORTEST),
            }
    }

    /// The next sleep, if the busiest ring filled `rate` times a second during the time `since` the
    /// last look. `longest` is the upper limit.
    pub fn next(&mut self, rate: f64, since: Duration, longest: Duration) -> Duration {
        match self {
            Pace::Peak(pace) => pace.next(rate, since, longest),
            Pace::Paper(pace) => pace.next(rate * since.as_secs_f64(), since),
        }
    }
}

/// Frames a second of bursts that an idle ring should take between two looks.
const BURST: f64 = 1e6;
/// Frames of a burst that fit if a look comes late: by 18 ms, or half of the ring.
const LATE: u64 = 18_000;
/// Lower limit of the interval for an idle ring, however few slots it has.
const MIN_INTERVAL: Duration = Duration::from_millis(10);

/// Upper limit, however many slots a ring has. A user who asks for very large rings expects longer
/// bursts.
const MAX_INTERVAL: Duration = Duration::from_millis(100);

/// The longest time that a ring with this number of slots may go without a look, so that a burst after
/// silence
/// fits and frames are in the file in time.
pub(crate) fn longest(slots: u64, options: &ListenerOptions) -> Duration {
    match options.silence {
        Silence::Fixed(longest) => longest,
        Silence::OfRings => {
            let most =
                options.chunk_age.saturating_sub(MIN_INTERVAL).clamp(MIN_INTERVAL, MAX_INTERVAL);
            let taken = slots - LATE.min(slots / 2);
            Duration::from_secs_f64(taken as f64 / BURST).clamp(MIN_INTERVAL, most)
        }
    }
}

/// That time for a ring among very many, where looks take longer: a burst of that rate may fill
/// three quarters of the ring, if it can take one at all.
pub(crate) fn longest_of_many(slots: u64, options: &ListenerOptions) -> Duration {
    let (least, most) = (longest(slots, options), longest(u64::MAX, options));
    let burst = Duration::from_secs_f64(slots as f64 * 0.75 / BURST);
    if burst > MIN_INTERVAL { burst.clamp(least, most.max(least)) } else { most }
}

/// Peak-hold pacing: sleeps a quarter of the time in which the busiest ring would fill, and lets a
/// peak decay slowly, because bursts recur.
///
/// The rule applies to each ring: `r = max(now, r · 0.8^(dt / 100 ms))`, sleep for the smallest `N
/// / r` of all. The decay is the same for all, so only the busiest ring's peak is kept, in rings
/// filled per second.
#[derive(Debug, Clone)]
pub struct PeakHold {
    shortest: Duration,
    peak: f64,
    /// Seconds of decay that have not been applied to the peak yet.
    unfaded: f64,
}

impl PeakHold {
    /// The part of a ring that may fill during a sleep.
    const AIM: f64 = 0.25;
    /// The part of a peak that remains after [`Self::FADE_TIME`].
    const FADE: f64 = 0.8;
    /// Seconds.
    const FADE_TIME: f64 = 0.1;

    /// A policy that sleeps no shorter than `shortest`.
    pub fn new(shortest: Duration) -> Self {
        Self { shortest, peak: 0.0, unfaded: 0.0 }
    }

    /// The next sleep, up to `longest`, if the busiest ring filled `now` times a second during the
    /// time `since` the last look.
    pub fn next(&mut self, now: f64, since: Duration, longest: Duration) -> Duration {
        self.unfaded += since.as_secs_f64();
        let shortest = self.shortest.as_secs_f64();
        let longest = longest.as_secs_f64().max(shortest);
        // The decay is applied only if it matters, so most calls compute nothing.
        if now >= self.peak {
            (self.peak, self.unfaded) = (now, 0.0);
        } else if self.peak * longest > Self::AIM {
            let faded = self.peak * Self::FADE.powf(self.unfaded / Self::FADE_TIME);
            (self.peak, self.unfaded) = (now.max(faded), 0.0);
        }
        // A peak of 0 gives infinity, which the clamp limits.
        Duration::from_secs_f64((Self::AIM / self.peak).clamp(shortest, longest))
    }
}

/// The same for a ring's owner history: if too many owners come and go between two looks, some
/// remain unknown. This loses no frames, so looks become no more frequent than [`MIN_INTERVAL`] allows.
#[derive(Debug, Clone)]
pub(crate) struct Claims(PeakHold);

impl Default for Claims {
    fn default() -> Self {
        Self(PeakHold::new(MIN_INTERVAL))
    }
}

impl Claims {
    /// The next sleep, if a ring had `claims` owners since the last look.
    pub fn next(&mut self, claims: u32, since: Duration) -> Duration {
        let seconds = since.as_secs_f64().max(1e-9);
        let rate = f64::from(claims) / OWNER_HISTORY as f64 / seconds;
        self.0.next(rate, since, Duration::from_secs(3600))
    }
}

/// The paper's pacing: if a look found less than an eighth or more than seven eighths of a ring
/// filled, sleeps for the time that fills half of it.
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
        // The estimate covers only readable frames: an overrun ring counts as full.
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
        PeakHold::new(SHORTEST)
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
        assert_eq!(pace().next(0.0, MS, LONGEST), LONGEST);
        assert_eq!(pace().next(0.0, Duration::ZERO, LONGEST), LONGEST);
    }

    #[test]
    fn a_quarter_of_a_ring_fills_during_a_sleep() {
        // 50 rings a second: a quarter takes 5 ms.
        let sleep = pace().next(50.0, MS, LONGEST);
        assert!(sleep.abs_diff(Duration::from_millis(5)) < Duration::from_micros(1), "{sleep:?}");
    }

    #[test]
    fn a_lapped_ring_is_polled_as_often_as_allowed() {
        assert_eq!(pace().next(1e9, MS, LONGEST), SHORTEST);
        assert_eq!(pace().next(f64::INFINITY, MS, LONGEST), SHORTEST);
    }

    #[test]
    fn a_peak_fades_by_a_fifth_each_tenth_of_a_second() {
        let mut pace = pace();
        pace.next(100.0, MS, LONGEST); // 2.5 ms
        let sleep = pace.next(0.0, Duration::from_millis(100), LONGEST);
        assert!(
            sleep.abs_diff(Duration::from_micros(3125)) < Duration::from_micros(1),
            "{sleep:?}"
        );
        let mut fine = self::pace();
        fine.next(100.0, MS, LONGEST);
        let last = (0..100).map(|_| fine.next(0.0, MS, LONGEST)).last().unwrap();
        assert!(last.abs_diff(sleep) < Duration::from_micros(1), "however often it is asked");
    }

    #[test]
    fn limits_that_contradict_each_other_are_borne() {
        let mut pace = PeakHold::new(LONGEST);
        assert_eq!(pace.next(0.0, MS, SHORTEST), LONGEST);
    }

    #[test]
    fn what_rings_can_take_says_how_long_they_may_go_without_a_look() {
        let ms = Duration::from_millis;
        let of = |slots, age| {
            longest(slots, &ListenerOptions { chunk_age: ms(age), ..ListenerOptions::default() })
        };
        assert_eq!([2, 1 << 14].map(|slots| of(slots, 250)), [ms(10); 2], "as ever");
        assert_eq!(of(1 << 15, 250), Duration::from_micros(16_384), "half");
        assert_eq!(of(1 << 16, 250), Duration::from_micros(47_536), "room for 18 ms more");
        assert_eq!(of(1 << 26, 250), ms(100));
        assert_eq!(of(1 << 26, 60), ms(50), "in the file in time");
        assert_eq!(of(1 << 26, 35), ms(25), "or in the pipe");
        assert_eq!(of(1 << 26, 1), ms(10));
        let fixed =
            ListenerOptions { silence: Silence::Fixed(ms(100)), ..ListenerOptions::default() };
        assert_eq!([longest(2, &fixed), longest_of_many(1 << 26, &fixed)], [ms(100); 2]);
        let of = |slots| {
            longest_of_many(
                slots,
                &ListenerOptions { chunk_age: ms(250), ..ListenerOptions::default() },
            )
        };
        assert_eq!([of(64), of(1 << 26)], [ms(100); 2]);
        assert_eq!(of(1 << 14), Duration::from_micros(12_288), "a burst of 1 M/s fits");
    }

    #[test]
    fn owners_that_follow_each_other_are_looked_at_as_often_as_they_may() {
        let tenth = Duration::from_millis(100);
        let mut claims = Claims::default();
        assert!(claims.next(0, tenth) > Duration::from_secs(1));
        // Ten a second: the history of four would hold them for 0.4 s.
        assert_eq!(claims.next(1, tenth), tenth);
        assert_eq!(claims.next(4, Duration::from_millis(1)), MIN_INTERVAL);
    }
}
