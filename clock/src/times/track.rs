//! The bounds of the difference of two hosts over the time of their readings.

use super::blocks::{Blocks, HullBlock, middle};
use super::grid;
use super::region::{Region, UNBOUNDED};

/// Limits of curvature and slope, in ns and blocks.
#[derive(Debug, Clone, Copy)]
pub(super) struct TrackLimits {
    pub curve: f64,
    pub slope: f64,
}

/// Bounds of the difference θ: at `x` of the near host it is from `lo` to `hi`, between two knots
/// it is between the lines. Infinite where there is no bound. All in ns.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) struct DifferenceKnot {
    pub x: f64,
    pub lo: f64,
    pub hi: f64,
}

/// The difference stepped: the readings before and after it are inconsistent.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) struct Jump {
    /// The last knot before it and the first one after it.
    pub between: (f64, f64),
    /// The range of the step.
    pub by: (f64, f64),
}

/// Knots without a step, and the steps between.
#[derive(Debug, Default)]
pub(super) struct Track {
    pub parts: Vec<Vec<DifferenceKnot>>,
    pub jumps: Vec<Jump>,
    /// Blocks without a result.
    pub unbounded: Vec<i64>,
}

/// Makes tracks.
pub(super) struct Tracker<'a> {
    blocks: &'a Blocks,
    limits: TrackLimits,
}

impl<'a> Tracker<'a> {
    pub fn new(blocks: &'a Blocks, limits: TrackLimits) -> Self {
        Self { blocks, limits }
    }

    /// The track, given that the difference steps within the blocks `steps`.
    pub fn track(&self, steps: &[usize]) -> Track {
        let count = self.blocks.blocks.len();
        let mut track = Track::default();
        let ends = steps.iter().copied().chain([count]);
        let starts = [0].into_iter().chain(steps.iter().map(|step| step + 1));
        let mut parts: Vec<Vec<usize>> = Vec::new();
        for (start, end) in starts.zip(ends) {
            let range: Vec<_> = (start..end).collect();
            if self.fits(&range) {
                parts.push(range);
            } else {
                parts.extend(self.divide(start, end));
            }
        }
        parts.retain(|part| !part.is_empty());
        let bounded: Vec<_> = parts.iter().flatten().copied().collect();
        let mut bounded = bounded.into_iter().peekable();
        for i in 0..count {
            match bounded.peek() {
                Some(&next) if next == i => drop(bounded.next()),
                _ => track.unbounded.push(self.blocks.blocks[i].index),
            }
        }
        for pair in parts.windows(2) {
            track.jumps.push(self.jump(&pair[0], &pair[1]));
        }
        for part in &parts {
            let (before, after) = (part.first() == Some(&0), part.last() == Some(&(count - 1)));
            track.parts.push(self.smooth(part, before, after));
        }
        track
    }

    /// Keeps in `region` what the readings of `block` allow.
    fn apply(&self, region: &mut Region, block: HullBlock) -> bool {
        let blocks = self.blocks;
        blocks.upper(block).iter().all(|entry| region.cut(1.0, entry.0, entry.1))
            && blocks.lower(block).iter().all(|entry| region.cut(-1.0, entry.0, entry.1))
    }

    /// The region after the last of `blocks`, or the first of them that is inconsistent.
    fn along(&self, blocks: impl Iterator<Item = usize>) -> (Region, Option<usize>) {
        let mut region = Region::all(self.limits.slope);
        let mut last = None;
        for i in blocks {
            let block = self.blocks.blocks[i];
            if let Some(last) = last {
                self.pass(&mut region, last, block.index);
            }
            last = Some(block.index);
            if !self.apply(&mut region, block) {
                return (region, Some(i));
            }
        }
        (region, None)
    }

    fn pass(&self, region: &mut Region, from: i64, to: i64) {
        region.pass((to - from) as f64, self.limits.curve, self.limits.slope);
    }

    fn fits(&self, blocks: &[usize]) -> bool {
        self.along(blocks.iter().copied()).1.is_none()
    }

    /// Divides blocks into consistent parts. Blocks between two parts, or excluded from one, fit
    /// neither side or both: no bound may use them.
    ///
    /// From the front, a step is not after the first block that is inconsistent with earlier ones.
    /// From the end, it is not before the first block that is inconsistent with later ones.
    fn divide(&self, start: usize, end: usize) -> Vec<Vec<usize>> {
        let mut wrong = Vec::new();
        let mut from = start;
        while let Some(at) = self.along(from..end).1 {
            wrong.push((from, at));
            from = at + 1;
        }
        let mut parts = Vec::new();
        let mut part: Vec<_> = (from..end).collect();
        for (from, at) in wrong.into_iter().rev() {
            let back = part.iter().rev().copied().chain((from..at).rev());
            let fails = self.along(back).1;
            let before: Vec<_> = match fails {
                // The block is inconsistent, but all others agree: it alone is wrong.
                None => (from..at).chain(part.drain(..)).collect(),
                Some(first) => {
                    parts.push(std::mem::take(&mut part));
                    (from..first.min(at)).collect()
                }
            };
            part = before;
        }
        parts.push(part);
        parts.reverse();
        parts
    }

    /// The step between two parts.
    fn jump(&self, before: &[usize], after: &[usize]) -> Jump {
        let index = |i: Option<&usize>| self.blocks.blocks[*i.expect("parts have blocks")].index;
        let (last, first) = (index(before.last()), index(after.first()));
        let (mut left, _) = self.along(before.iter().copied());
        self.pass(&mut left, last, first);
        let (right, _) = self.along(after.iter().rev().copied());
        let (left, right) = (left.values(0.0), right.values(0.0));
        Jump { between: (middle(last), middle(first)), by: (right.0 - left.1, right.1 - left.0) }
    }

    /// Knots that use all of `part`, before and after them.
    fn smooth(&self, part: &[usize], before: bool, after: bool) -> Vec<DifferenceKnot> {
        let data: Vec<_> = part.iter().map(|&index| self.blocks.blocks[index].index).collect();
        let grid = grid::fill(&data, before, after);
        let mut corners = Vec::new();
        let mut ends = Vec::with_capacity(grid.len());
        let mut region = Region::all(self.limits.slope);
        let mut next = 0;
        for (i, &index) in grid.iter().enumerate() {
            if i > 0 {
                self.pass(&mut region, grid[i - 1], index);
            }
            if data.get(next) == Some(&index) {
                // It is consistent, as was checked before.
                let _ = self.apply(&mut region, self.blocks.blocks[part[next]]);
                next += 1;
            }
            corners.extend_from_slice(region.corners());
            ends.push(corners.len());
        }
        let mut knots = Vec::with_capacity(grid.len());
        region.reset(self.limits.slope);
        let (mut forward, mut both) = (region.clone(), region.clone());
        for (i, &index) in grid.iter().enumerate().rev() {
            if let Some(&later) = grid.get(i + 1) {
                self.pass(&mut region, later, index);
            }
            if next > 0 && data[next - 1] == index {
                next -= 1;
                let _ = self.apply(&mut region, self.blocks.blocks[part[next]]);
            }
            forward.set(&corners[i.checked_sub(1).map_or(0, |index| ends[index])..ends[i]]);
            both.set(region.corners());
            // If rounding makes the region empty, one of the two is still right.
            if !both.meet(&forward) {
                both.set(forward.corners());
            }
            let gap = |a: usize, b: usize| Some((grid.get(b)? - grid.get(a)?) as f64);
            let left = i.checked_sub(1).and_then(|index| gap(index, i)).unwrap_or(0.0);
            let far = left.max(gap(i, i + 1).unwrap_or(0.0));
            let slack = self.limits.curve * far * far / 8.0;
            let (lo, hi) = both.values(0.0);
            let lo = if lo < -UNBOUNDED / 2.0 { f64::NEG_INFINITY } else { lo - slack };
            let hi = if hi > UNBOUNDED / 2.0 { f64::INFINITY } else { hi + slack };
            let pivot = self.blocks.pivot;
            knots.push(DifferenceKnot { x: middle(index), lo: lo + pivot, hi: hi + pivot });
        }
        knots.reverse();
        knots
    }
}
