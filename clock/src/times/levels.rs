//! Detects steps that are smaller than the delays: the minimum delays of both directions change at
//! once, by opposite amounts.
//!
//! θ + the minimum delay there, and θ − the minimum delay back, both follow θ. If both of them
//! leave their line to the same side, by much more than their usual scatter, θ stepped (or a route
//! changed in a way that cannot be distinguished from a step).

use super::blocks::{Blocks, HullBlock};
use super::hull::HullPoint;

/// Blocks on each side that are compared.
const SIDE: usize = 4;
/// Number of blocks over which a slope is estimated.
const CHUNK: usize = 64;
/// Both directions must change by this multiple of their scatter.
const TIMES: f64 = 1.5;
/// Smaller changes are ignored, because stamps, wander and slopes are not exact. In ns.
const MIN_CHANGE_NS: f64 = 2e3;

/// The bounds of a block, as levels.
#[derive(Debug, Clone, Copy)]
struct Level {
    /// The index among all blocks.
    at: usize,
    index: i64,
    upper: f64,
    lower: f64,
}

impl Level {
    fn middle(&self) -> f64 {
        self.upper.midpoint(self.lower)
    }
}

/// Blocks in which θ steps.
pub(super) fn steps(hulls: &Blocks, curve: f64) -> Vec<usize> {
    let blocks: Vec<_> = hulls.blocks.iter().copied().enumerate().collect();
    // Largest deviation of the slope in a chunk from the average one there.
    let most = curve * (CHUNK / 2) as f64;
    let mut found = Vec::new();
    // Each chunk includes enough of its neighbours to compare all of its own blocks.
    for start in (0..blocks.len()).step_by(CHUNK) {
        let own = start..(start + CHUNK).min(blocks.len());
        let around = own.start.saturating_sub(SIDE)..(own.end + SIDE).min(blocks.len());
        let levels = flat(hulls, &blocks[around]);
        let sides = levels
            .windows(2 * SIDE + 1)
            .filter_map(|window| Some((window[SIDE].at, excess(window, most)?)));
        found.extend(sides.filter(|side| own.contains(&side.0)));
    }
    // A step next to a block is detected for both.
    let mut steps: Vec<(usize, f64)> = Vec::new();
    for entry in found {
        match steps.last_mut() {
            Some(last) if last.0 + SIDE >= entry.0 => {
                if entry.1 > last.1 {
                    *last = entry;
                }
            }
            _ => steps.push(entry),
        }
    }
    steps.into_iter().map(|step| step.0).collect()
}

/// How far the levels on both sides of the middle differ beyond their scatter.
fn excess(levels: &[Level], most_slope: f64) -> Option<f64> {
    if levels[2 * SIDE].index - levels[0].index > 4 * SIDE as i64 {
        return None;
    }
    let own = own_slope(levels).clamp(-most_slope, most_slope);
    // The part that the clocks' wander explains does not count as scatter.
    let flat = |level: &Level| {
        let rise = own * (level.index - levels[SIDE].index) as f64;
        Level { upper: level.upper - rise, lower: level.lower - rise, ..*level }
    };
    let levels: [Level; 2 * SIDE + 1] = std::array::from_fn(|i| flat(&levels[i]));
    let (before, after) = (&levels[..SIDE], &levels[SIDE + 1..]);
    let range = |values: &mut dyn Iterator<Item = f64>| {
        values.fold((f64::INFINITY, f64::NEG_INFINITY), |(lo, hi), value| {
            (lo.min(value), hi.max(value))
        })
    };
    let [(a, b), (c, d)] =
        [before, after].map(|levels| range(&mut levels.iter().map(|level| level.upper)));
    let [(e, f), (g, h)] =
        [before, after].map(|levels| range(&mut levels.iter().map(|level| level.lower)));
    let scatter = [b - a, d - c, f - e, h - g].into_iter().fold(0.0, f64::max);
    let up = (c - b).min(g - f);
    let down = (a - d).min(e - h);
    let excess = up.max(down) - TIMES * scatter - MIN_CHANGE_NS;
    (excess > 0.0).then_some(excess)
}

/// The common slope that both sides of the middle still have, regardless of a step between them.
fn own_slope(levels: &[Level]) -> f64 {
    let (mut products, mut squares) = (0.0, 0.0);
    for side in [&levels[..SIDE], &levels[SIDE + 1..]] {
        let mean = |level: fn(&Level) -> f64| side.iter().map(level).sum::<f64>() / SIDE as f64;
        let (x, y) = (mean(|level| level.index as f64), mean(Level::middle));
        for level in side {
            let off = level.index as f64 - x;
            products += off * (level.middle() - y);
            squares += off * off;
        }
    }
    products / squares
}

/// The levels of blocks, without their common slope.
fn flat(hulls: &Blocks, blocks: &[(usize, HullBlock)]) -> Vec<Level> {
    let mut slope = 0.0;
    let mut levels = Vec::new();
    // The first slope is rough, because readings may be anywhere in a block.
    for _ in 0..4 {
        let level = |&(at, block): &(usize, HullBlock)| {
            let flat = |entry: &HullPoint| entry.1 - slope * (block.index as f64 + entry.0);
            let upper = hulls.upper(block).iter().map(flat).min_by(f64::total_cmp)?;
            let lower = hulls.lower(block).iter().map(flat).max_by(f64::total_cmp)?;
            Some(Level { at, index: block.index, upper, lower })
        };
        levels = blocks.iter().filter_map(level).collect();
        let pairs = levels.iter().zip(levels.iter().skip(SIDE));
        let mut slopes: Vec<_> =
            pairs.map(|(a, b)| (b.middle() - a.middle()) / (b.index - a.index) as f64).collect();
        if slopes.is_empty() {
            break;
        }
        let half = slopes.len() / 2;
        slope += *slopes.select_nth_unstable_by(half, f64::total_cmp).1;
    }
    levels
}
