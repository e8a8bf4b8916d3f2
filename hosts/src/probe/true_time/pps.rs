//! The edges of a pulse per second.
//!
//! The kernel stamps an edge by CLOCK_REALTIME. Readings of ticks and CLOCK_REALTIME around the
//! edge bracket its ticks. They are made shortly before and after an expected edge, so that they
//! are close to it however CLOCK_REALTIME is slewed.

use std::collections::VecDeque;
use std::path::{Path, PathBuf};
use std::time::Duration;

use ppt_clock::sync::{Pulse, Record};
use ppt_clock::{ClockId, ClockReading};

use super::super::clock::HostClock;
use super::decimal;
use super::error::TimeSourceError;
use super::lines::{GrowingFile, RewrittenFile};
use super::watched::{Watched, slewed, ticks_of};

const SECOND_NS: u64 = 1_000_000_000;
/// Largest error of CLOCK_REALTIME; beyond it, an edge's second is ambiguous.
const CLEAR_NS: u64 = 400_000_000;
/// Older edges are dropped.
const OLD_NS: u64 = 2 * SECOND_NS;
/// Clocks are read this long before and after an edge.
const AROUND_NS: u64 = 1_000_000;
/// The longest time without a reading.
const PAUSE_NS: u64 = 100_000_000;
/// The number of readings kept: those of a few seconds.
const KEPT: usize = 64;

/// The source of lines.
enum From {
    Fifo(GrowingFile),
    File(RewrittenFile),
}

/// The edges from a file.
pub(super) struct Edges<'a> {
    path: PathBuf,
    from: From,
    clock: &'a HostClock,
    hz: u64,
    /// The latest readings.
    readings: VecDeque<ClockReading>,
    /// CLOCK_REALTIME at the last edge.
    last: Option<u64>,
}

impl<'a> Edges<'a> {
    /// Reads edges from now on.
    pub fn open(path: &Path, clock: &'a HostClock, hz: u64) -> Result<Self, TimeSourceError> {
        let lines = GrowingFile::open(path)?;
        let from = if lines.is_fifo() {
            From::Fifo(lines)
        } else {
            From::File(RewrittenFile::open(path)?)
        };
        let readings = VecDeque::new();
        Ok(Self { path: path.to_owned(), from, clock, hz, readings, last: None })
    }

    /// The edges since the last call.
    fn edges(
        &mut self,
        report: &mut dyn FnMut(Result<Record, TimeSourceError>),
    ) -> Result<Vec<u64>, TimeSourceError> {
        let lines = match &mut self.from {
            From::Fifo(lines) => lines.new_lines()?,
            From::File(file) => file.new_lines()?,
        };
        let mut edges = Vec::new();
        for line in lines {
            match edge(&line) {
                Some(number) => edges.push(number),
                None => report(Err(TimeSourceError::line(&self.path, &line))),
            }
        }
        self.last = edges.last().copied().or(self.last);
        Ok(edges)
    }

    fn read(&mut self) -> u64 {
        let reading = self.clock.reading(ClockId::Tick, ClockId::Realtime);
        self.readings.push_back(reading);
        if self.readings.len() > KEPT {
            self.readings.pop_front();
        }
        reading.b_value
    }

    /// The edge as a record; None if it is old.
    fn pulse(&self, at_ns: u64, now_ns: u64) -> Result<Option<Record>, TimeSourceError> {
        if now_ns.abs_diff(at_ns) > OLD_NS {
            return Ok(None);
        }
        let second = (at_ns + SECOND_NS / 2) / SECOND_NS * SECOND_NS;
        if at_ns.abs_diff(second) > CLEAR_NS {
            let off_ms = (at_ns as i64 - second as i64) / 1_000_000;
            return Err(TimeSourceError::UnclearSecond { path: self.path.clone(), off_ms });
        }
        let placed = place(at_ns, self.readings.iter(), self.hz);
        let stepped = || TimeSourceError::Stepped { path: self.path.clone() };
        let (tick_before, tick_after) = placed.ok_or_else(stepped)?;
        Ok(Some(Record::Pulse(Pulse { host: 0, second, tick_before, tick_after })))
    }
}

impl Watched for Edges<'_> {
    fn look(&mut self, report: &mut dyn FnMut(Result<Record, TimeSourceError>)) {
        let edges = self.edges(report);
        // Read after the edges, so that there are readings on both sides.
        let now_ns = self.read();
        match edges {
            Ok(edges) => {
                let pulses =
                    edges.into_iter().filter_map(|edge| self.pulse(edge, now_ns).transpose());
                pulses.for_each(report);
            }
            Err(error) => report(Err(error)),
        }
    }

    /// Time until shortly before the next edge, or shortly after it.
    fn pause(&self) -> Duration {
        let now_ns = self.readings.back().map_or(0, |reading| reading.b_value);
        let phase_ns = self.last.map_or(0, |last| last % SECOND_NS);
        let since_ns = (now_ns + SECOND_NS - phase_ns) % SECOND_NS;
        let next = [AROUND_NS, SECOND_NS - AROUND_NS, SECOND_NS + AROUND_NS];
        let next_ns = next.into_iter().find(|&number| number > since_ns).unwrap_or(SECOND_NS);
        // The one before the edge must not be missed by less than it takes to look.
        Duration::from_nanos((next_ns - since_ns).clamp(AROUND_NS / 10, PAUSE_NS))
    }
}

/// CLOCK_REALTIME at an edge, from a line `SECONDS.NANOSECONDS#SEQUENCE`.
fn edge(line: &[u8]) -> Option<u64> {
    let (at, sequence) = std::str::from_utf8(line).ok()?.split_once('#')?;
    sequence.parse::<u64>().ok()?;
    decimal::ns(at).filter(|_| at.contains('.'))?.try_into().ok()
}

/// The ticks between which CLOCK_REALTIME showed `at_ns`. `None` if it was stepped there.
fn place<'a>(
    at_ns: u64,
    readings: impl Iterator<Item = &'a ClockReading>,
    hz: u64,
) -> Option<(u64, u64)> {
    let (mut before, mut after) = (0, u64::MAX);
    for reading in readings {
        let away_ns = reading.b_value.abs_diff(at_ns);
        // The clock is at most that much from the nominal rate of ticks, and readings are rounded.
        let slack_ns = slewed(away_ns) + 2;
        let (least, most) = (
            ticks_of(away_ns.saturating_sub(slack_ns), hz),
            ticks_of(away_ns.saturating_add(slack_ns), hz) + 1,
        );
        let (from, to) = if reading.b_value <= at_ns {
            (reading.a_before.saturating_add(least), reading.a_after.saturating_add(most))
        } else {
            (reading.a_before.saturating_sub(most), reading.a_after.saturating_sub(least))
        };
        (before, after) = (before.max(from), after.min(to));
    }
    (before <= after && after < u64::MAX).then_some((before, after))
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn lines_of_the_kernel_are_understood() {
        for (line, expected) in [
            ("1795437973.000001234#42", Some(1_795_437_973_000_001_234)),
            ("0.000000000#0", Some(0)),
            ("1795437973.000001234", None),
            ("1795437973#42", None),
            ("1795437973.000001234#", None),
            ("1795437973.000001234#-1", None),
            ("-1.5#1", None),
            ("99999999999.5#1", None),
            ("", None),
        ] {
            assert_eq!(edge(line.as_bytes()), expected, "{line}");
        }
        assert_eq!(edge(b"\xff#1"), None);
    }

    /// A clock with a slew that changes now and then.
    struct Slewed {
        /// Start of each slew, the clock's reading then, and its rate error.
        parts: Vec<(f64, f64, f64)>,
    }

    impl Slewed {
        fn at(&self, t: f64) -> f64 {
            let at = self.parts.partition_point(|part| part.0 <= t) - 1;
            let (from, shown, slew) = self.parts[at];
            shown + (t - from) * (1.0 + slew)
        }
    }

    proptest! {
        /// The returned ticks bracket the edge's tick, and a step is detected.
        #[test]
        fn edges_are_between_the_reported_ticks(
            slews in prop::collection::vec((1e6..5e8f64, -500e-6..500e-6), 1..8),
            moments in prop::collection::vec((0.0..2e9f64, 20.0..4000.0f64, 20.0..4000.0f64), 1..40),
            edge in 0.0..2e9f64,
            hz in 1_000_000u64..4_000_000_000,
            step in prop::option::of(1e6..1e12f64),
        ) {
            let mut parts = vec![(0.0, 0.0, 0.0)];
            for (far, slew) in slews {
                let &(from, shown, last) = parts.last().unwrap();
                parts.push((from + far, shown + far * (1.0 + last), slew));
            }
            let clock = Slewed { parts };
            let (base, epoch) = (1u64 << 50, 1_700_000_000_000_000_000u64);
            let tick = |t: f64| base + (t * hz as f64 / 1e9) as u64;
            let shown = |t: f64| epoch + clock.at(t) as u64;
            let reading = |t: f64, before: f64, after: f64, more: u64| ClockReading {
                a: ClockId::Tick,
                a_before: tick((t - before).max(0.0)),
                b: ClockId::Realtime,
                b_value: shown(t) + more,
                a_after: tick(t + after),
                distrusted: false,
            };
            let readings: Vec<_> = moments.iter().map(|&(t, a, b)| reading(t, a, b, 0)).collect();
            let (before, after) = place(shown(edge), readings.iter(), hz).unwrap();
            prop_assert!(before <= tick(edge) && tick(edge) <= after);
            // About as narrow as the nearest reading and its distance leave it.
            let widths = moments.iter().map(|&(t, a, b)| a + b + 2.0 * (601e-6 * (t - edge).abs() + 4.0));
            let least = widths.fold(f64::MAX, f64::min) * hz as f64 / 1e9 + 5.0;
            prop_assert!((after - before) as f64 <= least, "{before} {after} {least}");
            if let Some(step) = step {
                let (t, a, b) = (edge + 1e6, 50.0, 50.0);
                let before = reading((edge - 1e6).max(0.0), a, b, 0);
                let after = reading(t, a, b, step as u64);
                prop_assert_eq!(place(shown(edge), [before, after].iter(), hz), None);
            }
        }
    }
}
