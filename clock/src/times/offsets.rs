//! Steps of CLOCK_REALTIME, as its offset to CLOCK_MONOTONIC tells.
//!
//! Both are slewed together, so that the offset changes by steps alone: a step of any size shows
//! between two readings of the two. Two opposite steps between two readings do not.

use super::scale::Scale;
use crate::{ClockId, ClockReading};

/// Steps kept: ranges of a host's ns. Where there are more, the last range has no end.
const MOST: usize = 256;

/// What a reading of the two says, and the ticks before it, if there are any.
struct Offset {
    least: i128,
    most: i128,
    since: Option<f64>,
}

/// Between which moments CLOCK_REALTIME was stepped. Readings are in the order in which they were made,
/// so that readings of ticks before and after tell when one of other clocks was made.
pub(super) fn steps(readings: &[ClockReading], scale: Scale) -> Vec<(f64, f64)> {
    let mut steps: Vec<(f64, f64)> = Vec::new();
    let (mut tick, mut last): (Option<f64>, Option<Offset>) = (None, None);
    // A step that is not yet over by any reading of ticks.
    let mut open: Option<f64> = None;
    for reading in readings {
        if reading.a == ClockId::Tick {
            let (Some(before), Some(after)) =
                (scale.ns(reading.a_before), scale.ns(reading.a_after))
            else {
                continue;
            };
            // Another file begins.
            if tick.is_some_and(|it| before < it) {
                last = None;
            }
            if let Some(since) = open.take() {
                steps.push((since, after));
            }
            tick = Some(after);
        } else if let Some((least, most)) = offset(reading) {
            if let Some(last) = &last
                && (most < last.least || least > last.most)
            {
                let since = last.since.unwrap_or(f64::NEG_INFINITY);
                open = Some(open.map_or(since, |it| it.min(since)));
            }
            last = Some(Offset { least, most, since: tick });
        }
    }
    steps.extend(open.map(|since| (since, f64::INFINITY)));
    if steps.len() > MOST {
        let least = steps[MOST - 1..].iter().map(|it| it.0).fold(f64::INFINITY, f64::min);
        steps.truncate(MOST - 1);
        steps.push((least, f64::INFINITY));
    }
    steps
}

/// CLOCK_REALTIME − CLOCK_MONOTONIC: the least and the most.
fn offset(it: &ClockReading) -> Option<(i128, i128)> {
    let (before, value, after) =
        (i128::from(it.a_before), i128::from(it.b_value), i128::from(it.a_after));
    match (it.a, it.b) {
        (ClockId::Realtime, ClockId::Monotonic) => Some((before - value, after - value)),
        (ClockId::Monotonic, ClockId::Realtime) => Some((value - after, value - before)),
        _ => None,
    }
}
