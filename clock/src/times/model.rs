//! Assumptions about clocks.

/// Limits of the clocks of all hosts. Every bound holds if they are met, and only then.
///
/// Readings that contradict them appear as steps ([`crate::times::ClockStep`]).
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct ClockModel {
    /// Largest change of the tick rate of one host against true time, in ppm per minute. Two hosts
    /// change by up to twice as much against each other.
    pub wander_ppm_per_min: f64,
    /// Largest difference of the tick rates of two hosts from their nominal rates, in ppm.
    pub rate_ppm: f64,
    /// Largest difference of CLOCK_REALTIME of a host from the nominal rate of its ticks, in ppm.
    /// Linux corrects it by at most 500 ppm; the rest is the error of the nominal rate.
    pub slew_ppm: f64,
    /// Whether the reports of other programs on true time (`said`) are within their stated errors.
    /// Bounds that use them hold only if that is true.
    pub trusts_reports: bool,
}

impl Default for ClockModel {
    fn default() -> Self {
        Self { wander_ppm_per_min: 1.0, rate_ppm: 500.0, slew_ppm: 600.0, trusts_reports: false }
    }
}

/// Distance of knots where there are readings, in ns.
pub(super) const BLOCK: f64 = 1e9;

impl ClockModel {
    /// Curvature of the difference of two hosts: the change of its slope in one block, in ns per
    /// block.
    pub(super) fn curve(&self) -> f64 {
        // One percent is added because a host's own second differs from that of the others.
        let per_s = 2.0 * 1.01 * self.wander_ppm_per_min.max(0.0) * 1e-6 / 60.0;
        per_s * (BLOCK * 1e-9) * BLOCK
    }

    /// Largest change of the difference of two hosts in one block, in ns.
    pub(super) fn slope(&self) -> f64 {
        self.rate_ppm.max(0.0) * 1e-6 * BLOCK
    }

    /// The slew as a fraction, less than 1.
    pub(super) fn slew(&self) -> f64 {
        (self.slew_ppm.max(0.0) * 1e-6).min(0.5)
    }
}
