//! The result for one host: its ticks as ticks of the reference, with bounds.

use super::model::{BLOCK, ClockModel};
use super::path::SteadyStretch;
use super::scale::TickOrigin;
use super::track;

/// The time of a tick, in ticks of the reference host.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct TickBounds {
    /// The lower bound.
    pub lo: i128,
    /// The best estimate.
    pub mid: i128,
    /// The upper bound.
    pub hi: i128,
}

/// The time of one tick of a host. Between two neighbouring knots of a part, `lo` and `hi` are
/// linear.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct TickKnot {
    /// A tick of the host.
    pub tick: u64,
    /// Lower bound, in ticks of the reference.
    pub lo: i128,
    /// Upper bound, in ticks of the reference.
    pub hi: i128,
}

/// Converts what a host reads when the reference reads `x` (θ is their difference) into knots in
/// the order of the host's own ticks.
pub(super) fn turn(
    knots: &[track::DifferenceKnot],
    model: &ClockModel,
    host: TickOrigin,
    to: TickOrigin,
) -> Vec<TickKnot> {
    // So that the bounds also hold on the lines between knots.
    let at: Vec<_> = knots.iter().map(|knot| knot.x / BLOCK).collect();
    let loose = knots.iter().enumerate().map(|(i, knot)| {
        let slack = slack(&at, i, model);
        track::DifferenceKnot { x: knot.x, lo: knot.lo - slack, hi: knot.hi + slack }
    });
    let lines = SteadyStretch::new(loose.collect());
    let mut found: Vec<(u64, f64, f64)> = Vec::with_capacity(knots.len());
    for knot in knots {
        let middle = host.tick_before(knot.x + knot.lo.midpoint(knot.hi));
        let turned = u64::try_from(middle).ok().and_then(|tick| {
            let ns = host.ns(tick)?;
            Some((tick, lines.ahead(ns)?, lines.reached(ns)?))
        });
        found.extend(turned.filter(|turned| found.last().is_none_or(|last| last.0 < turned.0)));
    }
    let blocks = |entry: &(u64, f64, f64)| host.ns(entry.0).unwrap_or(f64::INFINITY) / BLOCK;
    let at: Vec<_> = found.iter().map(blocks).collect();
    let knot = |(i, &(tick, lo, hi)): (usize, &(u64, f64, f64))| {
        let slack = slack(&at, i, model);
        TickKnot { tick, lo: to.tick_before(lo - slack), hi: to.tick_after(hi + slack) }
    };
    found.iter().enumerate().map(knot).collect()
}

/// Largest deviation of a difference from the line to a neighbour of the knot `i`. Knots are `at`
/// these blocks.
fn slack(at: &[f64], i: usize, model: &ClockModel) -> f64 {
    let left = i.checked_sub(1).map_or(0.0, |index| at[i] - at[index]);
    let far = at.get(i + 1).map_or(left, |value| left.max(value - at[i]));
    model.curve() * far * far / 8.0
}

/// The time of `tick` on the line between the knots around it.
pub(super) fn at(knots: &[TickKnot], tick: u64) -> Option<TickBounds> {
    let after = knots.partition_point(|knot| knot.tick < tick);
    let to = knots.get(after)?;
    let (lo, hi) = if to.tick == tick {
        (to.lo, to.hi)
    } else {
        let from = knots.get(after.checked_sub(1)?)?;
        let (part, whole) = (i128::from(tick - from.tick), i128::from(to.tick - from.tick));
        let lo = from.lo + ((to.lo - from.lo) * part).div_euclid(whole);
        let hi = from.hi - ((from.hi - to.hi) * part).div_euclid(whole);
        (lo, hi)
    };
    Some(TickBounds { lo, mid: lo + (hi - lo).div_euclid(2), hi })
}
