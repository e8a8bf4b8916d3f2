//! Converts times of one host to the clock of another.

/// A time of a host, and its bounds on the clock of another host, all in ns since the epoch.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Aligned {
    /// The time on the host's own clock.
    pub own: i64,
    /// The earliest possible time on the other clock, ns.
    pub lo: i64,
    /// The estimate: `lo ≤ ts ≤ hi`.
    pub ts: i64,
    /// The latest possible time on the other clock, ns.
    pub hi: i64,
    /// Whether the bounds are unknown between this time and the next one.
    pub gap: bool,
}

/// Converts times of one host to the clock of another by linear interpolation between known times.
///
/// The alignment preserves the order: a later time of the host is never earlier on the other clock.
/// Outside of
/// the known times it extrapolates, without bounds.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Alignment(Vec<Aligned>);

impl Alignment {
    /// An alignment through known times in ascending order. Times that do not increase on both
    /// clocks are ignored. Returns `None` if fewer than two remain.
    pub fn new(times: impl IntoIterator<Item = Aligned>) -> Option<Alignment> {
        let mut known: Vec<Aligned> = Vec::new();
        for time in times {
            let last = known.last();
            let rises = last.is_none_or(|last| {
                time.own > last.own && time.ts > last.ts && time.lo >= last.lo && time.hi >= last.hi
            });
            if rises && time.lo <= time.ts && time.ts <= time.hi {
                known.push(time);
            }
        }
        (known.len() > 1).then_some(Alignment(known))
    }

    /// The estimate for a time of the host.
    pub fn ts(&self, own: i128) -> i128 {
        let (from, to) = self.line(|aligned| i128::from(aligned.own) <= own);
        between(own, (from.own, to.own), (from.ts, to.ts), i128::div_euclid)
    }

    /// The bounds of the time with estimate `ts`. `None` where there are none.
    pub fn bounds(&self, ts: i64) -> Option<(i64, i64)> {
        let (from, to) = self.line(|aligned| aligned.ts <= ts);
        let is_between = ts == to.ts || !from.gap && (from.ts..to.ts).contains(&ts);
        let bound = |value: fn(&Aligned) -> i64, round: fn(i128, i128) -> i128| {
            let at = between(ts.into(), (from.ts, to.ts), (value(from), value(to)), round);
            i64::try_from(at).ok()
        };
        let lo = bound(|aligned| aligned.lo, i128::div_euclid)?;
        let hi = bound(|aligned| aligned.hi, |a, b| -(-a).div_euclid(b))?;
        is_between.then(|| (lo.min(ts), hi.max(ts)))
    }

    /// The known times, in chronological order.
    pub fn times(&self) -> &[Aligned] {
        &self.0
    }

    /// The widest bounds between known times.
    pub fn widest(&self) -> i64 {
        self.0.iter().map(|aligned| aligned.hi.saturating_sub(aligned.lo)).max().unwrap_or_default()
    }

    /// The two known times around a time, or the nearest two. `is_before` is true for the earlier
    /// ones.
    fn line(&self, is_before: impl Fn(&Aligned) -> bool) -> (&Aligned, &Aligned) {
        let after = self.0.partition_point(is_before).clamp(1, self.0.len() - 1);
        (&self.0[after - 1], &self.0[after])
    }
}

/// The value at `at` of the line through two points. `round` divides and rounds.
fn between(
    at: i128,
    (from, to): (i64, i64),
    (of_from, of_to): (i64, i64),
    round: impl Fn(i128, i128) -> i128,
) -> i128 {
    let (from, of_from) = (i128::from(from), i128::from(of_from));
    let (run, rise) = (i128::from(to) - from, i128::from(of_to) - of_from);
    let rise = (at - from).checked_mul(rise).map_or(at - from, |number| round(number, run));
    of_from + rise
}

#[cfg(test)]
mod tests {
    use super::*;

    fn aligned(own: i64, lo: i64, ts: i64, hi: i64) -> Aligned {
        Aligned { own, lo, ts, hi, gap: false }
    }

    #[test]
    fn times_lie_on_lines_with_bounds_around_them() {
        let times = [aligned(0, 990, 1000, 1020), aligned(100, 1090, 1110, 1120)];
        let alignment = Alignment::new(times).unwrap();
        assert_eq!(
            (alignment.ts(0), alignment.ts(50), alignment.ts(100), alignment.ts(200)),
            (1000, 1055, 1110, 1220)
        );
        assert_eq!(alignment.bounds(1000), Some((990, 1020)));
        assert_eq!(alignment.bounds(1055), Some((1040, 1070)));
        assert_eq!(alignment.bounds(1110), Some((1090, 1120)));
        assert_eq!(alignment.widest(), 30);
    }

    #[test]
    fn outside_of_what_is_known_nothing_bounds() {
        let times = [aligned(0, 990, 1000, 1020), aligned(100, 1090, 1110, 1120)];
        let alignment = Alignment::new(times).unwrap();
        assert_eq!((alignment.bounds(999), alignment.bounds(1111)), (None, None));
    }

    #[test]
    fn gaps_have_no_bounds() {
        let mut times =
            [aligned(0, 0, 0, 0), aligned(100, 90, 100, 110), aligned(200, 200, 200, 200)];
        times[0].gap = true;
        let alignment = Alignment::new(times).unwrap();
        assert_eq!((alignment.bounds(50), alignment.bounds(100)), (None, Some((90, 110))));
        assert_eq!(alignment.ts(50), 50, "the estimate keeps its order");
    }

    #[test]
    fn what_does_not_rise_is_left_out() {
        let times = [aligned(0, 0, 0, 0), aligned(10, 10, 10, 10), aligned(20, 9, 9, 9)];
        assert_eq!(Alignment::new(times).unwrap().0.len(), 2);
        assert_eq!(Alignment::new([aligned(0, 0, 0, 0), aligned(0, 1, 1, 1)]), None);
        assert_eq!(Alignment::new([aligned(0, 5, 4, 6), aligned(1, 5, 5, 6)]), None);
    }

    #[test]
    fn no_time_is_too_much() {
        let times = [aligned(i64::MIN, -1, 0, 1), aligned(i64::MAX, 1 << 61, 1 << 62, i64::MAX)];
        let alignment = Alignment::new(times).unwrap();
        for ts in [i64::MIN, -1, 0, 1 << 40, i64::MAX] {
            assert!(alignment.bounds(ts).is_none_or(|(lo, hi)| lo <= ts && ts <= hi), "{ts}");
            std::hint::black_box(alignment.ts(ts.into()));
        }
    }
}
