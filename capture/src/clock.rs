//! Readings of two clocks at once, and what they say about ticks.

use crate::bytes::{put_u16, put_u64, u16_at, u64_at};
use crate::error::DamageKind;
use crate::format::clock;

/// A clock that a capture may hold readings of.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
#[repr(u16)]
pub enum ClockId {
    /// The CPU's counter: TSC, CNTVCT.
    Tick = 1,
    /// CLOCK_MONOTONIC, ns.
    Monotonic = 2,
    /// CLOCK_MONOTONIC_RAW, ns.
    MonotonicRaw = 3,
    /// CLOCK_BOOTTIME, ns.
    Boottime = 4,
    /// CLOCK_REALTIME, ns.
    Realtime = 5,
}

impl ClockId {
    /// Every clock.
    pub const ALL: [ClockId; 5] = [
        ClockId::Tick,
        ClockId::Monotonic,
        ClockId::MonotonicRaw,
        ClockId::Boottime,
        ClockId::Realtime,
    ];

    /// The number in the file.
    pub fn code(self) -> u16 {
        self as u16
    }

    /// The clock with this number.
    pub fn from_code(code: u16) -> Option<ClockId> {
        Self::ALL.into_iter().find(|id| id.code() == code)
    }

    /// The word in every output.
    pub fn name(self) -> &'static str {
        match self {
            ClockId::Tick => "tick",
            ClockId::Monotonic => "monotonic",
            ClockId::MonotonicRaw => "monotonic_raw",
            ClockId::Boottime => "boottime",
            ClockId::Realtime => "realtime",
        }
    }
}

/// Clock `b`, read between two readings of clock `a`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ClockReading {
    /// The clock around.
    pub a: ClockId,
    /// `a` before `b` was read.
    pub a_before: u64,
    /// The clock between.
    pub b: ClockId,
    /// What it said.
    pub b_value: u64,
    /// `a` after `b` was read.
    pub a_after: u64,
}

impl ClockReading {
    /// `a` at the moment of `b_value`, as near as the reading tells.
    pub fn a_middle(&self) -> u64 {
        self.a_before.midpoint(self.a_after)
    }

    /// The same moment on `x` and `y`, where the reading is of these two, whichever way round.
    fn pair(&self, x: ClockId, y: ClockId) -> Option<(u64, u64)> {
        if (self.a, self.b) == (x, y) {
            Some((self.a_middle(), self.b_value))
        } else if (self.a, self.b) == (y, x) {
            Some((self.b_value, self.a_middle()))
        } else {
            None
        }
    }
}

/// Payload of a clock chunk.
pub(crate) fn encode(readings: &[ClockReading]) -> Vec<u8> {
    let mut bytes = vec![0; readings.len() * clock::LEN];
    for (bytes, reading) in bytes.chunks_exact_mut(clock::LEN).zip(readings) {
        put_u16(bytes, clock::A, reading.a.code());
        put_u16(bytes, clock::B, reading.b.code());
        put_u64(bytes, clock::A_BEFORE, reading.a_before);
        put_u64(bytes, clock::B_VALUE, reading.b_value);
        put_u64(bytes, clock::A_AFTER, reading.a_after);
    }
    bytes
}

/// The readings of a clock chunk, without those of clocks of a later version.
pub(crate) fn decode(payload: &[u8]) -> Result<Vec<ClockReading>, DamageKind> {
    if !payload.len().is_multiple_of(clock::LEN) {
        return Err(DamageKind::Length);
    }
    let readings = payload.chunks_exact(clock::LEN).filter_map(|bytes| {
        Some(ClockReading {
            a: ClockId::from_code(u16_at(bytes, clock::A))?,
            a_before: u64_at(bytes, clock::A_BEFORE),
            b: ClockId::from_code(u16_at(bytes, clock::B))?,
            b_value: u64_at(bytes, clock::B_VALUE),
            a_after: u64_at(bytes, clock::A_AFTER),
        })
    });
    Ok(readings.collect())
}

/// What the clock chunks of a capture say: ticks to monotonic, and monotonic to the epoch.
///
/// Ticks become monotonic time on the straight lines between neighbouring readings, and on the
/// prolonged nearest line outside of them. The epoch is monotonic time plus the *first* offset to
/// realtime: a clock that is stepped during a capture does not reorder its frames. Later steps are
/// listed by [`ClockTable::steps`].
#[derive(Debug, Clone, Default, PartialEq)]
pub struct ClockTable {
    /// (tick, monotonic ns), both strictly rising.
    ticks: Vec<(u64, u64)>,
    /// Ticks a second as the source states them, for a table with a single reading.
    tick_hz: Option<u64>,
    /// Realtime − monotonic at the first reading of the two, ns.
    epoch: Option<i128>,
    /// The same at the latest reading.
    latest: i128,
    steps: Vec<(u64, i128)>,
}

/// A change of realtime − monotonic by more than this between two readings is a step; clock
/// discipline slews by at most 500 ppm, 0.5 ms in the second between two readings.
const STEP_NS: u128 = 5_000_000;
/// Steps kept; a hostile capture may hold any number.
const MAX_STEPS: usize = 1024;

impl ClockTable {
    /// Takes in the readings of one clock chunk.
    pub fn add(&mut self, readings: &[ClockReading]) {
        for reading in readings {
            if let Some(point) = reading.pair(ClockId::Tick, ClockId::Monotonic) {
                let rises =
                    self.ticks.last().is_none_or(|last| last.0 < point.0 && last.1 < point.1);
                if rises {
                    self.ticks.push(point);
                }
            }
            if let Some((realtime, monotonic)) = reading.pair(ClockId::Realtime, ClockId::Monotonic)
            {
                self.add_offset(monotonic, i128::from(realtime) - i128::from(monotonic));
            }
        }
    }

    /// States the nominal rate of the ticks.
    pub fn set_tick_hz(&mut self, hz: u64) {
        self.tick_hz = (hz > 0).then_some(hz);
    }

    fn add_offset(&mut self, monotonic: u64, offset: i128) {
        if self.epoch.is_none() {
            self.epoch = Some(offset);
        } else if (offset - self.latest).unsigned_abs() > STEP_NS && self.steps.len() < MAX_STEPS {
            self.steps.push((monotonic, offset - self.latest));
        }
        self.latest = offset;
    }

    /// Realtime − monotonic at the start, ns.
    pub fn epoch_offset(&self) -> Option<i128> {
        self.epoch
    }

    /// When (monotonic ns) realtime was stepped, and by how many ns.
    pub fn steps(&self) -> &[(u64, i128)] {
        &self.steps
    }

    /// Number of readings of ticks against monotonic.
    pub fn tick_readings(&self) -> usize {
        self.ticks.len()
    }

    /// Monotonic ns at `tick`; None without readings.
    pub fn tick_to_monotonic(&self, tick: u64) -> Option<i128> {
        let after = self.ticks.partition_point(|point| point.0 <= tick);
        let from = match self.ticks.len() {
            0 => return None,
            1 => 0,
            len => after.clamp(1, len - 1) - 1,
        };
        let (tick_0, ns_0) = self.ticks[from];
        let (ns, ticks) = match self.ticks.get(from + 1) {
            Some(&(tick_1, ns_1)) => (i128::from(ns_1 - ns_0), i128::from(tick_1 - tick_0)),
            None => (1_000_000_000, i128::from(self.tick_hz?)),
        };
        // Both factors are below 2^64 and one of them far below 2^63: no overflow of i128.
        let ticks_since = i128::from(tick) - i128::from(tick_0);
        Some(i128::from(ns_0) + ticks_since.checked_mul(ns)?.div_euclid(ticks))
    }

    /// ns since the epoch at `tick`; None without readings, or outside of i64.
    pub fn tick_to_epoch(&self, tick: u64) -> Option<i64> {
        i64::try_from(self.tick_to_monotonic(tick)? + self.epoch?).ok()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn tick(tick: u64, ns: u64) -> ClockReading {
        ClockReading {
            a: ClockId::Tick,
            a_before: tick - 1,
            b: ClockId::Monotonic,
            b_value: ns,
            a_after: tick + 1,
        }
    }

    fn real(mono: u64, real: u64) -> ClockReading {
        ClockReading {
            a: ClockId::Monotonic,
            a_before: mono,
            b: ClockId::Realtime,
            b_value: real,
            a_after: mono,
        }
    }

    #[test]
    fn ticks_follow_the_lines_between_readings() {
        let mut table = ClockTable::default();
        table.add(&[tick(1000, 100), tick(2000, 200), tick(3000, 400), real(100, 5100)]);
        assert_eq!(table.tick_to_monotonic(1500), Some(150));
        assert_eq!(table.tick_to_monotonic(2500), Some(300));
        assert_eq!(table.tick_to_monotonic(4000), Some(600), "prolonged");
        assert_eq!(table.tick_to_monotonic(500), Some(50), "prolonged to the front");
        assert_eq!(table.tick_to_epoch(1500), Some(5150));
    }

    #[test]
    fn one_reading_needs_the_nominal_rate() {
        let mut table = ClockTable::default();
        assert_eq!(table.tick_to_monotonic(7), None);
        table.add(&[tick(1000, 100)]);
        assert_eq!(table.tick_to_monotonic(2000), None);
        table.set_tick_hz(1_000_000_000);
        assert_eq!(table.tick_to_monotonic(2000), Some(1100));
    }

    #[test]
    fn a_step_is_listed_and_not_folded_in() {
        let mut table = ClockTable::default();
        table.add(&[real(100, 5100), real(200, 5201), real(300, 1_000_005_301)]);
        assert_eq!(table.epoch_offset(), Some(5000));
        assert_eq!(table.steps(), [(300, 1_000_000_000)]);
    }

    #[test]
    fn extremes_do_not_overflow() {
        let mut table = ClockTable::default();
        let readings = encode(&[tick(1, 0), tick(2, u64::MAX - 1), real(0, u64::MAX)]);
        table.add(&decode(&readings).unwrap());
        table.tick_to_monotonic(u64::MAX);
        assert_eq!(table.tick_to_epoch(u64::MAX), None);
    }
}
