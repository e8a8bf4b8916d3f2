//! What is assumed of clocks.

/// Limits that the clocks of all hosts keep. Every bound holds if they do, and only then.
///
/// Readings that contradict them show as steps ([`crate::times::ClockStep`]).
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Model {
    /// The rate of the ticks of one host changes by at most this, in ppm a minute, against true time.
    /// Two hosts change by twice as much against each other.
    pub wander_ppm_per_min: f64,
    /// The ticks of two hosts differ by at most this from what their nominal rates say, in ppm.
    pub rate_ppm: f64,
    /// CLOCK_REALTIME of a host differs by at most this from the nominal rate of its ticks, in ppm.
    /// Linux corrects it by at most 500 ppm; the rest is what the nominal rate may be wrong by.
    pub slew_ppm: f64,
    /// Whether what other programs say of true time (`said`) is as true as they say. Bounds that rest on
    /// it hold as far as that does.
    pub believes_said: bool,
}

impl Default for Model {
    fn default() -> Self {
        Self { wander_ppm_per_min: 1.0, rate_ppm: 500.0, slew_ppm: 600.0, believes_said: false }
    }
}

/// So far apart are knots where there are readings, in ns.
pub(super) const BLOCK: f64 = 1e9;

impl Model {
    /// By how much the difference of two hosts curves: the change of its slope in one block, in
    /// ns a block.
    pub(super) fn curve(&self) -> f64 {
        // One per cent covers that a host's own second is not that of the others.
        let per_s = 2.0 * 1.01 * self.wander_ppm_per_min.max(0.0) * 1e-6 / 60.0;
        per_s * (BLOCK * 1e-9) * BLOCK
    }

    /// Most that the difference of two hosts changes in one block, in ns.
    pub(super) fn slope(&self) -> f64 {
        self.rate_ppm.max(0.0) * 1e-6 * BLOCK
    }

    /// The slew as a fraction, less than 1.
    pub(super) fn slew(&self) -> f64 {
        (self.slew_ppm.max(0.0) * 1e-6).min(0.5)
    }
}
