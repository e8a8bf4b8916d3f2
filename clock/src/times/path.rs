//! Lines between knots, with lookup in both directions.

use super::track::{DifferenceKnot, Jump, Track};

/// The relation of two hosts from their readings. The near host reads `x`; the far host's reading
/// at the same moment is between two lines over `x`.
#[derive(Debug)]
pub(super) struct HostEdge {
    pub near: usize,
    pub far: usize,
    parts: Vec<SteadyStretch>,
    pub jumps: Vec<Jump>,
    pub unbounded: Vec<i64>,
}

/// An interval without a step: lines between knots.
#[derive(Debug)]
pub(super) struct SteadyStretch {
    knots: Vec<DifferenceKnot>,
    /// The largest reading of the far host that is certainly reached at a knot.
    reached: Vec<f64>,
    /// The smallest reading of the far host that is certainly not yet reached at a knot.
    ahead: Vec<f64>,
}

impl SteadyStretch {
    pub fn new(knots: Vec<DifferenceKnot>) -> Self {
        let mut reached: Vec<_> = knots.iter().map(|knot| knot.x + knot.lo).collect();
        for i in 1..reached.len() {
            reached[i] = reached[i].max(reached[i - 1]);
        }
        let mut ahead: Vec<_> = knots.iter().map(|knot| knot.x + knot.hi).collect();
        for i in (1..ahead.len()).rev() {
            ahead[i - 1] = ahead[i - 1].min(ahead[i]);
        }
        Self { knots, reached, ahead }
    }

    /// The bounds of θ at `x`.
    fn at(&self, x: f64) -> Option<(f64, f64)> {
        let after = self.knots.partition_point(|knot| knot.x < x);
        let to = self.knots.get(after)?;
        if to.x == x {
            return Some((to.lo, to.hi));
        }
        let from = self.knots.get(after.checked_sub(1)?)?;
        let part = (x - from.x) / (to.x - from.x);
        let between = |a: f64, b: f64| match a.is_finite() && b.is_finite() {
            true => a + (b - a) * part,
            false if a.is_finite() => b,
            false => a,
        };
        Some((between(from.lo, to.lo), between(from.hi, to.hi)))
    }

    /// A reading of the near host at which the far one has certainly reached `far`.
    pub fn reached(&self, far: f64) -> Option<f64> {
        let at = self.reached.partition_point(|&value| value < far);
        let to = self.knots.get(at)?;
        let from = self.knots[at.checked_sub(1)?];
        let (low, high) = (from.x + from.lo, to.x + to.lo);
        Some(cross(far, (from.x, low), (to.x, high)).unwrap_or(to.x))
    }

    /// A reading of the near host at which the far one has certainly not passed `far`.
    pub fn ahead(&self, far: f64) -> Option<f64> {
        let at = self.ahead.partition_point(|&value| value <= far);
        let to = self.knots.get(at)?;
        let from = self.knots[at.checked_sub(1)?];
        let (low, high) = (from.x + from.hi, to.x + to.hi);
        Some(cross(far, (from.x, low), (to.x, high)).unwrap_or(from.x))
    }
}

/// The position of height `y` on the line between two points.
fn cross(y: f64, from: (f64, f64), to: (f64, f64)) -> Option<f64> {
    let at = from.0 + (to.0 - from.0) * ((y - from.1) / (to.1 - from.1));
    (from.1 <= y && y <= to.1 && at.is_finite()).then(|| at.clamp(from.0, to.0))
}

impl HostEdge {
    pub fn new(near: usize, far: usize, track: Track) -> Self {
        let parts = track.parts.into_iter().map(SteadyStretch::new).collect();
        Self { near, far, parts, jumps: track.jumps, unbounded: track.unbounded }
    }

    /// The part that covers `x`.
    fn part(&self, x: f64) -> Option<&SteadyStretch> {
        let after =
            self.parts.partition_point(|part| part.knots.first().is_some_and(|knot| knot.x <= x));
        self.parts.get(after.checked_sub(1)?)
    }

    /// The bounds of the far host's reading when the near one reads `x`.
    pub fn far(&self, x: f64) -> Option<(f64, f64)> {
        let (lo, hi) = self.part(x)?.at(x)?;
        Some((x + lo, x + hi))
    }

    /// The bounds of the near host's reading when the far one reads `far`. `None` after a step
    /// back, where a reading occurs twice.
    pub fn near(&self, far: f64) -> Option<(f64, f64)> {
        let parts =
            self.parts.iter().filter_map(|part| Some((part.ahead(far)?, part.reached(far)?)));
        let mut found = parts.take(2);
        match (found.next(), found.next()) {
            (found, None) => found,
            _ => None,
        }
    }

    /// All knots.
    pub fn knots(&self) -> impl Iterator<Item = &DifferenceKnot> {
        self.parts.iter().flat_map(|part| &part.knots)
    }
}
