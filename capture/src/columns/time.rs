//! Points in time. This module is the only decoder of `@at` fields and of all other times.

use std::ops::RangeInclusive;

use ppt_clock::{ClockTable, Stamps};
use ppt_frame_dsl::TimeType;
use ppt_frame_dsl::schema::{Clock, Field};

use super::access::{Access, PlainNumber};

/// The reader of a field that is a point in time.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Time {
    at: usize,
    ty: TimeType,
}

/// The clock and unit of a time. Numbers of one scale can be compared.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum TimeScale {
    /// Ticks of the CPU's counter. If bit 63 is set, ns of the monotonic clock.
    Ticks,
    /// Nanoseconds of a clock.
    Ns(Clock),
}

impl Time {
    pub(crate) fn new(at: usize, ty: TimeType) -> Time {
        Time { at, ty }
    }

    /// The reader of `field`, if it holds a time.
    pub fn from_field(field: &Field) -> Option<Time> {
        Some(Time { at: field.offset as usize, ty: TimeType::for_field_type(&field.ty)? })
    }

    /// The scale of its number.
    #[inline]
    pub fn scale(self) -> TimeScale {
        self.ty.clock().map_or(TimeScale::Ticks, TimeScale::Ns)
    }

    /// The time in `frame` in the form of a chunk's head, as a number of its scale. 0 if it was not
    /// recorded or cannot be a time.
    #[inline(always)]
    pub fn word(self, frame: &[u8]) -> u64 {
        let word = |at: usize| u64::read(frame, at).unwrap_or(0);
        let first = word(self.at);
        let pair = |unit: u64| {
            let rest = word(self.at.saturating_add(8)).checked_mul(unit)?;
            first.checked_mul(1_000_000_000)?.checked_add(rest)
        };
        let time = match self.ty {
            TimeType::Ticks => return first,
            TimeType::Ns(_) => Some(first),
            TimeType::Timespec(_) => pair(1),
            TimeType::Timeval => pair(1000),
        };
        time.filter(|&time| time <= i64::MAX as u64).unwrap_or(0)
    }

    /// Converts such a number to ns since the epoch. `None` for 0, and if the conversion is
    /// unknown. `offset` is realtime minus monotonic time.
    #[inline(always)]
    pub fn epoch(self, word: u64, stamps: &Stamps<'_>, offset: Option<i128>) -> Option<i128> {
        match (self.scale(), word) {
            (_, 0) => None,
            (TimeScale::Ticks, word) => stamps.epoch(word).map(i128::from),
            (TimeScale::Ns(Clock::Realtime), ns) => Some(stamps.aligned(ns.into())),
            (TimeScale::Ns(Clock::Monotonic), ns) => {
                Some(stamps.aligned(stamps.monotonic(ns) + offset?))
            }
            (TimeScale::Ns(Clock::Boottime), ns) => stamps.boottime_to_epoch(ns),
            (TimeScale::Ns(Clock::ThreadCpu | Clock::ProcessCpu), _) => None,
        }
    }

    /// The smallest and the largest time of the frames of a chunk, in ns since the epoch. `words`
    /// are those in its head. `None` if it states none. `clocks` are those of `stamps`.
    pub fn bounds(
        self,
        words: RangeInclusive<u64>,
        stamps: &Stamps<'_>,
        clocks: &ClockTable,
        offset: Option<i128>,
    ) -> Option<(i128, i128)> {
        // If the counter jumped, its smallest and largest values are not the first and last times.
        if self.scale() == TimeScale::Ticks && !clocks.tick_steps().is_empty() {
            return None;
        }
        let time = |word| self.epoch(word, stamps, offset);
        Some((time(*words.start())?, time(*words.end())?))
    }

    /// The number in `frame`, unchecked. `None` if it was not recorded, and for ticks.
    pub fn number(self, frame: &[u8]) -> Option<i128> {
        let word = |at: usize| i64::read(frame, at);
        let pair = |unit: i128| match (word(self.at)?, word(self.at.checked_add(8)?)?) {
            (0, 0) => None,
            (seconds, rest) => Some(i128::from(seconds) * 1_000_000_000 + i128::from(rest) * unit),
        };
        match self.ty {
            TimeType::Ticks => None,
            TimeType::Ns(_) => word(self.at).filter(|&ns| ns != 0).map(i128::from),
            TimeType::Timespec(_) => pair(1),
            TimeType::Timeval => pair(1000),
        }
    }
}

/// The time between two points, in ns. `None` if one of them was not recorded or is unknown.
#[derive(Debug, Clone, Copy)]
pub struct TimeLength<'a> {
    start: Time,
    end: Time,
    stamps: &'a Stamps<'a>,
}

impl<'a> TimeLength<'a> {
    pub(crate) fn new(start: Time, end: Time, stamps: &'a Stamps<'a>) -> Self {
        TimeLength { start, end, stamps }
    }
}

impl Access for TimeLength<'_> {
    type Value = i64;

    #[inline]
    fn get(self, frame: &[u8]) -> Option<i64> {
        let ns = |time: Time| match (time.scale(), time.word(frame)) {
            (_, 0) => None,
            (TimeScale::Ticks, word) => self.stamps.epoch(word),
            (TimeScale::Ns(_), word) => i64::try_from(word).ok(),
        };
        ns(self.end)?.checked_sub(ns(self.start)?)
    }
}

/// One half of a timeval. `None` if both halves are 0.
#[derive(Debug, Clone, Copy)]
pub struct TimevalHalf {
    /// Offset of the timeval.
    at: usize,
    /// Offset of the half from there, in bytes.
    half: usize,
}

impl TimevalHalf {
    pub(crate) fn seconds(at: usize) -> TimevalHalf {
        TimevalHalf { at, half: 0 }
    }

    pub(crate) fn microseconds(at: usize) -> TimevalHalf {
        TimevalHalf { at, half: 8 }
    }

    /// The number in `frame`.
    pub fn get(self, frame: &[u8]) -> Option<i64> {
        let word = |at: usize| i64::read(frame, self.at.checked_add(at)?);
        let whole = (word(0)?, word(8)?);
        if whole == (0, 0) { None } else { word(self.half) }
    }
}
