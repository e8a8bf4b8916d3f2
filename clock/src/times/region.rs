//! The possible lines: a convex region of values and slopes.
//!
//! At one moment, the difference of two clocks has a value and a slope (ns, and ns per block). A
//! reading excludes a half-plane. As time passes, the value follows the slope, and both become more
//! uncertain within the limit of the curvature. This is set-membership estimation (Schweppe,
//! "Recursive state estimation: unknown but bounded errors", 1968). It is exact in two dimensions
//! except for the limited number of corners, and every inexactness enlarges the region.

use super::scale::ROUNDING;

/// A value and a slope.
pub(super) type ValueAndSlope = (f64, f64);

/// A convex polygon of states, counterclockwise. Never empty.
#[derive(Debug, Clone)]
pub(super) struct Region {
    corners: Vec<ValueAndSlope>,
    spare: Vec<ValueAndSlope>,
}

/// Largest number of corners. More add little information.
const CORNERS: usize = 32;

/// Number of blocks ahead for which the current slope matters.
const HORIZON: f64 = 64.0;

/// Largest value in the region without any reading, in ns: an hour.
pub(super) const UNBOUNDED: f64 = 4e12;

/// Rounding error of a step in time, in ns.
const STEP_ROUNDING: f64 = 0.004;

impl Region {
    /// All values, and slopes up to `slope`.
    pub fn all(slope: f64) -> Self {
        let mut region = Self { corners: Vec::new(), spare: Vec::new() };
        region.reset(slope);
        region
    }

    /// Discards all readings.
    pub fn reset(&mut self, slope: f64) {
        self.corners.clear();
        let (value, slope) = (UNBOUNDED, slope + ROUNDING);
        self.corners.extend([(-value, -slope), (value, -slope), (value, slope), (-value, slope)]);
    }

    pub fn corners(&self) -> &[ValueAndSlope] {
        &self.corners
    }

    pub fn set(&mut self, corners: &[ValueAndSlope]) {
        self.corners.clear();
        self.corners.extend_from_slice(corners);
    }

    /// Keeps the states with `value + at * slope <= most`, for `sign` 1; for −1 those with `>=`.
    /// Returns whether there are any; if not, the region stays as it was.
    #[must_use]
    pub fn cut(&mut self, sign: f64, at: f64, most: f64) -> bool {
        let most = sign * most + ROUNDING;
        let over = |entry: &ValueAndSlope| sign * (entry.0 + at * entry.1) - most;
        if self.corners.iter().all(|corner| over(corner) <= 0.0) {
            return true;
        }
        self.spare.clear();
        let mut last = *self.corners.last().expect("a region has corners");
        let mut last_over = over(&last);
        for &corner in &self.corners {
            let this_over = over(&corner);
            if (last_over <= 0.0) != (this_over <= 0.0) {
                let part = last_over / (last_over - this_over);
                let between = |a: f64, b: f64| a + (b - a) * part;
                self.spare.push((between(last.0, corner.0), between(last.1, corner.1)));
            }
            if this_over <= 0.0 {
                self.spare.push(corner);
            }
            (last, last_over) = (corner, this_over);
        }
        if self.spare.len() < 3 {
            return false;
        }
        std::mem::swap(&mut self.corners, &mut self.spare);
        self.simplify();
        true
    }

    /// Keeps the states that `other` also has. Returns whether there are any.
    #[must_use]
    pub fn meet(&mut self, other: &Self) -> bool {
        let corners = &other.corners;
        let mut last = *corners.last().expect("a region has corners");
        for &corner in corners {
            let (value, slope) = (corner.0 - last.0, corner.1 - last.1);
            // The region is on its left. Uses the value where possible, because ROUNDING applies to
            // values.
            let ok = if slope.abs() > 1e-9 * value.abs() {
                let at = -value / slope;
                self.cut(slope.signum(), at, last.0 + at * last.1)
            } else if value > 0.0 {
                self.cut_slope(-1.0, last.1.min(corner.1))
            } else if value < 0.0 {
                self.cut_slope(1.0, last.1.max(corner.1))
            } else {
                true
            };
            if !ok {
                return false;
            }
            last = corner;
        }
        true
    }

    /// Keeps the states whose slope is at most `most`, for `sign` 1; at least, for −1.
    fn cut_slope(&mut self, sign: f64, most: f64) -> bool {
        if self.corners.iter().all(|corner| sign * (corner.1 - most) <= ROUNDING) {
            return true;
        }
        let flip = |entries: &mut Vec<ValueAndSlope>| {
            entries.iter_mut().for_each(|entry| *entry = (entry.1, entry.0));
            entries.reverse();
        };
        flip(&mut self.corners);
        let any = self.cut(sign, 0.0, most);
        flip(&mut self.corners);
        any
    }

    /// Moves `blocks` ahead (back, if negative), while the slope changes by up to `curve` per
    /// block.
    pub fn pass(&mut self, blocks: f64, curve: f64, slope: f64) {
        for corner in &mut self.corners {
            corner.0 += corner.1 * blocks;
        }
        let far = blocks.abs();
        // The change of the slope together with the change of the value that it causes, then the
        // remaining change of the value.
        self.widen((curve * far * blocks / 2.0, curve * far));
        self.widen((curve * far * far / 4.0 + STEP_ROUNDING, 0.0));
        self.simplify();
        // The limit of slopes always holds. `cut` reports an empty region.
        let _ = self.cut_slope(1.0, slope) && self.cut_slope(-1.0, -slope);
    }

    /// Adds all states from `-by` to `by`.
    fn widen(&mut self, by: ValueAndSlope) {
        // An edge moves to the side that it faces.
        let side = |a: ValueAndSlope, b: ValueAndSlope| (b.1 - a.1) * by.0 - (b.0 - a.0) * by.1;
        let count = self.corners.len();
        let edge = |i: usize| side(self.corners[i % count], self.corners[(i + 1) % count]);
        let start = (0..count).find(|&index| edge(index) != 0.0);
        let Some(start) = start else { return };
        let mut sign = edge(start).signum();
        self.spare.clear();
        for i in start + 1..=start + count {
            let corner = self.corners[i % count];
            self.spare.push((corner.0 + sign * by.0, corner.1 + sign * by.1));
            let next = edge(i);
            if next != 0.0 && next.signum() != sign {
                sign = next.signum();
                self.spare.push((corner.0 + sign * by.0, corner.1 + sign * by.1));
            }
        }
        std::mem::swap(&mut self.corners, &mut self.spare);
    }

    /// Removes the edges that matter least until few are left.
    fn simplify(&mut self) {
        while self.corners.len() > CORNERS {
            let count = self.corners.len();
            let mut least = (f64::INFINITY, 0, (0.0, 0.0));
            for i in 0..count {
                let corner = |by: usize| self.corners[(i + by) % count];
                if let Some((loose, meeting)) = beyond(corner(0), corner(1), corner(2), corner(3))
                    && loose < least.0
                {
                    least = (loose, i, meeting);
                }
            }
            let (loose, i, meeting) = least;
            if loose == f64::INFINITY {
                return;
            }
            self.corners[(i + 1) % count] = meeting;
            self.corners.remove((i + 2) % count);
        }
    }

    /// The minimum and the maximum value of a state, `blocks` from here.
    pub fn values(&self, blocks: f64) -> (f64, f64) {
        let values = self.corners.iter().map(|corner| corner.0 + corner.1 * blocks);
        values.fold((f64::INFINITY, f64::NEG_INFINITY), |(lo, hi), value| {
            (lo.min(value), hi.max(value))
        })
    }
}

/// The intersection of the edges on both sides of the edge `b`–`c`, and its distance: how far
/// removing the edge loosens the bound, in ns, for values up to about [`HORIZON`] away.
fn beyond(
    a: ValueAndSlope,
    b: ValueAndSlope,
    c: ValueAndSlope,
    d: ValueAndSlope,
) -> Option<(f64, ValueAndSlope)> {
    let (from, to) = ((b.0 - a.0, b.1 - a.1), (c.0 - d.0, c.1 - d.1));
    let edge = (c.0 - b.0, c.1 - b.1);
    let cross = |a: ValueAndSlope, b: ValueAndSlope| a.0 * b.1 - a.1 * b.0;
    let turn = cross(from, to);
    // b + s * from = c + t * to
    let (s, t) = (cross(edge, to) / turn, cross(edge, from) / turn);
    if !(s >= 0.0 && t >= 0.0 && s.is_finite()) {
        return None;
    }
    let meeting = (b.0 + s * from.0, b.1 + s * from.1);
    let area = cross(edge, (meeting.0 - b.0, meeting.1 - b.1)).abs();
    let loose = match area {
        0.0 => 0.0,
        area => area * HORIZON / edge.0.hypot(edge.1 * HORIZON),
    };
    loose.is_finite().then_some((loose, meeting))
}
