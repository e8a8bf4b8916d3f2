//! Converts ticks of a host to nanoseconds by their nominal rate, and back.

/// The origin and the nominal rate of one host's ticks.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) struct TickOrigin {
    /// The tick at 0 ns.
    pub base: u64,
    pub hz: u64,
}

/// Nearly two weeks. Within it a nanosecond count in `f64` is exact to an eighth of a ns.
pub(super) const SPAN: f64 = (1u64 << 50) as f64;

impl TickOrigin {
    /// The ns from the origin to `tick`; `None` if it is too far away to be exact.
    pub fn ns(&self, tick: u64) -> Option<f64> {
        let ticks = i128::from(tick) - i128::from(self.base);
        let hz = i128::from(self.hz);
        let (whole, rest) = (ticks.div_euclid(hz), ticks.rem_euclid(hz));
        let ns = whole as f64 * 1e9 + rest as f64 * 1e9 / self.hz as f64;
        (ns.abs() <= SPAN).then_some(ns)
    }

    /// The last tick that is certainly not after `ns`.
    pub fn tick_before(&self, ns: f64) -> i128 {
        self.tick(ns - ROUNDING).0
    }

    /// The first tick that is certainly not before `ns`.
    pub fn tick_after(&self, ns: f64) -> i128 {
        self.tick(ns + ROUNDING).1
    }

    /// The ticks on both sides.
    fn tick(&self, ns: f64) -> (i128, i128) {
        let s = (ns / 1e9).floor();
        let part = (ns - s * 1e9) * self.hz as f64 / 1e9;
        let whole = i128::from(self.base) + s as i128 * i128::from(self.hz);
        (whole + part.floor() as i128, whole + part.ceil() as i128)
    }
}

/// Largest error of `f64` arithmetic within [`SPAN`], in ns.
pub(super) const ROUNDING: f64 = 0.25;
