//! The information of the messages between two hosts, per block of time.

use super::hull::{self, HullPoint};
use super::model::BLOCK;

/// Bounds of θ, the time of the far host − that of the near one, by the near host's time: ns.
///
/// A message to the far host arrives after it was sent: θ is at most arrival − departure, at the
/// time of departure. For a message back, θ is at least departure − arrival, at the time of
/// arrival. With the earliest possible departure and the latest possible arrival, this holds for
/// any error of the stamps.
#[derive(Debug, Clone, Default)]
pub(super) struct Bounds {
    /// Upper bounds of θ.
    pub upper: Vec<HullPoint>,
    /// Lower bounds of θ.
    pub lower: Vec<HullPoint>,
}

/// A second, and the points of both hulls in it: the offset from its middle, in blocks, and a bound
/// of the tangent of θ in the middle, including the allowance for curvature.
#[derive(Debug, Clone, Copy)]
pub(super) struct HullBlock {
    pub index: i64,
    start: usize,
    lower: usize,
    end: usize,
}

/// All blocks with points.
#[derive(Debug, Default)]
pub(super) struct Blocks {
    pub blocks: Vec<HullBlock>,
    points: Vec<HullPoint>,
    /// The value to which all bounds are relative.
    pub pivot: f64,
}

/// The middle of a block.
pub(super) fn middle(index: i64) -> f64 {
    (index as f64 + 0.5) * BLOCK
}

/// The block of a moment.
pub(super) fn index(ns: f64) -> i64 {
    (ns / BLOCK).floor() as i64
}

impl Blocks {
    pub fn from_bounds(mut bounds: Bounds, curve: f64) -> Self {
        // Files are in chronological order, or consist of several ordered parts, which the sort
        // detects.
        bounds.upper.sort_by(|a, b| a.0.total_cmp(&b.0));
        bounds.lower.sort_by(|a, b| a.0.total_cmp(&b.0));
        let (mut upper, mut lower) = (bounds.upper.as_slice(), bounds.lower.as_slice());
        let least = upper.iter().map(|entry| entry.1).min_by(f64::total_cmp);
        let most = || lower.iter().map(|entry| entry.1).max_by(f64::total_cmp);
        let pivot = least.or_else(most).unwrap_or(0.0);
        let mut hulls = Self { pivot, ..Self::default() };
        let mut hull = Vec::new();
        loop {
            let next = [upper, lower]
                .into_iter()
                .filter_map(|entries| Some(index(entries.first()?.0)))
                .min();
            let Some(index) = next else { return hulls };
            let start = hulls.points.len();
            hulls.hull(&mut upper, index, 1.0, curve, &mut hull);
            let split = hulls.points.len();
            hulls.hull(&mut lower, index, -1.0, curve, &mut hull);
            hulls.blocks.push(HullBlock { index, start, lower: split, end: hulls.points.len() });
        }
    }

    /// Removes the points of a block from `rest`, and keeps their hull.
    fn hull(
        &mut self,
        rest: &mut &[HullPoint],
        at: i64,
        sign: f64,
        curve: f64,
        hull: &mut Vec<HullPoint>,
    ) {
        let count = rest.iter().take_while(|entry| index(entry.0) == at).count();
        let (points, after) = rest.split_at(count);
        *rest = after;
        let middle = middle(at);
        hull.clear();
        hull.extend(points.iter().map(|point| {
            let x = (point.0 - middle) / BLOCK;
            (x, sign * (point.1 - self.pivot) + curve * x * x / 2.0)
        }));
        hull::lower(hull);
        self.points.extend(hull.iter().map(|entry| (entry.0, sign * entry.1)));
    }

    /// Upper bounds.
    pub fn upper(&self, block: HullBlock) -> &[HullPoint] {
        &self.points[block.start..block.lower]
    }

    /// Lower bounds.
    pub fn lower(&self, block: HullBlock) -> &[HullPoint] {
        &self.points[block.lower..block.end]
    }
}
