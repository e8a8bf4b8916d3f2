//! The time range of charts.

use ppt_query::text::duration;

use crate::axis::round_step;

/// The time range of charts, in slices of equal length. Times are ns since the epoch.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ChartSpan {
    /// The first and the last recorded time.
    pub first: i64,
    pub last: i64,
    /// Beginning of the first slice.
    pub from: i64,
    /// Length of a slice, in ns.
    pub every: i64,
    /// Number of slices.
    pub slices: usize,
}

/// Maximum number of slices: a chart is about 1,000 pixels wide.
const SLICES: f64 = 120.0;

/// The range that covers both.
pub(crate) fn union(a: Option<(i64, i64)>, b: Option<(i64, i64)>) -> Option<(i64, i64)> {
    a.into_iter().chain(b).reduce(|a, b| (a.0.min(b.0), a.1.max(b.1)))
}

impl ChartSpan {
    fn new(first: i64, last: i64) -> ChartSpan {
        let every = (round_step((last as f64 - first as f64) / SLICES) as i64).max(1);
        let from = first.div_euclid(every) * every;
        let slices = (last.saturating_sub(from) / every) as usize + 1;
        ChartSpan { first, last, from, every, slices }
    }

    /// Length in ns.
    pub fn len(&self) -> i64 {
        self.last.saturating_sub(self.first)
    }

    /// The recorded part of a slice, in slices from the first one on. Only the first and the last slice
    /// can be partial.
    pub fn part(&self, slice: usize) -> (f64, f64) {
        let share = |time: i64| time.saturating_sub(self.from) as f64 / self.every as f64;
        let from = share(self.first).max(slice as f64);
        let to = share(self.last).min((slice + 1) as f64);
        (from, to.max(from))
    }

    /// Whether only a part of the slice was recorded.
    pub fn is_partial(&self, slice: usize) -> bool {
        let (from, to) = self.part(slice);
        to - from < 0.995
    }

    /// The beginning of a slice relative to the first one, for a table; marks a partial slice.
    pub fn named(&self, slice: usize) -> String {
        let from = duration(slice as f64 * self.every as f64);
        if self.is_partial(slice) { format!("{from} (partial)") } else { from }
    }

    pub fn slice(&self, time: i64) -> Option<usize> {
        let slice = usize::try_from(time.checked_sub(self.from)?.div_euclid(self.every)).ok()?;
        (slice < self.slices).then_some(slice)
    }
}

/// The range that charts show: that of `times`, clamped to about the times at which the listener
/// drained frames. A field with wrong times does not stretch all charts.
pub fn shown(
    times: impl Iterator<Item = (i64, i64)>,
    drained: Option<(i64, i64)>,
) -> Option<ChartSpan> {
    let taken = times.reduce(|a, b| (a.0.min(b.0), a.1.max(b.1)));
    let (first, last) = taken.or(drained)?;
    let Some((from, to)) = drained else { return Some(ChartSpan::new(first, last)) };
    let slack = to.saturating_sub(from).max(1_000_000_000);
    let (least, most) = (from.saturating_sub(slack), to.saturating_add(slack));
    let first = first.clamp(least, most);
    Some(ChartSpan::new(first, last.clamp(first, most)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn slices_are_round_and_hold_everything() {
        let span = ChartSpan::new(1_000_000_123, 6_000_000_000);
        assert_eq!(span.every, 50_000_000);
        assert_eq!((span.slice(span.first), span.slice(span.last)), (Some(0), Some(100)));
        assert!(span.slices <= 1 + SLICES as usize);
        assert_eq!(ChartSpan::new(5, 5).slices, 1);
        assert_eq!(span.part(1), (1.0, 2.0));
        let (from, to) = span.part(0);
        assert!(from > 0.0 && from < 1e-5 && to == 1.0);
        assert_eq!(span.part(100), (100.0, 100.0), "it ends where that begins");
        assert!(span.is_partial(100) && !span.is_partial(0) && !span.is_partial(1));
        assert_eq!(
            (span.named(1), span.named(100)),
            ("50.0 ms".to_owned(), "5.00 s (partial)".to_owned())
        );
        assert_eq!(span.slice(i64::MIN), None);
        assert_eq!(span.slice(999_999_999), None);
    }

    #[test]
    fn a_wild_time_does_not_stretch_the_charts() {
        const S: i64 = 1_000_000_000;
        let span = shown([(-7 * S, 110 * S)].into_iter(), Some((101 * S, 111 * S))).unwrap();
        assert_eq!((span.first, span.last), (91 * S, 110 * S));
        let span = shown([(100 * S, i64::MAX)].into_iter(), Some((101 * S, 111 * S))).unwrap();
        assert_eq!((span.first, span.last), (100 * S, 121 * S));
        assert!(shown([].into_iter(), None).is_none());
    }
}
