//! Simulated clock errors of a host in tests, given by an equation, so that the truth is known.
//!
//! A host whose clock is shifted by θ shows t + θ(t) at the moment t. Its ticks and its monotonic
//! clocks follow the smooth part of θ alone; only its CLOCK_REALTIME steps.

use std::str::FromStr;

const NS: f64 = 1e9;

/// The equation. Times are in ns since the origin of the test.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Theta {
    /// Constant offset, in ns.
    pub offset_ns: f64,
    /// Rate error in ppm; positive is fast.
    pub ppm: f64,
    /// The rate changes by this many ppm a minute: up for a minute, down for two, up for one, and so
    /// on.
    pub wander: f64,
    /// Steps of CLOCK_REALTIME: time and size, both in ns.
    pub steps: Vec<(f64, f64)>,
}

impl Theta {
    /// θ without its steps, in ns, at `t`.
    pub fn smooth(&self, t: f64) -> f64 {
        self.offset_ns
            + self.ppm * 1e-6 * t
            + self.wander * 1e-6 * 60.0 * NS * swing(t / (60.0 * NS))
    }

    /// The steps up to `t`, in ns.
    pub fn stepped(&self, t: f64) -> f64 {
        self.steps.iter().filter(|step| step.0 <= t).map(|step| step.1).sum()
    }
}

/// The integral of a rate that rises by one a minute for one minute, falls for two, and rises for
/// one; `t` in minutes.
fn swing(t: f64) -> f64 {
    // Over each four minutes it is 0 again.
    let t = t.rem_euclid(4.0);
    match t {
        ..1.0 => t * t / 2.0,
        1.0..3.0 => 1.0 - (t - 2.0) * (t - 2.0) / 2.0,
        _ => (t - 4.0) * (t - 4.0) / 2.0,
    }
}

/// θ, and the machine's ticks at its origin.
#[derive(Debug, Clone, PartialEq)]
pub struct Shift {
    /// The equation.
    pub theta: Theta,
    /// The ticks of the machine at t = 0.
    pub origin: u64,
    /// Ticks per second of the machine.
    pub hz: u64,
}

impl Shift {
    /// The time at these ticks of the machine, in ns since the origin.
    pub fn moment(&self, ticks: u64) -> f64 {
        (i128::from(ticks) - i128::from(self.origin)) as f64 * NS / self.hz as f64
    }

    /// The host's ticks when the machine's are `ticks`: the truth.
    pub fn ticks(&self, ticks: u64) -> u64 {
        let ahead = self.theta.smooth(self.moment(ticks)) * self.hz as f64 / NS;
        ticks.saturating_add_signed(ahead.round() as i64)
    }
}

/// Why a text is not a valid equation.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error(
    "`{0}` is not `offset=123ms`, `ppm=35`, `wander=1ppm/min`, `step=50us@6s`, `origin=TICKS` or `hz=HZ`"
)]
pub struct NoShift(String);

/// The result of [`FromStr`]: θ, with its origin and rate if they are given.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct ClockEquation {
    /// The equation.
    pub theta: Theta,
    /// The ticks of the machine at t = 0.
    pub origin: Option<u64>,
    /// Ticks per second of the machine.
    pub hz: Option<u64>,
}

impl FromStr for ClockEquation {
    type Err = NoShift;

    fn from_str(text: &str) -> Result<Self, NoShift> {
        let mut equation = Self::default();
        for part in text.split(',').filter(|piece| !piece.is_empty()) {
            equation.part(part).ok_or_else(|| NoShift(part.to_owned()))?;
        }
        Ok(equation)
    }
}

impl ClockEquation {
    fn part(&mut self, part: &str) -> Option<()> {
        let (name, value) = part.split_once('=')?;
        match name {
            "offset" => self.theta.offset_ns = duration(value)?,
            "ppm" => self.theta.ppm = number(value)?,
            "wander" => self.theta.wander = number(value.strip_suffix("ppm/min")?)?,
            "step" => {
                let (by, at) = value.split_once('@')?;
                self.theta.steps.push((duration(at)?, duration(by)?));
            }
            "origin" => self.origin = Some(value.parse().ok()?),
            "hz" => self.hz = Some(value.parse().ok().filter(|&hz| hz > 0)?),
            _ => return None,
        }
        Some(())
    }
}

/// In ns.
fn duration(text: &str) -> Option<f64> {
    let units = [("ns", 1.0), ("us", 1e3), ("ms", 1e6), ("s", NS)];
    let (value, unit) = units.iter().find_map(|unit| Some((text.strip_suffix(unit.0)?, unit.1)))?;
    Some(number(value)? * unit)
}

fn number(text: &str) -> Option<f64> {
    text.parse().ok().filter(|value: &f64| value.is_finite())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_equation_is_read() {
        let text = "offset=123ms,ppm=-35,wander=1ppm/min,step=50us@6s,step=-1s@7.5s,origin=5,hz=2";
        let equation: ClockEquation = text.parse().unwrap();
        let theta = Theta {
            offset_ns: 123e6,
            ppm: -35.0,
            wander: 1.0,
            steps: vec![(6e9, 50e3), (7.5e9, -1e9)],
        };
        assert_eq!(equation, ClockEquation { theta, origin: Some(5), hz: Some(2) });
        assert_eq!("".parse(), Ok(ClockEquation::default()));
        for wrong in ["ppm", "ppm=x", "ppm=inf", "offset=3", "step=1s", "wander=1", "hz=0", "a=1"] {
            assert_eq!(wrong.parse::<ClockEquation>(), Err(NoShift(wrong.into())));
        }
    }

    /// The numerical rate equals the equation's, and only REALTIME steps.
    #[test]
    fn it_goes_as_it_says() {
        let theta = Theta { offset_ns: 5e6, ppm: 200.0, wander: 1.0, steps: vec![(6e9, 50e3)] };
        assert_eq!(theta.smooth(0.0), 5e6);
        let rate = |t: f64| (theta.smooth(t + 1e6) - theta.smooth(t - 1e6)) / 2e6 * 1e6;
        for (minutes, ppm) in
            [(0.0, 200.0), (0.5, 200.5), (1.0, 201.0), (2.0, 200.0), (3.0, 199.0), (3.5, 199.5)]
        {
            for round in [0.0, 4.0, 40.0] {
                let found = rate((minutes + round) * 60e9);
                assert!((found - ppm).abs() < 2e-3, "{minutes}: {found}");
            }
        }
        // 60 s at 201 ppm at most: the wander adds 1 ppm × 60 s / 2.
        assert_eq!(theta.smooth(60e9), 5e6 + 200e-6 * 60e9 + 30e3);
        assert_eq!((theta.stepped(6e9 - 1.0), theta.stepped(6e9)), (0.0, 50e3));
    }

    #[test]
    fn ticks_never_go_back() {
        let theta = Theta { ppm: -500.0, wander: -3.0, ..Theta::default() };
        let shift = Shift { theta, origin: 1 << 40, hz: 2_100_000_000 };
        let mut last = 0;
        for tick in (0..100_000).map(|number| (1 << 40) + number) {
            let shown = shift.ticks(tick);
            assert!(shown >= last, "{tick}");
            last = shown;
        }
        // 1 s later 500 µs are missing, and 3 ppm/min × (1 s)² / 2.
        let missing = (500e-6f64 + 3e-6 / 60.0 / 2.0) * 2.1e9;
        let second = (1 << 40) + 2_100_000_000;
        assert_eq!(shift.ticks(second), second - missing.round() as u64);
    }
}
