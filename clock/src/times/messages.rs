//! Converts readings to bounds: the earliest departure and the latest arrival of each message.

use std::collections::{BTreeMap, BTreeSet};

use super::blocks::Bounds;
use super::brackets::{Brackets, Unplaced};
use super::clocks::HostClocks;
use super::model::Model;
use super::scale::ROUNDING;
use crate::sync::Readings;

/// Number of unused stamps, by cause.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Unused {
    /// CLOCK_REALTIME was stepped next to them.
    pub stepped: u64,
    /// There are no readings of ticks and CLOCK_REALTIME near on both sides, or they are weeks from
    /// the first one.
    pub far: u64,
}

/// All bounds between clocks. In each pair, the clock that is earlier in `rank` comes first.
pub(super) fn bounds(
    readings: &Readings,
    clocks: &HostClocks,
    model: &Model,
    rank: &[usize],
) -> (BTreeMap<(usize, usize), Bounds>, Unused) {
    let mut pairs: BTreeMap<(usize, usize), Bounds> = BTreeMap::new();
    let mut add = |from: usize, to: usize, sent: f64, received: f64| {
        let near = rank[from] <= rank[to];
        let pair = pairs.entry(if near { (from, to) } else { (to, from) }).or_default();
        match near {
            true => pair.upper.push((sent, received - sent)),
            false => pair.lower.push((received, sent - received)),
        }
    };
    let mut unused = Unused::default();
    let brackets: Vec<_> = (0..clocks.of.len())
        .map(|it| {
            Brackets::from_readings(readings.clocks(it), clocks.scales[clocks.of[it]], model.slew())
        })
        .collect();
    let mut hints = vec![0; clocks.of.len()];
    for it in readings.probes() {
        let mut place = |host: u32, stamp: u64, tick: u64| {
            let host = host as usize;
            let near = clocks.scales[clocks.of[host]].ns(tick).ok_or(Unplaced::Far);
            let moment = near.and_then(|it| brackets[host].place(stamp, it, &mut hints[host]));
            match moment {
                Ok(_) => {}
                Err(Unplaced::Stepped) => unused.stepped += 1,
                Err(Unplaced::Far) => unused.far += 1,
            }
            moment.ok()
        };
        let sent = place(it.from, it.t1, it.from_tick);
        let back = place(it.from, it.t4, it.from_tick);
        let received = place(it.to, it.t2, it.to_tick);
        let answered = place(it.to, it.t3, it.to_tick);
        let (from, to) = (clocks.of[it.from as usize], clocks.of[it.to as usize]);
        if let (Some(sent), Some(received)) = (sent, received) {
            add(from, to, sent.lo, received.hi);
        }
        if let (Some(answered), Some(back)) = (answered, back) {
            add(to, from, answered.lo, back.hi);
        }
    }
    for it in readings.one_ways() {
        let (from, to) = (clocks.of[it.from as usize], clocks.of[it.to as usize]);
        let (sent, received) =
            (clocks.scales[from].ns(it.from_tick), clocks.scales[to].ns(it.to_tick));
        match (sent, received) {
            (Some(sent), Some(received)) => add(from, to, sent - ROUNDING, received + ROUNDING),
            _ => unused.far += 1,
        }
    }
    for it in readings.pulses() {
        // True time leaves its second after the tick before, and arrives before the tick after.
        let clock = clocks.of[it.host as usize];
        let second = clocks.scales[clocks.truth].ns(it.second);
        let (before, after) =
            (clocks.scales[clock].ns(it.tick_before), clocks.scales[clock].ns(it.tick_after));
        match (before, second, after) {
            (Some(before), Some(second), Some(after)) => {
                add(clock, clocks.truth, before - ROUNDING, second + ROUNDING);
                add(clocks.truth, clock, second - ROUNDING, after + ROUNDING);
            }
            _ => unused.far += 1,
        }
    }
    for it in readings.said().iter().filter(|_| model.believes_said) {
        let host = it.host as usize;
        let (clock, truth) = (clocks.of[host], clocks.scales[clocks.truth]);
        let shown = clocks.scales[clock].ns(it.tick).ok_or(Unplaced::Far).and_then(|tick| {
            let (value, lo, hi) = brackets[host].shown(tick, &mut hints[host])?;
            let (off, error) = (it.offset_ns as f64, it.error_ns as f64 + ROUNDING);
            let value = truth.ns(value).ok_or(Unplaced::Far)? + off;
            Ok((tick, value + lo - error, value + hi + error))
        });
        match shown {
            Ok((tick, lo, hi)) => {
                add(clock, clocks.truth, tick - ROUNDING, hi);
                add(clocks.truth, clock, lo, tick + ROUNDING);
            }
            Err(Unplaced::Stepped) => unused.stepped += 1,
            Err(Unplaced::Far) => unused.far += 1,
        }
    }
    (pairs, unused)
}

/// The clocks that the readings connect.
pub(super) fn joined(
    readings: &Readings,
    clocks: &HostClocks,
    model: &Model,
) -> Vec<BTreeSet<usize>> {
    let mut joined = vec![BTreeSet::new(); clocks.scales.len()];
    let of = |host: u32| clocks.of[host as usize];
    let probes = readings.probes().iter().map(|it| (of(it.from), of(it.to)));
    let one_ways = readings.one_ways().iter().map(|it| (of(it.from), of(it.to)));
    let pulses = readings.pulses().iter().map(|it| (of(it.host), clocks.truth));
    let said = readings.said().iter().filter(|_| model.believes_said);
    let said = said.map(|it| (of(it.host), clocks.truth));
    for (a, b) in probes.chain(one_ways).chain(pulses).chain(said) {
        joined[a].insert(b);
        joined[b].insert(a);
    }
    joined
}
