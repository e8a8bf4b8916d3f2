//! Readings of CLOCK_REALTIME from the log of ptp4l.
//!
//! It prints either each offset (`master offset -5 s2 freq -1234 path delay 123`) or, each second,
//! their root mean square and their maximum (`rms 10 max 20 freq -1234 +/- 30 delay 123 +/- 2`); all in ns.
//! Its manual states no bound. Here, an offset is taken to be wrong by no more than itself and the
//! path delay: the delay that is measured is the mean of both ways, so that one of them is at most
//! twice as long; and the servo ends what offsets remain.

use std::path::{Path, PathBuf};
use std::time::Duration;

use ppt_clock::ClockId;
use ppt_clock::sync::{Record, TimeSourceReport};

use super::super::clock::HostClock;
use super::decimal;
use super::error::TimeSourceError;
use super::lines::GrowingFile;
use super::watched::{Watched, slewed, ticks_of};

const PAUSE: Duration = Duration::from_millis(100);
/// Older readings are dropped, in ns.
const OLD_NS: u64 = 10_000_000_000;
/// Resolution of its stamps.
const STAMP_NS: u64 = 1_000_000;

/// A line of the log.
#[derive(Debug, PartialEq, Eq)]
struct Offset {
    /// The time of the reading, ns of CLOCK_MONOTONIC.
    at_ns: u64,
    /// True time − CLOCK_REALTIME.
    offset_ns: i64,
    error_ns: u64,
}

/// ptp4l of this host.
pub(super) struct Ptp4l<'a> {
    path: PathBuf,
    lines: GrowingFile,
    clock: &'a HostClock,
    hz: u64,
}

impl<'a> Ptp4l<'a> {
    pub fn open(path: &Path, clock: &'a HostClock, hz: u64) -> Result<Self, TimeSourceError> {
        Ok(Self { path: path.to_owned(), lines: GrowingFile::open(path)?, clock, hz })
    }

    /// The reading in a line; None if the line is about something else, or old.
    fn read(&self, line: &[u8]) -> Result<Option<Record>, TimeSourceError> {
        let offset = std::str::from_utf8(line).map_or(Some(None), offset);
        let offset = offset.ok_or_else(|| TimeSourceError::line(&self.path, line))?;
        let Some(Offset { at_ns, offset_ns, error_ns }) = offset else { return Ok(None) };
        let now = self.clock.reading(ClockId::Tick, ClockId::Monotonic);
        let Some(ago_ns) = now.b_value.checked_sub(at_ns).filter(|&number| number <= OLD_NS) else {
            return Ok(None);
        };
        // The stamp is rounded down.
        let ago_ns = ago_ns.saturating_sub(STAMP_NS / 2);
        let tick = now.a_middle().saturating_sub(ticks_of(ago_ns, self.hz));
        let error_ns = error_ns.saturating_add(slewed(STAMP_NS));
        let source = "ptp4l".to_owned();
        Ok(Some(Record::Reported(TimeSourceReport { host: 0, source, tick, offset_ns, error_ns })))
    }
}

impl Watched for Ptp4l<'_> {
    fn look(&mut self, report: &mut dyn FnMut(Result<Record, TimeSourceError>)) {
        match self.lines.new_lines() {
            Ok(lines) => {
                let reports = lines.iter().filter_map(|line| self.read(line).transpose());
                reports.for_each(report);
            }
            Err(error) => report(Err(error)),
        }
    }

    fn pause(&self) -> Duration {
        PAUSE
    }
}

/// The offset in a line: `Some(None)` if the line is about something else; `None` if it cannot be
/// parsed.
fn offset(line: &str) -> Option<Option<Offset>> {
    let words: Vec<_> = line.split_whitespace().collect();
    let after = |name: &[&str]| {
        let at = words.windows(name.len()).position(|window| window == name)?;
        words.get(at + name.len()).copied()
    };
    let number = |name: &[&str]| after(name)?.parse::<i64>().ok();
    let delay = |name: &[&str]| number(name)?.try_into().ok();
    if after(&["master", "offset"]).is_some() {
        let offset = number(&["master", "offset"])?;
        let at = words.iter().position(|text| *text == "freq")?.checked_sub(1)?;
        let (state, delay_ns): (_, u64) = (words[at], delay(&["path", "delay"])?);
        let error_ns = delay_ns.checked_add(offset.unsigned_abs())?;
        return match state {
            // ptp4l steps the clock next, by this offset.
            "s1" => Some(None),
            "s0" | "s2" | "s3" => Some(Some(Offset {
                at_ns: stamp(line)?,
                offset_ns: offset.checked_neg()?,
                error_ns,
            })),
            _ => None,
        };
    }
    if after(&["rms"]).is_some() && after(&["max"]).is_some() {
        let most: u64 = delay(&["max"])?;
        let (mean, scatter): (u64, u64) = (delay(&["delay"])?, words.last()?.parse().ok()?);
        let error_ns = most.checked_add(mean)?.checked_add(scatter)?;
        return Some(Some(Offset { at_ns: stamp(line)?, offset_ns: 0, error_ns }));
    }
    Some(None)
}

/// The stamp, as in `ptp4l[650.123]:` or, from syslog, `ptp4l[77]: [650.123]`.
fn stamp(line: &str) -> Option<u64> {
    let mut within = line.split('[').skip(1).filter_map(|piece| Some(piece.split_once(']')?.0));
    let stamp = within.find(|text| text.contains('.') && decimal::ns(text).is_some())?;
    decimal::ns(stamp)?.try_into().ok()
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn at(at_ms: u64, offset_ns: i64, error_ns: u64) -> Option<Option<Offset>> {
        Some(Some(Offset { at_ns: at_ms * 1_000_000, offset_ns, error_ns }))
    }

    /// Lines of ptp4l 3.1.1, and of later ones.
    #[test]
    fn lines_of_ptp4l_are_understood() {
        for (line, expected) in [
            (
                "ptp4l[41302.961]: master offset        -47 s0 freq     -15 path delay      2421",
                at(41_302_961, 47, 2468),
            ),
            ("ptp4l[650.123]: master offset 20 s2 freq +9 path delay 100", at(650_123, -20, 120)),
            (
                "ptp4l[0.001]: [ptp4l.0.config:3] master offset 20 s3 freq +9 path delay 0",
                at(1, -20, 20),
            ),
            (
                "Nov 23 12:46:31 b ptp4l[77]: [41302.961] master offset -1 s2 freq -1 path delay 3",
                at(41_302_961, 1, 4),
            ),
            (
                "ptp4l[650.123]: rms   66 max  149 freq    -19 +/-  73 delay  2402 +/-  32",
                at(650_123, 0, 149 + 2402 + 32),
            ),
            // The clock is stepped next.
            ("ptp4l[1.5]: master offset 37000000123 s1 freq +9 path delay 100", Some(None)),
            ("ptp4l[1.5]: port 1: UNCALIBRATED to SLAVE on MASTER_CLOCK_SELECTED", Some(None)),
            ("ptp4l[1.5]: selected best master clock ee0b54.fffe.7173d7", Some(None)),
            ("", Some(None)),
            ("master offset 20 s2 freq +9 path delay 100", None),
            ("ptp4l[1.5]: master offset 20 s2 freq +9 path del", None),
            ("ptp4l[1.5]: master offset 20 s9 freq +9 path delay 1", None),
            ("ptp4l[1.5]: master offset 20 freq", None),
            ("ptp4l[1.5]: master offset -9223372036854775808 s2 freq +9 path delay 1", None),
            ("ptp4l[1.5]: master offset 1 s2 freq +9 path delay -5", None),
            ("ptp4l[-1.5]: master offset 1 s2 freq +9 path delay 5", None),
            ("ptp4l[1.5]: rms 1 max 2 freq -19 +/- 73", None),
        ] {
            assert_eq!(offset(line), expected, "{line}");
        }
    }

    proptest! {
        #[test]
        fn nothing_panics(
            line in ".{0,40}",
            words in prop::collection::vec(
                prop::sample::select(vec!["master", "offset", "freq", "path", "delay", "rms", "max", "s2", "[1.5]", "-9", "7"]),
                0..12,
            ),
        ) {
            offset(&line);
            offset(&words.join(" "));
        }
    }
}
