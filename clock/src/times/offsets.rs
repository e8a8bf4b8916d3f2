//! Steps of CLOCK_REALTIME, from its offset to CLOCK_MONOTONIC.
//!
//! Both are slewed together, so only steps change the offset: a step of any size is visible between
//! two readings of the two. Two opposite steps between two readings are not.

use super::scale::TickOrigin;
use crate::{ClockId, ClockReading};

/// Most steps that are kept, as ranges of a host's ns. With more steps, the last range has no end.
const MAX_STEPS: usize = 256;

/// Readings of another host may arrive out of order by this time, in ns.
const ORDER: f64 = 1e8;
/// A reading without a later one of ticks was made at most this much later, in ns.
const ALONE: f64 = 2e9;

/// The offset in a reading of the two clocks, and the time of the reading.
#[derive(Clone, Copy)]
struct Offset {
    least: i128,
    most: i128,
    since: f64,
    until: f64,
}

/// The intervals in which CLOCK_REALTIME was stepped. The readings of one file are in chronological
/// order, so the readings of ticks before and after a reading of other clocks bound its time.
pub(super) fn steps(readings: &[ClockReading], scale: TickOrigin) -> Vec<(f64, f64)> {
    let (mut offsets, mut open): (Vec<Offset>, usize) = (Vec::new(), 0);
    let mut tick = None;
    for reading in readings {
        if reading.a == ClockId::Tick
            && let (Some(before), Some(after)) =
                (scale.ns(reading.a_before), scale.ns(reading.a_after))
        {
            for offset in &mut offsets[open..] {
                if (offset.since..offset.until).contains(&after) {
                    offset.until = after;
                }
            }
            (open, tick) = (offsets.len(), Some(before));
        } else if let (Some(since), Some((least, most))) = (tick, offset(reading)) {
            offsets.push(Offset { least, most, since, until: since + ALONE });
        }
    }
    offsets.sort_by(|a, b| a.since.total_cmp(&b.since));
    let differ = |a: &Offset, b: &Offset| a.most < b.least || b.most < a.least;
    let pairs = offsets.windows(2).filter(|window| differ(&window[0], &window[1]));
    let mut steps: Vec<_> =
        pairs.map(|pair| (pair[0].since - ORDER, pair[1].until + ORDER)).collect();
    if steps.len() > MAX_STEPS {
        steps.truncate(MAX_STEPS);
        steps[MAX_STEPS - 1].1 = f64::INFINITY;
    }
    steps
}

/// CLOCK_REALTIME − CLOCK_MONOTONIC: the minimum and the maximum.
fn offset(reading: &ClockReading) -> Option<(i128, i128)> {
    let (before, value, after) =
        (i128::from(reading.a_before), i128::from(reading.b_value), i128::from(reading.a_after));
    match (reading.a, reading.b) {
        (ClockId::Realtime, ClockId::Monotonic) => Some((before - value, after - value)),
        (ClockId::Monotonic, ClockId::Realtime) => Some((value - after, value - before)),
        _ => None,
    }
}
