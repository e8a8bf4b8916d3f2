//! Readings of two clocks at once.

use crate::bytes::{put_u16, put_u32, put_u64, u16_at, u32_at, u64_at};
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
    /// The system does not trust ticks (any more): the reading proves nothing about them.
    pub distrusted: bool,
}

impl ClockReading {
    /// `a` at the moment of `b_value`, as near as the reading tells.
    pub fn a_middle(&self) -> u64 {
        self.a_before.midpoint(self.a_after)
    }

    /// The same moment on `x` and `y`, where the reading is of these two, whichever way round.
    pub(crate) fn pair(&self, x: ClockId, y: ClockId) -> Option<(u64, u64)> {
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
        put_u32(bytes, clock::FLAGS, if reading.distrusted { clock::DISTRUSTED } else { 0 });
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
            distrusted: u32_at(bytes, clock::FLAGS) & clock::DISTRUSTED != 0,
        })
    });
    Ok(readings.collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn readings_are_read_back() {
        let reading = ClockReading {
            a: ClockId::Tick,
            a_before: 1,
            b: ClockId::Monotonic,
            b_value: 2,
            a_after: 3,
            distrusted: true,
        };
        let trusted = ClockReading { distrusted: false, ..reading };
        let mut bytes = encode(&[reading, trusted, reading]);
        put_u16(&mut bytes, 2 * clock::LEN + clock::B, 999);
        assert_eq!(
            decode(&bytes).unwrap(),
            [reading, trusted],
            "one of a later version is skipped"
        );
        assert!(decode(&bytes[1..]).is_err());
    }
}
