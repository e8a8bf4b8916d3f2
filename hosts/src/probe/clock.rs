//! The clocks of this host.

use std::fs;
use std::io;
use std::sync::Arc;

use ppt_clock::{ClockId, ClockReading};
use ppt_now::{CpuCounter, Distrust};

use super::theta::Shift;

/// The file in which the kernel names its clock source.
const CLOCKSOURCE: &str = "/sys/devices/system/clocksource/clocksource0/current_clocksource";

/// Why the clocks of this host cannot be used.
#[derive(Debug, thiserror::Error)]
pub enum ClockError {
    /// The ticks of the CPU are unreliable.
    #[error("the ticks of this host cannot be trusted: {0}")]
    Distrusted(Distrust),
    /// `PPT_TEST_CLOCK` cannot be parsed.
    #[cfg(ppt_test_clock)]
    #[error("PPT_TEST_CLOCK: {0}")]
    Test(#[from] super::theta::NoShift),
}

/// The clocks of this host: its ticks, the kernel's clocks, and the kernel's stamps.
#[derive(Debug, Clone, Default)]
pub struct HostClock {
    /// The simulated clock error, in tests.
    shifted: Option<Arc<Shifted>>,
}

#[derive(Debug)]
struct Shifted {
    shift: Shift,
    /// The readings of the machine's clocks at the origin.
    origins: [(ClockId, i128); 4],
}

impl HostClock {
    /// The real clocks. Built with `--cfg ppt_test_clock`, they have the errors that the variable
    /// `PPT_TEST_CLOCK` describes.
    ///
    /// # Errors
    /// The ticks of this host are unreliable.
    pub fn of_this_host() -> Result<Self, ClockError> {
        check()?;
        #[cfg(ppt_test_clock)]
        if let Ok(text) = std::env::var("PPT_TEST_CLOCK") {
            let equation: super::theta::ClockEquation = text.parse()?;
            let origin = equation.origin.unwrap_or_else(ppt_now::ticks);
            let hz = equation.hz.unwrap_or_else(|| Self::default().tick_hz());
            return Ok(Self::shifted(Shift { theta: equation.theta, origin, hz }));
        }
        Ok(Self::default())
    }

    /// Clocks with simulated errors, for tests.
    pub fn shifted(shift: Shift) -> Self {
        let clocks =
            [ClockId::Monotonic, ClockId::MonotonicRaw, ClockId::Boottime, ClockId::Realtime];
        let origins = clocks.map(|clock| {
            let now = ppt_now::bracket(ClockId::Tick, clock, ppt_now::read);
            (clock, i128::from(now.b_value) - shift.moment(now.a_middle()).round() as i128)
        });
        Self { shifted: Some(Arc::new(Shifted { shift, origins })) }
    }

    /// Checks that the ticks are still reliable: the kernel may switch its clock source.
    ///
    /// # Errors
    /// The ticks are no longer reliable.
    pub fn check(&self) -> Result<(), ClockError> {
        check()
    }

    /// Reads the ticks.
    pub fn ticks(&self) -> u64 {
        self.value(ClockId::Tick)
    }

    /// Reads `b` between two readings of `a`.
    pub fn reading(&self, a: ClockId, b: ClockId) -> ClockReading {
        ppt_now::bracket(a, b, |clock| self.value(clock))
    }

    /// Converts a stamp of the machine's kernel (CLOCK_REALTIME) to this host's.
    pub fn stamp(&self, realtime_ns: u64) -> u64 {
        self.shown(ClockId::Realtime, realtime_ns)
    }

    /// Ticks per second, to within some ppm; only brackets give the exact rate.
    pub fn tick_hz(&self) -> u64 {
        let first = self.reading(ClockId::Tick, ClockId::MonotonicRaw);
        std::thread::sleep(std::time::Duration::from_millis(20));
        let last = self.reading(ClockId::Tick, ClockId::MonotonicRaw);
        let ticks = last.a_middle().saturating_sub(first.a_middle());
        let ns = last.b_value.saturating_sub(first.b_value).max(1);
        let hz = u128::from(ticks) * 1_000_000_000 / u128::from(ns);
        // Rounded to its accuracy.
        (hz as u64).next_multiple_of(1000)
    }

    fn value(&self, clock: ClockId) -> u64 {
        self.shown(clock, ppt_now::read(clock))
    }

    fn shown(&self, clock: ClockId, value: u64) -> u64 {
        self.shifted.as_ref().map_or(value, |shifted| shifted.shown(clock, value))
    }
}

impl Shifted {
    fn shown(&self, clock: ClockId, value: u64) -> u64 {
        let Some((_, origin)) = self.origins.iter().find(|origin| origin.0 == clock) else {
            return self.shift.ticks(value);
        };
        let t = (i128::from(value) - origin) as f64;
        let steps = if clock == ClockId::Realtime { self.shift.theta.stepped(t) } else { 0.0 };
        value.saturating_add_signed((self.shift.theta.smooth(t) + steps).round() as i64)
    }
}

fn check() -> Result<(), ClockError> {
    let source: io::Result<String> = fs::read_to_string(CLOCKSOURCE);
    let source = source.ok();
    let source = source.as_deref().map(str::trim_end);
    ppt_now::trusted(CpuCounter::of_this_cpu(), source).map_err(ClockError::Distrusted)
}

#[cfg(test)]
mod tests {
    use super::super::theta::Theta;
    use super::*;

    /// All clocks of a simulated host follow one equation; only REALTIME steps.
    #[test]
    fn the_clocks_of_a_host_go_wrong_together() {
        let hz = HostClock::default().tick_hz();
        let second = 1e9;
        let origin = ppt_now::ticks() - 10 * hz;
        let shift = |steps| {
            let theta = Theta { offset_ns: 3.0 * second, ppm: 100_000.0, wander: 0.0, steps };
            HostClock::shifted(Shift { theta, origin, hz })
        };
        let plain = HostClock::default();
        // Ten seconds at a rate of +10 %, and 3 s ahead: 4 s and a little more.
        let ahead = |of: &HostClock, clock| {
            let now = plain.value(clock);
            of.shown(clock, now) - now
        };
        for (steps, realtime) in
            [(vec![], 0), (vec![(9e9, 2e9)], 2), (vec![(9e9, 2e9), (1e15, 7e9)], 2)]
        {
            let host_clock = shift(steps);
            for clock in [ClockId::Monotonic, ClockId::MonotonicRaw, ClockId::Boottime] {
                assert_eq!(ahead(&host_clock, clock) / 1_000_000_000, 4, "{clock:?}");
            }
            assert_eq!(ahead(&host_clock, ClockId::Realtime) / 1_000_000_000, 4 + realtime);
            assert_eq!(ahead(&host_clock, ClockId::Tick) / hz, 4);
            let stamp = ppt_now::realtime();
            assert_eq!(host_clock.stamp(stamp), host_clock.shown(ClockId::Realtime, stamp));
        }
    }
}
