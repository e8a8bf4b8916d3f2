//! Readings of two clocks at once.

/// A clock that can be read together with another.
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

    /// The number of this clock in captures.
    pub fn code(self) -> u16 {
        self as u16
    }

    /// The clock with this number.
    pub fn from_code(code: u16) -> Option<ClockId> {
        Self::ALL.into_iter().find(|id| id.code() == code)
    }

    /// The name of this clock in every output.
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
    /// The clock that is read before and after `b`.
    pub a: ClockId,
    /// `a` before `b` was read.
    pub a_before: u64,
    /// The clock that is read between the two readings of `a`.
    pub b: ClockId,
    /// The value of `b`.
    pub b_value: u64,
    /// `a` after `b` was read.
    pub a_after: u64,
    /// Whether the system does not trust ticks, so that the reading is no evidence about them.
    pub distrusted: bool,
}

impl ClockReading {
    /// The values of two clocks at one moment.
    pub fn exact(a: ClockId, a_value: u64, b: ClockId, b_value: u64) -> Self {
        Self { a, a_before: a_value, b, b_value, a_after: a_value, distrusted: false }
    }

    /// The best estimate of `a` at the time of `b_value`.
    pub fn a_middle(&self) -> u64 {
        self.a_before.midpoint(self.a_after)
    }

    /// The same moment on `x` and `y`, if the reading is of these two, in either order.
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
